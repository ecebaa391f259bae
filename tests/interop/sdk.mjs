// Drives a server with the reference's own client and says of each step whether it did what it should.
//
// node sdk.mjs ENTRY: "." or "./v2". The environment names the server: BASE_URL, PASSWORD, DIRECTORY.
// Prints a line a step, `ok NAME` or `not ok NAME: why`, and exits with 1 when one failed.

import assert from "node:assert/strict"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"

const entry = process.argv[2]
const flat = entry === "./v2"
const { createOpencodeClient } = await import(flat ? "@opencode-ai/sdk/v2" : "@opencode-ai/sdk")
const { BASE_URL: baseUrl, PASSWORD: password, DIRECTORY: directory } = process.env
const authorization = "Basic " + Buffer.from(`opencode:${password}`).toString("base64")
const client = createOpencodeClient({ baseUrl, directory, headers: { authorization } })
const DEADLINE = 120_000
const model = { providerID: "mine", modelID: "coder" }
let failed = 0

// The older entry point takes {path, query, body} and calls a session `id`; the newer one takes all fields at once.
async function ask(area, method, { path = {}, query = {}, body } = {}) {
  const { sessionID, ptyID, ...rest } = path
  const id = sessionID ?? ptyID
  const given = flat ? { ...path, ...query, ...body } : { path: { ...(id && { id }), ...rest }, query, body }
  const answer = await within(client[area][method](given), `${area}.${method}`)
  if (answer.error !== undefined) throw new Error(`${area}.${method}: ${answer.response?.status} ${JSON.stringify(answer.error)}`)
  return answer.data
}

function within(promise, what) {
  let timer
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`${what}: no answer`)), DEADLINE)))
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

async function step(name, work) {
  try {
    await within(work(), name)
    console.log(`ok ${name}`)
  } catch (error) {
    failed += 1
    console.log(`not ok ${name}: ${String(error.message).replaceAll("\n", " ").slice(0, 600)}`)
  }
}

class Events {
  constructor(stream) {
    this.seen = []
    this.waiting = []
    this.reading = this.read(stream)
  }
  async read(stream) {
    for await (const event of stream) {
      this.seen.push(event)
      this.waiting = this.waiting.filter((each) => !each(event))
    }
  }
  next(wanted, from = 0) {
    const found = this.seen.slice(from).find(wanted)
    if (found) return Promise.resolve(found)
    return within(
      new Promise((resolve) => this.waiting.push((event) => wanted(event) && (resolve(event), true))),
      `event ${wanted}`,
    )
  }
}

const make = (body) => ask("session", "create", { body })
const say = (sessionID, text, more) =>
  ask("session", "prompt", { path: { sessionID }, body: { model, parts: [{ type: "text", text }], ...more } })
const textOf = (answer) => answer.parts.filter((part) => part.type === "text").map((part) => part.text).join("")

async function reply(request, response) {
  if (flat) return ask("permission", "reply", { path: { requestID: request.id }, body: { reply: response } })
  const answer = await client.postSessionIdPermissionsPermissionId({
    path: { id: request.sessionID, permissionID: request.id },
    body: { response },
  })
  assert.equal(answer.error, undefined)
  return answer.data
}

const stop = new AbortController()
const subscribed = await client.event.subscribe(...(flat ? [{}, { signal: stop.signal }] : [{ signal: stop.signal }]))
const events = new Events(subscribed.stream)
const everywhere = new Events((await client.global.event({ signal: stop.signal })).stream)
await step("events: both streams say that they are open", async () => {
  await events.next((event) => event.type === "server.connected")
  await everywhere.next((event) => event.payload.type === "server.connected")
})

const session = await make({ title: "interop" })
let turn

await step("session: create, get, list", async () => {
  assert.match(session.id, /^ses_[0-9a-f]{12}[0-9A-Za-z]{14}$/)
  assert.equal(session.title, "interop")
  assert.deepEqual((await ask("session", "get", { path: { sessionID: session.id } })).id, session.id)
  const listed = await ask("session", "list")
  assert.ok(listed.some((each) => each.id === session.id && each.directory === directory))
  await events.next((event) => event.type === "session.created" && event.properties.info.id === session.id)
})

await step("session: update", async () => {
  const changed = await ask("session", "update", { path: { sessionID: session.id }, body: { title: "renamed" } })
  assert.equal(changed.title, "renamed")
  await events.next((event) => event.type === "session.updated" && event.properties.info.title === "renamed")
})

