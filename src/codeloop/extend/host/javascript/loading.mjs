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

/**
 * Import an extension and return `{tools, hooks, readsMessages}`: definitions by name, the hooks of each of its plugin
 * functions, and whether its file names the messages of a call's context, which are read for it then.
 */
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
  const readsMessages = /\bmessages\b/.test(fs.readFileSync(file, "utf8"))
  const stem = path.basename(file).replace(/\.\w+$/, "")
  if (kind === "tool") {
    const tools = await preparedTools(toolsOf(exports, stem))
    if (!tools.size) throw new Error("The file exports no tool: export what `tool({ description, args, execute })` returns.")
    return { tools, hooks: changersOf(tools), readsMessages }
  }
  const own = toolsOf(namedTools(exports), stem)
  const hooks = []
  for (const plugin of pluginsOf(exports, name, own.size > 0)) {
    const made = await plugin(pluginInput, options ?? undefined)
    if (made) hooks.push(made)
  }
  const tools = await preparedTools(new Map([...own, ...hooks.flatMap((made) => Object.entries(made.tool ?? {}))]))
  return { tools, hooks: [...hooks, ...changersOf(tools)].map(withToolHook), readsMessages }
}

/** Return definitions that have what `Tool.define` leaves to `init`, which is called for no agent at first. */
async function preparedTools(tools) {
  const prepared = [...tools].map(async ([name, definition]) => {
    const made = definition.init ? { ...(await definition.init({})), init: definition.init } : definition
    return [name, made.args === undefined && made.parameters ? { ...made, args: made.parameters } : made]
  })
  return new Map(await Promise.all(prepared))
}

/** Return the hook by which tools that have `init` are described to each agent; none if no tool has it. */
function changersOf(tools) {
  if (![...tools.values()].some(({ init }) => init)) return []
  const change = async ({ toolID, agent }, output) => {
    const init = tools.get(toolID)?.init
    if (!init) return
    const made = await init({ agent: { name: agent } })
    output.description = made.description ?? output.description
    if (made.args ?? made.parameters) output.parameters = parametersOf(made.args ?? made.parameters)
  }
  return [{ "tool.definition": change }]
}

/** Return hooks whose `tool(definition, context)`, where it is a function, is asked as `tool.definition` is. */
function withToolHook(made) {
  if (typeof made.tool !== "function") return made
  const change = async (input, output) => {
    await made["tool.definition"]?.(input, output)
    const definition = { id: input.toolID, name: input.toolID, ...output }
    const changed = (await made.tool(definition, { agent: input.agent })) ?? definition
    output.description = changed.description ?? output.description
    output.parameters = changed.parameters ?? output.parameters
  }
  return { ...made, "tool.definition": change }
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

const isTool = (value) => typeof value?.execute === "function" || (typeof value?.init === "function" && typeof value.id === "string")
// The exports that may be an object of tools, by their names.
const TABLES = new Set(["default", "tool", "tools"])
const namedTools = (exports) => Object.fromEntries(Object.entries(exports).filter(([name]) => TABLES.has(name)))

/** Return the tools that a module exports, by name: `default` has the name of the file, others that before theirs. */
function toolsOf(exports, stem) {
  const found = Object.entries(exports).flatMap(([name, value]) => {
    if (isTool(value)) return [[value.init ? value.id : name === "default" || (name === "tool" && !exports.default) ? stem : `${stem}_${name}`, value]]
    const isTable = TABLES.has(name) && value !== null && typeof value === "object" && !Array.isArray(value)
    return isTable ? Object.entries(value).filter(([, each]) => isTool(each)) : []
  })
  return new Map(found)
}

/** Return the plugin functions of a module: `{id, server}` as default export, or each function that it exports. */
function pluginsOf(exports, name, hasTools) {
  if (typeof exports.default?.server === "function") return [exports.default.server]
  const found = new Set(Object.values(exports).filter((value) => typeof value === "function"))
  if (!found.size && !hasTools) throw new Error(`${name} exports no plugin: export an async function that returns hooks.`)
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
