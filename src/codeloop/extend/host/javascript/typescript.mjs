// What node lacks for extensions that were written for bun: TypeScript in any folder, imports without an ending, JSON
// imports, and `@opencode-ai/plugin` and `zod` where they are not installed.

import crypto from "node:crypto"
import fs from "node:fs"
import module from "node:module"
import path from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

const STAND_IN = new URL("./stand_in.mjs", import.meta.url).href
const ZOD = new URL("./zod.mjs", import.meta.url).href
// The packages whose places modules of ours take.
const STAND_INS = [
  [/^@opencode-ai\/(plugin(\/tool)?|tool)$/, STAND_IN],
  [/^zod(\/v[34])?$/, ZOD],
]
const NAMED = /(["'])(?:@opencode-ai\/(?:plugin(?:\/tool)?|tool)|zod(?:\/v[34])?)\1/g
const ENDINGS = [".ts", ".mts", ".js", ".mjs", ".json", "/index.ts", "/index.js", "/index.mjs"]

const CACHE = process.env.CODELOOP_HOST_CACHE
const CACHED_FILES = 1_000
delete process.env.CODELOOP_HOST_CACHE

/** Make the runtime load what extensions import. */
export function prepare() {
  if (process.versions.bun) prepareBun()
  else module.registerHooks?.({ resolve, load })
}

/** Bun asks no hook about the packages that a file imports, so the file is handed on with the stand-in's address in it. */
function prepareBun() {
  const { plugin, resolveSync } = globalThis.Bun
  plugin({
    name: "codeloop",
    setup(build) {
      build.onLoad({ filter: /^(?!.*\/node_modules\/).*\.(m?ts|tsx|m?js|jsx)$/ }, ({ path: file }) => {
        const contents = fs.readFileSync(file, "utf8")
        const served = contents.replace(NAMED, (named) => {
          try {
            return resolveSync(named.slice(1, -1), path.dirname(file)) && named
          } catch {
            return JSON.stringify(fileURLToPath(findStandIn(named.slice(1, -1))))
          }
        })
        return { contents: served, loader: /\.m?([jt]sx?)$/.exec(file)[1] }
      })
    },
  })
}

function resolve(specifier, context, next) {
  try {
    return next(specifier, context)
  } catch (error) {
    const found = guess(specifier, context.parentURL)
    if (found) return { url: found, shortCircuit: true }
    const standIn = findStandIn(specifier)
    if (standIn) return { url: standIn, shortCircuit: true }
    throw error
  }
}

/** Return the module of ours that takes a package's place. */
const findStandIn = (specifier) => STAND_INS.find(([named]) => named.test(specifier))?.[1]

/** Return the file that is meant by a path without an ending, or by the `.js` of a file that is `.ts` here. */
function guess(specifier, parent) {
  if (!/^(\.{0,2}\/|file:)/.test(specifier) || !parent?.startsWith("file:")) return undefined
  const file = fileURLToPath(new URL(specifier, parent))
  const stem = file.replace(/\.(m?)js$/, "")
  const tried = [...(stem === file ? [] : [`${stem}.ts`, `${stem}.mts`]), ...ENDINGS.map((ending) => file + ending)]
  const found = tried.find((candidate) => fs.statSync(candidate, { throwIfNoEntry: false })?.isFile())
  return found && pathToFileURL(found).href
}

function load(url, context, next) {
  const [address] = url.split("?")
  const isImport = !context.conditions.includes("require")
  if (/\.m?ts$/.test(address)) {
    return { format: "module", source: cachedJavaScriptOf(fs.readFileSync(fileURLToPath(address), "utf8"), address), shortCircuit: true }
  }
  if (isImport && address.endsWith(".json") && context.importAttributes?.type !== "json") {
    const source = `export default ${fs.readFileSync(fileURLToPath(address), "utf8")}`
    return { format: "module", source, shortCircuit: true }
  }
  if (isImport && /\.(md|txt)$/.test(address)) {
    const text = JSON.stringify(fs.readFileSync(fileURLToPath(address), "utf8"))
    return { format: "module", source: `export default ${text}`, shortCircuit: true }
  }
  return next(url, context)
}

/** Translate a file, or take what was made of the same text before: the translator alone takes 60 ms to start. */
function cachedJavaScriptOf(source, address) {
  if (!CACHE) return javascriptOf(source, address)
  const key = crypto.createHash("sha256").update(`${process.version}\n${address}\n${source}`).digest("hex")
  const file = path.join(CACHE, key)
  try {
    return fs.readFileSync(file, "utf8")
  } catch {
    const made = javascriptOf(source, address)
    keep(file, made)
    return made
  }
}

function keep(file, text) {
  try {
    if (fs.existsSync(CACHE) && fs.readdirSync(CACHE).length >= CACHED_FILES) fs.rmSync(CACHE, { recursive: true })
    fs.mkdirSync(CACHE, { recursive: true })
    fs.writeFileSync(`${file}.${process.pid}`, text)
    fs.renameSync(`${file}.${process.pid}`, file)
  } catch {
    // it is translated again next time
  }
}

function javascriptOf(source, address) {
  let code
  try {
    code = module.stripTypeScriptTypes(source, { mode: "strip", sourceUrl: address })
  } catch (error) {
    if (error.code !== "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") throw error
    code = module.stripTypeScriptTypes(source, { mode: "transform", sourceUrl: address })
  }
  const needsRequire = /\brequire\(/.test(code) && !/\brequire\s*=/.test(code)
  const line = needsRequire ? `import { createRequire as __require } from "node:module"; const require = __require(import.meta.url);` : ""
  return line + withoutUnused(code)
}

/** Leave out imported names that nothing uses: they are types, written without the word `type`, as TypeScript allows. */
function withoutUnused(code) {
  const text = code.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "")
  const uses = (name) => [...text.matchAll(new RegExp(`(?<![\\w$.])${name.replaceAll("$", "\\$")}(?![\\w$])`, "g"))].length
  return code.replace(/^([ \t]*import\s+)(\w+\s*,\s*)?\{([^}]*)\}(\s*from\s*["'][^"']+["'])/gm, (whole, start, first, names, from) => {
    const all = names.split(",").filter((name) => name.trim())
    const kept = all.filter((name) => uses(name.trim().split(/\s+/).at(-1)) > 1)
    if (kept.length === all.length || all.length === 0) return whole
    const lines = "\n".repeat(whole.split("\n").length - 1)
    if (kept.length === 0) return first ? start + first.replace(/\s*,\s*$/, "") + from + lines : lines
    return `${start}${first ?? ""}{${kept.join(",")}}${from}` + "\n".repeat(lines.length - (kept.join(",") + from + start).split("\n").length + 1)
  })
}