await step("session: children", async () => {
  const child = await make({ parentID: session.id })
  const children = await ask("session", "children", { path: { sessionID: session.id } })
  assert.deepEqual(children.map((each) => each.id), [child.id])
})

await step("prompt: a tool asks, the reply comes through an event, the turn goes on", async () => {
  const running = say(session.id, "write the note")
  const asked = await events.next((event) => event.type === "permission.asked")
  assert.equal(asked.properties.permission, "bash")
  assert.ok(Array.isArray(asked.properties.patterns) && Array.isArray(asked.properties.always))
  assert.equal(await reply(asked.properties, "once"), true)
  turn = await running
  assert.equal(textOf(turn), "Done.")
  assert.equal(turn.info.role, "assistant")
  assert.equal(turn.info.finish, "stop")
  assert.ok(turn.info.tokens.input > 0 && turn.info.time.completed >= turn.info.time.created)
  assert.ok(existsSync(join(directory, "said.txt")))
})

await step("events: a turn in its order, deltas sum up to the text", async () => {
  await events.next((event) => event.type === "session.idle" && event.properties.sessionID === session.id)
  const own = events.seen.filter((event) => event.properties.sessionID === session.id)
  const kinds = own.map((event) => event.type)
  for (const kind of ["session.status", "message.updated", "message.part.updated", "permission.asked", "permission.replied"])
    assert.ok(kinds.includes(kind), kind)
  const deltas = own.filter((event) => event.type === "message.part.delta")
  assert.equal(deltas.map((event) => event.properties.delta).join(""), "Done.")
  const tools = own.filter((event) => event.type === "message.part.updated" && event.properties.part.type === "tool")
  const states = new Set(tools.map((event) => event.properties.part.state.status))
  assert.deepEqual([...states].filter((state) => ["running", "completed"].includes(state)), ["running", "completed"])
  await everywhere.next((event) => event.directory === directory && event.payload.type === "session.idle")
})

await step("messages: list, limit, one", async () => {
  const messages = await ask("session", "messages", { path: { sessionID: session.id } })
  assert.deepEqual(messages.map((each) => each.info.role), ["user", "assistant", "assistant"])
  assert.deepEqual(messages[1].parts.filter((part) => part.type === "tool").map((part) => part.tool), ["write", "bash"])
  const newest = await ask("session", "messages", { path: { sessionID: session.id }, query: { limit: 1 } })
  assert.deepEqual(newest.map((each) => each.info.id), [turn.info.id])
  const one = await ask("session", "message", { path: { sessionID: session.id, messageID: turn.info.id } })
  assert.equal(textOf(one), "Done.")
})

await step("session: diff of a turn, status", async () => {
  const diff = await ask("session", "diff", { path: { sessionID: session.id }, query: { messageID: turn.info.parentID } })
  assert.ok(diff.some((each) => each.file?.endsWith("note.txt") && each.additions === 1), JSON.stringify(diff))
  assert.equal((await ask("session", "status"))[session.id], undefined)
})

await step("session: revert and unrevert move the files", async () => {
  const reverted = await ask("session", "revert", { path: { sessionID: session.id }, body: { messageID: turn.info.parentID } })
  assert.equal(reverted.revert.messageID, turn.info.parentID)
  assert.equal(existsSync(join(directory, "note.txt")), false)
  const again = await ask("session", "unrevert", { path: { sessionID: session.id } })
  assert.equal(again.revert, undefined)
  assert.equal(readFileSync(join(directory, "note.txt"), "utf8"), "kept\n")
})

