// The `$` that plugins get under node: a small tagged template that runs a line of shell. Under bun they get Bun's own.

import { spawn } from "node:child_process"
import { existsSync } from "node:fs"

const SHELL = existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh"

/** Return a `$` that runs in `directory`. Values never become shell syntax: they are passed as arguments. */
export function makeShell(directory, defaults = {}) {
  const settings = { cwd: directory, env: undefined, throws: true, ...defaults }
  const shell = (strings, ...values) => new Running(settings, ...lineOf(strings, values))
  shell.cwd = (cwd) => (Object.assign(settings, { cwd: cwd ?? directory }), shell)
  shell.env = (env) => (Object.assign(settings, { env }), shell)
  shell.throws = (throws) => (Object.assign(settings, { throws }), shell)
  shell.nothrow = () => shell.throws(false)
  shell.escape = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${String(text).replaceAll("'", `'\\''`)}'`)
  shell.braces = braces
  return shell
}

/** Return script, arguments and input. Each value is a parameter of the shell, quoted as its place demands. */
function lineOf(strings, values) {
  const given = []
  let input
  let script = strings.raw[0]
  let quote = quoteAfter(script, "")
  values.forEach((value, at) => {
    const next = strings.raw[at + 1]
    if (isBytes(value) && /<\s*$/.test(script)) {
      input = value
      script = script.replace(/<\s*$/, "")
    } else if (value !== null && typeof value === "object" && "raw" in value) {
      script += value.raw
    } else {
      // `push` returns the number of the parameter: `${1}` is the first.
      const words = (Array.isArray(value) ? value.flat(Infinity) : [value]).map((word) => `\${${given.push(String(word))}}`)
      if (quote === '"') script += words.join(" ")
      else script += words.map((word) => (quote === "'" ? `'"${word}"'` : `"${word}"`)).join(" ")
    }
    quote = quoteAfter(next, quote)
    script += next
  })
  return [script, given, input]
}

function quoteAfter(text, quote) {
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === "\\" && quote !== "'") at++
    else if (quote ? character === quote : character === "'" || character === '"') quote = quote ? "" : character
  }
  return quote
}

const isBytes = (value) =>
  value instanceof Uint8Array || value instanceof ArrayBuffer || value instanceof Blob || value instanceof Response || value instanceof ReadableStream

/** A command that starts when somebody first asks for its outcome. */
class Running {
  #settings
  #line
  #outcome

  constructor(settings, script, given, input) {
    this.#settings = { ...settings }
    this.#line = [script, given, input]
  }

  #set(change) {
    Object.assign(this.#settings, change)
    return this
  }

  cwd = (cwd) => this.#set({ cwd })
  env = (env) => this.#set({ env })
  quiet = () => this.#set({ quiet: true })
  throws = (throws) => this.#set({ throws })
  nothrow = () => this.throws(false)
  run = () => (this.#start(), this)

  text = async (encoding) => (await this.quiet().#start()).text(encoding)
  json = async () => (await this.quiet().#start()).json()
  arrayBuffer = async () => (await this.quiet().#start()).arrayBuffer()
  bytes = async () => (await this.quiet().#start()).bytes()
  blob = async () => (await this.quiet().#start()).blob();
  async *lines() {
    yield* (await this.text()).split("\n")
  }

  then(taken, failed) {
    return this.#start().then(taken, failed)
  }
  catch(failed) {
    return this.#start().catch(failed)
  }
  finally(done) {
    return this.#start().finally(done)
  }

  #start() {
    this.#outcome ??= execute(this.#settings, ...this.#line)
    return this.#outcome
  }
}

async function execute(settings, script, given, input) {
  const child = spawn(SHELL, ["-c", script, "$", ...given], {
    cwd: settings.cwd,
    env: settings.env ?? process.env,
    stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  })
  const exited = new Promise((resolve, reject) => {
    child.on("error", reject)
    child.on("close", (code, signal) => resolve(code ?? 128 + (signal === "SIGKILL" ? 9 : 15)))
  })
  if (input !== undefined) {
    child.stdin.on("error", () => {})
    child.stdin.end(Buffer.from(await new Response(input instanceof Response ? input.body : input).arrayBuffer()))
  }
  const [exitCode, stdout, stderr] = await Promise.all([
    exited,
    collect(child.stdout, settings.quiet ? undefined : process.stdout),
    collect(child.stderr, settings.quiet ? undefined : process.stderr),
  ])
  const output = outputOf(exitCode, stdout, stderr)
  if (exitCode === 0 || !settings.throws) return output
  throw Object.assign(new Error(`Failed with exit code ${exitCode}`), output, { name: "ShellError" })
}

async function collect(stream, echo) {
  const chunks = []
  for await (const chunk of stream) {
    chunks.push(chunk)
    echo?.write(chunk)
  }
  return Buffer.concat(chunks)
}

function outputOf(exitCode, stdout, stderr) {
  const bytes = () => new Uint8Array(stdout)
  return {
    exitCode,
    stdout,
    stderr,
    text: (encoding) => stdout.toString(encoding),
    json: () => JSON.parse(stdout.toString()),
    arrayBuffer: () => bytes().buffer,
    bytes,
    blob: () => new Blob([stdout]),
  }
}

function braces(pattern) {
  const found = /^(.*?)\{([^{}]*,[^{}]*)\}(.*)$/s.exec(pattern)
  return found ? found[2].split(",").flatMap((part) => braces(found[1] + part + found[3])) : [pattern]
}
