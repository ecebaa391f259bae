// The reference's launcher starts `opencode serve` from the PATH, waits for its line, and hands out a client.

import assert from "node:assert/strict"

const { createOpencode, createOpencodeServer } = await import(process.argv[2])
const config = JSON.parse(process.env.CONFIG)
const authorization = "Basic " + Buffer.from(`opencode:${process.env.OPENCODE_SERVER_PASSWORD}`).toString("base64")

const server = await createOpencodeServer({ port: 0, timeout: 100_000, config })
const { createOpencodeClient } = await import(process.argv[2])
const client = createOpencodeClient({ baseUrl: server.url, headers: { authorization } })
try {
  const session = (await client.session.create(process.argv[2].endsWith("v2") ? {} : { body: {} })).data
  assert.match(session.id, /^ses_/)
  assert.equal((await client.config.get()).data.model, config.model)
  assert.equal(typeof createOpencode, "function")
  console.log(`ok ${server.url}`)
} finally {
  server.close()
}
process.exit(0)
