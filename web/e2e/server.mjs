// Starts the server as CODELOOP_START says, so that a visit can kill it.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** Start the server and wait for its link. */
export async function start() {
  const { command, cwd } = JSON.parse(process.env.CODELOOP_START);
  const [program, ...words] = command;
  const running = spawn(program, words, { cwd, stdio: ["ignore", "ignore", "pipe"] });
  for await (const line of createInterface({ input: running.stderr })) {
    const found = /Open in a browser: (\S+)/.exec(line);
    if (found) return { running, link: found[1] };
  }
  throw new Error("the server did not start");
}