await step("session: fork", async () => {
  const fork = await ask("session", "fork", { path: { sessionID: session.id }, body: {} })
  assert.notEqual(fork.id, session.id)
  assert.match(fork.title, /\(fork #1\)$/)
  const messages = await ask("session", "messages", { path: { sessionID: fork.id } })
  assert.equal(messages.length, 3)
})

await step("session: todo", async () => {
  assert.deepEqual(await ask("session", "todo", { path: { sessionID: session.id } }), [])
})

await step("session: summarize", async () => {
  assert.equal(await ask("session", "summarize", { path: { sessionID: session.id }, body: model }), true)
  await events.next((event) => event.type === "session.compacted" && event.properties.sessionID === session.id)
})

await step("session: command", async () => {
  const other = await make({})
  const from = events.seen.length
  const running = ask("session", "command", {
    path: { sessionID: other.id },
    body: { command: "greet", arguments: "you", model: "mine/talker" },
  })
  const answer = await running
  assert.equal(textOf(answer), "Hello.")
  const done = await events.next((event) => event.type === "command.executed", from)
  assert.deepEqual([done.properties.name, done.properties.arguments], ["greet", "you"])
})

await step("session: shell", async () => {
  const other = await make({})
  const answer = await ask("session", "shell", { path: { sessionID: other.id }, body: { command: "echo shown", agent: "build" } })
  const message = answer.parts ?? (await ask("session", "messages", { path: { sessionID: other.id } }))[1].parts
  const tool = message.find((part) => part.type === "tool")
  assert.equal(tool.state.status, "completed")
  assert.equal(tool.state.output.trim(), "shown")
})

await step("session: prompt_async and abort", async () => {
  const other = await make({})
  const from = events.seen.length
  await ask("session", "promptAsync", {
    path: { sessionID: other.id },
    body: { model: { ...model, modelID: "sleeper" }, parts: [{ type: "text", text: "sleep" }] },
  })
  await events.next((event) => event.type === "message.updated" && event.properties.info.role === "assistant" && event.properties.sessionID === other.id, from)
  assert.deepEqual((await ask("session", "status"))[other.id], { type: "busy" })
  assert.equal(await ask("session", "abort", { path: { sessionID: other.id } }), true)
  await events.next((event) => event.type === "session.idle" && event.properties.sessionID === other.id, from)
  const messages = await ask("session", "messages", { path: { sessionID: other.id } })
  assert.equal(messages.at(-1).info.error.name, "MessageAbortedError")
})

await step("session: delete", async () => {
  const other = await make({})
  assert.equal(await ask("session", "delete", { path: { sessionID: other.id } }), true)
  await events.next((event) => event.type === "session.deleted" && event.properties.info.id === other.id)
  const gone = await client.session.get(flat ? { sessionID: other.id } : { path: { id: other.id } })
  assert.equal(gone.response.status, 404)
  assert.equal(gone.error.name, "NotFoundError")
})

await step("file: list, read, status", async () => {
  const nodes = await ask("file", "list", { query: { path: "" } })
  assert.deepEqual(nodes.filter((node) => node.name === "src").map((node) => node.type), ["directory"])
  const content = await ask("file", "read", { query: { path: "src/main.py" } })
  assert.deepEqual([content.type, content.content], ["text", "print('interop')"])
  const status = await ask("file", "status")
  assert.ok(status.some((each) => each.path === "note.txt" && each.status === "added"), JSON.stringify(status))
})

await step("find: text, files, symbols", async () => {
  const lines = await ask("find", "text", { query: { pattern: "inter.p" } })
  assert.deepEqual(lines.map((line) => [line.path.text, line.line_number, line.submatches[0].match.text]), [["src/main.py", 1, "interop"]])
  assert.deepEqual(await ask("find", "files", { query: { query: "main" } }), ["src/main.py"])
  assert.deepEqual(await ask("find", "symbols", { query: { query: "main" } }), [])
})

await step("config, providers", async () => {
  const config = await ask("config", "get")
  assert.equal(config.model, "mine/coder")
  const { providers, default: first } = await ask("config", "providers")
  const mine = providers.find((each) => each.id === "mine")
  assert.deepEqual(Object.keys(mine.models).sort(), ["coder", "sleeper", "talker"])
  assert.equal(mine.models.coder.limit.context, 131072)
  assert.ok(first.mine in mine.models)
  const known = await ask("provider", "list")
  assert.ok(known.connected.includes("mine") && known.all.some((each) => each.id === "anthropic"))
  assert.equal(typeof (await ask("provider", "auth")), "object")
})

await step("app: agents, commands, log; tools; mcp, lsp, formatter", async () => {
  const agents = await ask("app", "agents")
  assert.ok(agents.some((agent) => agent.name === "build" && agent.mode === "primary"))
  const commands = await ask("command", "list")
  assert.deepEqual(commands.filter((each) => each.name === "greet").map((each) => each.hints), [["$ARGUMENTS"]])
  assert.equal(await ask("app", "log", { body: { service: "interop", level: "info", message: "hello" } }), true)
  const ids = await ask("tool", "ids")
  for (const id of ["bash", "edit", "read", "write"]) assert.ok(ids.includes(id), id)
  const tools = await ask("tool", "list", { query: { provider: "mine", model: "coder" } })
  assert.ok(tools.every((tool) => tool.id && tool.description && tool.parameters.type === "object"))
  assert.deepEqual(await ask("mcp", "status"), {})
  assert.ok(Array.isArray(await ask("lsp", "status")))
  assert.ok(Array.isArray(await ask("formatter", "status")))
})

await step("path, project, vcs", async () => {
  assert.equal((await ask("path", "get")).directory, directory)
  const current = await ask("project", "current")
  assert.deepEqual([current.worktree, current.vcs], [directory, "git"])
  assert.ok((await ask("project", "list")).some((each) => each.id === current.id))
  assert.equal((await ask("vcs", "get")).branch, "main")
})

await step("tui: what is sent becomes an event", async () => {
  const from = events.seen.length
  assert.equal(await ask("tui", "showToast", { body: { message: "look", variant: "info" } }), true)
  const toast = await events.next((event) => event.type === "tui.toast.show", from)
  assert.deepEqual([toast.properties.message, toast.properties.variant], ["look", "info"])
  assert.equal(await ask("tui", "appendPrompt", { body: { text: "typed" } }), true)
  assert.equal((await events.next((event) => event.type === "tui.prompt.append", from)).properties.text, "typed")
  assert.equal(await ask("tui", "executeCommand", { body: { command: "session_new" } }), true)
  assert.equal((await events.next((event) => event.type === "tui.command.execute", from)).properties.command, "session.new")
})

await step("pty: create, list, get, update, remove", async () => {
  const from = events.seen.length
  const pty = await ask("pty", "create", { body: { command: "cat", title: "a cat" } })
  assert.deepEqual([pty.title, pty.command, pty.status], ["a cat", "cat", "running"])
  await events.next((event) => event.type === "pty.created" && event.properties.info.id === pty.id, from)
  assert.ok((await ask("pty", "list")).some((each) => each.id === pty.id))
  assert.equal((await ask("pty", "get", { path: { ptyID: pty.id } })).pid, pty.pid)
  const changed = await ask("pty", "update", { path: { ptyID: pty.id }, body: { title: "tom", size: { rows: 10, cols: 40 } } })
  assert.equal(changed.title, "tom")
  assert.equal(await ask("pty", "remove", { path: { ptyID: pty.id } }), true)
  await events.next((event) => event.type === "pty.deleted" && event.properties.id === pty.id, from)
  assert.ok(!(await ask("pty", "list")).some((each) => each.id === pty.id))
})

await step("errors: without the credential, and what does not fit", async () => {
  const anonymous = createOpencodeClient({ baseUrl, directory })
  assert.equal((await anonymous.session.list()).response.status, 401)
  const refused = await client.session.prompt(flat ? { sessionID: session.id } : { path: { id: session.id }, body: {} })
  assert.equal(refused.response.status, 400)
  assert.equal(refused.error.name, "BadRequest")
})

if (flat) {
  await step("permission and question: what waits", async () => {
    assert.deepEqual(await ask("permission", "list"), [])
    assert.deepEqual(await ask("question", "list"), [])
  })
  await step("skills, health, location, files", async () => {
    assert.ok(Array.isArray(await ask("app", "skills")))
    const health = await client.global.health()
    assert.equal(health.data.healthy, true)
    const location = await client.v2.location.get({ location: { directory } })
    assert.equal(location.data.directory, directory)
    const found = await client.v2.fs.find({ query: "main", location: { directory } })
    assert.deepEqual(found.data.data.map((each) => each.path), ["src/main.py"])
  })
  await step("session: part update and delete, message delete", async () => {
    const other = await make({})
    const path = { sessionID: other.id }
    await say(other.id, "talk", { model: { ...model, modelID: "talker" } })
    const [, answer] = await ask("session", "messages", { path })
    const part = answer.parts.find((each) => each.type === "text")
    const where = { sessionID: other.id, messageID: answer.info.id, partID: part.id }
    const changed = await client.part.update({ ...where, part: { ...part, text: "changed" } })
    assert.equal(changed.data.text, "changed")
    assert.equal((await client.part.delete(where)).data, true)
    assert.equal(await ask("session", "deleteMessage", { path: { ...path, messageID: answer.info.id } }), true)
    assert.equal((await ask("session", "messages", { path })).length, 1)
  })
}

stop.abort()
process.exit(failed ? 1 : 0)
