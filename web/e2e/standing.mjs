// Reads rows of `tests/support/standings.json` from stdin, and prints what the page's reducer and its words make of each.
import { build } from "esbuild";
import { text } from "node:stream/consumers";

const { outputFiles } = await build({ entryPoints: ["src/state/standing.ts"], bundle: true, write: false, format: "esm" });
const { standingOf, wordsFor } = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);

const STATUSES = {
  idle: { type: "idle" },
  busy: { type: "busy" },
  retry: { type: "retry", attempt: 2, message: "the service is busy", next: 0 },
  resend: { type: "retry", attempt: 0, message: "sent again without pictures", next: 0 },
};
const LASTS = {
  answer: { role: "assistant", isComplete: true, isStopped: false },
  "open answer": { role: "assistant", isComplete: false, isStopped: false },
  "stopped answer": { role: "assistant", isComplete: true, isStopped: false },
  prompt: { role: "user", isComplete: false, isStopped: false },
  "prompt after stop": { role: "user", isComplete: false, isStopped: true },
};
const rows = JSON.parse(await text(process.stdin)).map(({ name, facts }) => {
  const { isConnected = true, waits = 0, isCompacting = false, subagents = 0, stored = "" } = facts;
  const status = STATUSES[facts.status ?? "idle"];
  const standing = standingOf({ isConnected, waits, isCompacting, subagents, stored, status: status.type, last: LASTS[facts.last] ?? null });
  const words = wordsFor(standing, { status, subagents, seconds: 5 });
  return { name, facts, standing, ...(words ? { words } : {}) };
});
console.log(JSON.stringify(rows));
