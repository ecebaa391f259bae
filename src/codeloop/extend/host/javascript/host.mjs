// The program that JavaScript and TypeScript extensions run in: it speaks version 1 of the protocol of hosts.

import { Channel } from "./channel.mjs"
import { authStep, fetchThrough } from "./auth.mjs"
import { answerServer, makeClient, SERVER } from "./client.mjs"
import { describe, load } from "./loading.mjs"
import { addModels } from "./models.mjs"
import { checkArguments } from "./schema.mjs"
import { makeShell } from "./shell.mjs"
import { prepare } from "./typescript.mjs"

const VERSION = 1
const OLDEST_NODE = 22
const GREETING = 0 // the id of an answer to the greeting, which has none
const ENDING_MILLISECONDS = 1_000
const LOGGED_CHARACTERS = 100_000
const RUNTIME = process.versions.bun ? `bun ${process.versions.bun}` : `node ${process.versions.node}`

const extensions = new Map() // by name, what `load` returned
const running = new Map() // by the id of a request, the AbortController of its work
const subscribers = new Set() // functions that get each event
const unfinished = new Set() // promises of what plugins do with events, and of their `dispose`
let ending = false
let pluginInput // the argument of plugin functions

const channel = new Channel(receive, end)

const handlers = {
  hello(message) {
    const problem = findProblem(message)
    if (problem) return channel.send({ type: "error", id: GREETING, kind: "invalid", message: problem })
    greet(message)
    channel.send({ type: "ready", version: VERSION, runtime: RUNTIME })
  },
  load: (message) => answer(message, loadExtension),
  call: (message) => answer(message, callTool),
  hook: (message) => answer(message, runHook),
  auth: (message) => answer(message, (asked) => authStep(extensionOf(asked), asked)),
  fetch: (message) => answer(message, (asked, signal) => fetchThrough(extensionOf(asked), asked, signal, channel)),
  cancel: ({ id }) => running.get(id)?.abort(new Error("The call was cancelled.")),
  events: tellEvents,
}

function receive(message) {
  handlers[message.type]?.(message)
}

/** Say why this program can't be the host, if it can't. */
function findProblem({ version }) {
  if (version !== VERSION) return `This host speaks version ${VERSION} of the protocol, not ${version}.`
  if (process.versions.bun || Number.parseInt(process.versions.node) >= OLDEST_NODE) return undefined
  return `JavaScript extensions need node ${OLDEST_NODE} or newer, or bun; this is ${RUNTIME}.`
}

function greet({ directory, root, project, operations = [] }) {
  process.chdir(directory)
  const call = async (operation, path, query, body) => {
    const data = await channel.request({ type: "operation", operation, path, query, body })
    if (operation === "auth.set") renewCredential(Object.values(path)[0], body)
    return data
  }
  const { client, byRoute } = makeClient(call, operations, subscribe)
  answerServer(byRoute, subscribe)
  pluginInput = {
    client,
    project: project ?? { id: "global", worktree: root },
    directory,
    worktree: root,
    serverUrl: new URL(SERVER),
    experimental_workspace: { register: () => {} },
    $: process.versions.bun ? globalThis.Bun.$ : makeShell(directory),
  }
}

/** Let a plugin that stores a renewed token read that one from now on. */
function renewCredential(provider, credential) {
  for (const { hooks, signIn } of extensions.values()) {
    if (signIn && hooks.some((made) => made.auth?.provider === provider)) signIn.current = credential
  }
}

/** Answer a message with what `work` returns; a cancelled call is answered too, with its error. */
async function answer(message, work) {
  const controller = new AbortController()
  running.set(message.id, controller)
  try {
    const cancelled = new Promise((_, reject) => controller.signal.addEventListener("abort", () => reject(controller.signal.reason)))
    const value = await Promise.race([cancelled, work(message, controller.signal)])
    channel.send({ type: "result", id: message.id, value: value ?? null })
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    channel.send({ type: "error", id: message.id, kind: error?.kind ?? "raised", message: text, trace: error?.stack })
  } finally {
    running.delete(message.id)
  }
}

