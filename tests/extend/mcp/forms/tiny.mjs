// A server in one file, copied to where a form of starting one wants it.
import fs from "node:fs";
import readline from "node:readline";
// import
const act = (given) => {
  if (given.read) return fs.readFileSync(given.read, "utf8");
  if (given.write) fs.writeFileSync(given.write, given.text ?? "written");
  return "env" in given ? (process.env[given.env] ?? "") : "here";
};
const answer = (method, params) => {
  const about = { name: "tiny", version: "1" };
  if (method === "initialize")
    return { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: about };
  if (method === "tools/list")
    return { tools: [{ name: "act", inputSchema: { type: "object" } }] };
  try {
    return { content: [{ type: "text", text: act(params?.arguments ?? {}) }] };
  } catch (error) {
    return { content: [{ type: "text", text: String(error) }], isError: true };
  }
};
const known = ["initialize", "tools/list", "tools/call"];
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const rest = known.includes(method)
    ? { result: answer(method, params) }
    : { error: { code: -32601, message: "unknown" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...rest }));
});
