// An editor made with the protocol's own package for version 2, a draft, which checks every message: prompts, allows,
// prints what it saw. node draft.mjs PROMPT DIRECTORY COMMAND...: prints JSON with `states`, `kinds` of updates, `asked`
// titles, `text` of the answer, `output` of terminals, and `resumed` texts when the session is sent again.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk/experimental/v2";

const [prompt, cwd, command, ...args] = process.argv.slice(2);
const agent = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"], cwd: "/" });
const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const asked = [];
let updates = [];
let ended = () => {};

const app = client({ name: "editor" })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    asked.push([params.title, params.subject?.type, params.subject?.command ?? ""]);
    return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
  })
  .onNotification(methods.client.session.update, ({ params }) => {
    updates.push(params.update);
    if (params.update.sessionUpdate === "state_update" && params.update.state === "idle") ended(params.update.stopReason);
  });

const joined = (kind) =>
  updates.filter((each) => each.sessionUpdate === kind).map((each) => each.content.text ?? "").join("");

await app.connectWith(stream, async (ctx) => {
  const info = { name: "editor", version: "1" };
  const greeting = await ctx.request(methods.agent.initialize, { protocolVersion: 2, info, capabilities: {} });
  const { sessionId } = await ctx.request(methods.agent.session.new, { cwd });
  const stop = new Promise((resolve) => (ended = resolve));
  const { messageId } = await ctx.request(methods.agent.session.prompt, {
    sessionId,
    prompt: [{ type: "text", text: prompt }],
  });
  const seen = { version: greeting.protocolVersion, stop: await stop, asked, text: joined("agent_message_chunk") };
  seen.kinds = [...new Set(updates.map((each) => each.sessionUpdate))].sort();
  seen.echoed = updates.some((each) => each.sessionUpdate === "user_message" && each.messageId === messageId);
  seen.output = updates
    .filter((each) => each.sessionUpdate === "terminal_output_chunk")
    .map((each) => Buffer.from(each.data, "base64").toString())
    .join("");
  updates = [];
  await ctx.request(methods.agent.session.resume, { sessionId, cwd, replayFrom: { type: "start" } });
  await ctx.request(methods.agent.session.list, {}); // by its answer, all that came before was handed on
  seen.resumed = joined("agent_message_chunk");
  console.log(JSON.stringify(seen));
});
agent.stdin.end();
