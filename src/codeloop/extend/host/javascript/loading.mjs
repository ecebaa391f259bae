// An extension's file made into what it offers: the tools of a tool file, or the hooks and tools of a plugin.

import fs from "node:fs"
import path from "node:path"
import { pathToFileURL } from "node:url"

import { parametersOf } from "./schema.mjs"

const TYPESCRIPT = /\.m?ts$/
// The hooks that a plugin of OpenCode may have; what else it returns is none.
const HOOKS = new Set([
  ...["event", "config", "chat.message", "chat.params", "chat.headers", "permission.ask", "shell.env"],
  ...["command.execute.before", "tool.execute.before", "tool.execute.after", "tool.definition"],
  ...["experimental.chat.messages.transform", "experimental.chat.system.transform", "experimental.text.complete"],
  "experimental.provider.small_model",
  ...["experimental.session.compacting", "experimental.compaction.autocontinue"],
])
// Conditions in `exports` of a package.json that this runtime meets, the best first.
const CONDITIONS = ["bun", "import", "node", "module", "default", "require"].filter((name) => name !== "bun" || process.versions.bun)

/** Import an extension and return `{tools, hooks}`: definitions by name, and the hooks of each of its plugin functions. */
export async function load({ name, path: place, kind, options }, pluginInput) {
  const file = entryOf(place)
  if (TYPESCRIPT.test(file) && !canReadTypeScript()) {
    throw new Error(`${file} is TypeScript, which needs node 22.15 or newer, or bun; this is node ${process.versions.node}.`)
  }
  let exports
  try {
    exports = await import(pathToFileURL(file).href)
  } catch (error) {
    throw explained(error, file)
  }
  if (kind === "tool") return { tools: toolsOf(exports, path.basename(file).replace(/\.\w+$/, "")), hooks: [] }
  const hooks = []
  for (const plugin of pluginsOf(exports, name)) {
    const made = await plugin(pluginInput, options ?? undefined)
    if (made) hooks.push(made)
  }
  return { tools: new Map(hooks.flatMap((made) => Object.entries(made.tool ?? {}))), hooks }
}

const canReadTypeScript = () => Boolean(process.versions.bun || process.getBuiltinModule?.("node:module").registerHooks)

function explained(error, file) {
  const text = String(error?.message ?? error)
  const missing = /Cannot find (?:package|module) '([^']+)'/.exec(text)?.[1]
  if (!process.versions.bun && (missing === "bun" || /\bbun:|Bun is not defined/.test(text))) {
    return new Error(`${text.split("\n")[0]} It needs bun: install it (npm install --global bun).`)
  }
  if (missing && !/^[./]/.test(missing)) {
    return new Error(`It imports ${missing}, which is not installed. Run \`npm install ${missing}\` in ${path.dirname(file)}.`)
  }
  return error
}

/** Return the file of an extension: of a package's folder, the one that its package.json names. */
function entryOf(place) {
  if (!fs.statSync(place).isDirectory()) return place
  const manifest = path.join(place, "package.json")
  const described = fs.existsSync(manifest) ? JSON.parse(fs.readFileSync(manifest, "utf8")) : {}
  const exported = described.exports ?? {}
  const candidates = [
    exported["./server"] && choose(exported["./server"]),
    choose(typeof exported === "string" ? exported : (exported["."] ?? (isSubpaths(exported) ? undefined : exported))),
    described.main,
    described.module,
    "index.ts",
    "index.mjs",
    "index.js",
  ]
  const files = candidates.filter(Boolean).map((candidate) => path.join(place, candidate))
  const found = files.flatMap((file) => [file, `${file}.js`, path.join(file, "index.js")]).find((file) => fs.statSync(file, { throwIfNoEntry: false })?.isFile())
  if (!found) throw new Error(`The package ${place} names no file that exists in "exports" or "main" of its package.json.`)
  return found
}

const isSubpaths = (exported) => Object.keys(exported).some((key) => key.startsWith("."))

function choose(target) {
  if (typeof target === "string" || !target) return target
  if (Array.isArray(target)) return target.map(choose).find(Boolean)
  const condition = CONDITIONS.find((name) => name in target)
  return condition && choose(target[condition])
}

function toolsOf(exports, stem) {
  const found = Object.entries(exports).filter(([, value]) => typeof value?.execute === "function")
  if (!found.length) throw new Error("The file exports no tool: export what `tool({ description, args, execute })` returns.")
  return new Map(found.map(([name, definition]) => [name === "default" ? stem : `${stem}_${name}`, definition]))
}

/** Return the plugin functions of a module: `{id, server}` as default export, or each function that it exports. */
function pluginsOf(exports, name) {
  if (typeof exports.default?.server === "function") return [exports.default.server]
  const found = new Set(Object.values(exports).filter((value) => typeof value === "function"))
  if (!found.size) throw new Error(`${name} exports no plugin: export an async function that returns hooks.`)
  return found
}

/** Return what is told of an extension: its tools, the names of its hooks, how one signs in with it. */
export function describe({ tools, hooks }) {
  const names = new Set(hooks.flatMap((made) => Object.keys(made).filter((name) => HOOKS.has(name) && made[name])))
  const auth = hooks.find((made) => made.auth)?.auth
  if (hooks.some((made) => made.provider?.models)) names.add("config")
  return {
    tools: [...tools].map(([name, definition]) => ({
      name,
      description: definition.description ?? "",
      parameters: parametersOf(definition.args),
    })),
    hooks: [...names].map((name) => ({ name, policy: hooks.some((made) => made[name]?.policy === true) })),
    ...(auth ? { auth: { provider: auth.provider, methods: (auth.methods ?? []).map(methodOf), loader: Boolean(auth.loader) } } : {}),
  }
}

function methodOf({ type, label, prompts = [] }) {
  const shown = prompts.map(({ validate, condition, ...told }) => ({ ...told, ...(condition ? { conditional: true } : {}) }))
  return { type, label, prompts: shown }
}
