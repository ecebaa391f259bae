// The published client of the protocol prompts a session of `codeloop mcp serve`. Prints a line of JSON for what it sees.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'

const say = (kind, value) => console.log(JSON.stringify({ kind, value }))
const [command, ...args] = process.argv.slice(2)
const client = new Client({ name: 'interop', version: '1' }, { capabilities: { elicitation: {} } })
client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
  say('asked', params.message)
  return { action: 'accept', content: { decision: 'Allow once' } }
})
const transport = new StdioClientTransport({ command, args, cwd: process.env.PROJECT, env: { ...process.env } })
await client.connect(transport)
say('tools', (await client.listTools()).tools.map((tool) => tool.name))
const onprogress = ({ message }) => say('progress', message)
const done = await client.callTool({ name: 'prompt', arguments: { prompt: 'Write a.txt' } }, undefined, { onprogress })
say('report', done.structuredContent)
const more = { name: 'continue', arguments: { session_id: done.structuredContent.session_id, prompt: 'Thanks' } }
say('again', (await client.callTool(more)).structuredContent)
await client.close()