function extensionOf({ extension }) {
  const found = extensions.get(extension)
  if (!found) throw Object.assign(new Error(`The extension ${extension} is not loaded.`), { kind: "missing" })
  return found
}

async function loadExtension({ extension }) {
  const loaded = await load(extension, pluginInput)
  extensions.set(extension.name, loaded)
  return describe(loaded)
}

async function callTool(message, signal) {
  const { tools, readsMessages } = extensionOf(message)
  const definition = tools.get(message.tool)
  if (!definition) throw Object.assign(new Error(`${message.extension} has no tool ${message.tool}.`), { kind: "missing" })
  const given = await checkArguments(definition.args, message.arguments).catch((error) => {
    if (!error.issues || !definition.formatValidationError) throw error
    throw Object.assign(new Error(String(definition.formatValidationError(error))), { kind: "invalid" })
  })
  const messages = readsMessages ? await readMessages(message.context) : []
  signal.throwIfAborted()
  return resultOf(await definition.execute(given, { ...contextOf(message, signal), messages }))
}

async function readMessages({ sessionID }) {
  return (await pluginInput.client.session.messages({ path: { id: sessionID } })).data ?? []
}

function contextOf({ id, context }, signal) {
  return {
    ...context,
    extra: {},
    abort: signal,
    metadata: ({ title, metadata }) => channel.send({ type: "report", call: id, title, metadata }),
    ask: async ({ permission, patterns = [], always = [], metadata = {} }) => {
      await channel.request({ type: "ask", call: id, permission, patterns, always, metadata })
    },
  }
}

function resultOf(value) {
  if (value !== null && typeof value === "object" && typeof value.output === "string") {
    const { title, output, metadata, attachments } = value
    return { title, output, metadata, attachments }
  }
  return { output: typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value) }
}

/** Run a hook of every plugin function of an extension that has it; they change `output`, one after the other. */
async function runHook({ extension, name, input, output }) {
  const { hooks } = extensionOf({ extension })
  for (const made of hooks) {
    if (name === "config") {
      await made.config?.(output)
      if (made.provider?.models) await addModels(made.provider, output, pluginInput.client)
    } else await made[name]?.(input, output)
  }
  return output
}

/** Hand events on without waiting for what plugins do with them, as they are not an answer to anything. */
function tellEvents({ events }) {
  for (const event of events) {
    for (const push of subscribers) push(event)
    for (const { hooks } of extensions.values()) for (const made of hooks) if (made.event) tell(made, event)
  }
  channel.send({ type: "taken", count: events.length })
}

function tell(made, event) {
  const telling = attempt("event", () => made.event({ event }))
  unfinished.add(telling)
  telling.finally(() => unfinished.delete(telling))
}

async function attempt(where, work) {
  try {
    await work()
  } catch (error) {
    logFailure(where, error)
  }
}

/** End with codeloop: what plugins do with the last events, and their `dispose`, is waited for a moment. */
async function end() {
  if (ending) return
  ending = true
  for (const { hooks } of extensions.values()) for (const made of hooks) if (made.dispose) unfinished.add(attempt("dispose", () => made.dispose()))
  setTimeout(() => process.exit(0), ENDING_MILLISECONDS)
  await Promise.all(unfinished)
  process.exit(0)
}

/** Return a stream of the events from now on, for `client.event.subscribe()`. */
async function* subscribe() {
  const waiting = []
  let wake = () => {}
  const push = (event) => (waiting.push(event), wake())
  subscribers.add(push)
  try {
    await channel.request({ type: "operation", operation: "event.subscribe" })
    while (true) {
      while (waiting.length) yield waiting.shift()
      await new Promise((resolve) => (wake = resolve))
    }
  } finally {
    subscribers.delete(push)
  }
}

function logFailure(where, error) {
  if (ending) return
  channel.send({ type: "log", level: "error", message: `${where}: ${error?.stack ?? error}`.slice(0, LOGGED_CHARACTERS) })
}

process.on("SIGTERM", end)
// One extension's forgotten promise or timer must not end the others.
process.on("unhandledRejection", (error) => logFailure("A promise was rejected and nobody looked", error))
process.on("uncaughtException", (error) => logFailure("Raised outside of every call", error))

prepare()
