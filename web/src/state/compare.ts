// One prompt on several models, each in a work tree of its own: what each did, and what is kept of it. Stays in this browser.
import { computed, effect, signal } from "@preact/signals";
import { ask, get, post } from "../wire/api";
import type { FileDiff, MessageWithParts, ModelRef, Session } from "../wire/types";
import { readKept, writeKept } from "./kept";
import { loadState } from "./load";
import { offers, place, projects, sessions, statuses } from "./store";
import { attempt, fail, tell } from "./ui";

/** What one model did. `check`: the exit code of the check; `seconds` of the turn; `kept`: what was merged of it. */
export interface Row {
  name: string;
  model: string;
  directory: string;
  sessionID: string;
  state: "running" | "done";
  problem?: string;
  seconds?: number;
  cost?: number;
  check?: number | null;
  files: readonly FileDiff[];
}

export interface Comparison {
  prompt: string;
  check: string;
  directory: string;
  rows: readonly Row[];
}

/** The folder whose work trees are compared: that of the project, also when the page shows one of the trees. */
const home = computed(() => {
  const shown = sessions.value.get(place.value.sessionID);
  return (shown && projects.value.get(shown.projectID)?.worktree) || offers.value.worktree || place.value.directory;
});

export const comparison = signal<Comparison | null>(null);

effect(() => {
  const directory = home.value;
  if (comparison.peek()?.directory === directory) return;
  try {
    comparison.value = directory ? (JSON.parse(readKept(`compare.${directory}`) || "null") as Comparison | null) : null;
  } catch {
    comparison.value = null;
  }
});

function write(next: Comparison | null): void {
  const directory = next?.directory ?? comparison.peek()?.directory ?? home.peek();
  writeKept(`compare.${directory}`, next ? JSON.stringify({ ...next, rows: next.rows.map((row) => ({ ...row, files: [] })) }) : "");
  comparison.value = next;
}

function change(name: string, values: Partial<Row>): void {
  const held = comparison.peek();
  if (held) write({ ...held, rows: held.rows.map((row) => (row.name === name ? { ...row, ...values } : row)) });
}

const refOf = (model: string): ModelRef => ({ providerID: model.slice(0, model.indexOf("/")), modelID: model.slice(model.indexOf("/") + 1) });

/** Make a work tree and a session for each model, and let all work at once. Throws Refused when one can't be made. */
export async function startComparison(prompt: string, models: readonly string[], check: string): Promise<void> {
  const directory = home.peek();
  const words = prompt.split(/\s+/).slice(0, 3).join("-").slice(0, 24);
  const rows: Row[] = [];
  for (const model of models) {
    const tree = await post<{ name: string; directory: string }>("/experimental/worktree", { name: `${words}-${model.split("/").at(-1)}` }, directory);
    const session = await post<Session>("/session", {}, tree.directory);
    rows.push({ name: tree.name, model, directory: tree.directory, sessionID: session.id, state: "running", files: [] });
  }
  write({ prompt, check, directory, rows });
  await Promise.all(rows.map((row) => work(row, prompt)));
}

const working = new Set<string>();

async function work(row: Row, prompt: string): Promise<void> {
  working.add(row.sessionID);
  try {
    const answer = await post<MessageWithParts & { stop?: { reason: string; message: string } }>(`/session/${row.sessionID}/message`, { parts: [{ type: "text", text: prompt }], model: refOf(row.model) }, row.directory);
    if (answer.stop && answer.stop.reason !== "done") change(row.name, { problem: answer.stop.message || answer.stop.reason });
  } catch (error) {
    change(row.name, { problem: String(error instanceof Error ? error.message : error) });
  }
  await finish(row);
  working.delete(row.sessionID);
}

/** Run the check, and read what came of a turn. */
async function finish(row: Row): Promise<void> {
  const base = `/session/${row.sessionID}`;
  await attempt(async () => {
    const messages = await get<MessageWithParts[]>(`${base}/message`, row.directory);
    const began = messages[0]?.info.time.created ?? 0;
    const last = messages.findLast((each) => each.info.role === "assistant")?.info;
    const seconds = last?.time.completed ? (last.time.completed - began) / 1000 : 0;
    const check = comparison.peek()?.check;
    let code: number | null = null;
    if (check) {
      const ran = await post<MessageWithParts>(`${base}/shell`, { command: check, model: refOf(row.model), sandboxed: true }, row.directory);
      code = (ran.parts.find((part) => part.type === "tool")?.state?.metadata?.["exit"] as number | undefined) ?? null;
    }
    const { cost = 0 } = await get<Session>(base, row.directory);
    change(row.name, { state: "done", seconds, cost, check: code, ...(last?.error ? { problem: last.error.data.message ?? last.error.name } : {}) });
  });
  await readFiles(row);
}

async function readFiles(row: Row): Promise<void> {
  const held = comparison.peek();
  if (!held) return;
  const { files } = await get<{ files: FileDiff[] }>(`/worktree/${row.name}/diff`, held.directory);
  change(row.name, { files });
}

/** Read again what the trees hold, and which models are at work: no page may have been open for a while. */
export async function refreshComparison(): Promise<void> {
  const rows = comparison.peek()?.rows ?? [];
  for (const row of rows) if (row.state === "done") readFiles(row).catch(fail);
  await attempt(() => Promise.all(rows.filter((row) => row.state === "running").map((row) => loadState(row.directory))));
  finishEnded();
}

/** Finish the rows whose turn has ended while this page did not wait for its answer. */
export function finishEnded(): void {
  for (const row of comparison.peek()?.rows ?? []) {
    if (row.state === "done" || working.has(row.sessionID) || statuses.peek().has(row.sessionID)) continue;
    working.add(row.sessionID);
    void finish(row).finally(() => working.delete(row.sessionID));
  }
}

interface Merged {
  into: string;
  commit?: string;
  conflicts?: { file: string; text?: string }[];
}

/** Bring to the base what a model did, all of it or some files. Returns what came of it; with conflicts nothing was changed. */
export async function keepRow(row: Row, files?: readonly string[]): Promise<{ said: string; conflicts: { file: string; text?: string }[] }> {
  const held = comparison.peek()!;
  try {
    const merged = await post<Merged>(`/worktree/${row.name}/merge`, { message: held.prompt.slice(0, 70), ...(files ? { files } : {}) }, held.directory);
    return { said: merged.commit ? `${merged.into} holds ${files ? files.join(", ") : `what ${row.model} did`}.` : "", conflicts: merged.conflicts ?? [] };
  } catch (error) {
    return { said: error instanceof Error ? error.message : String(error), conflicts: [] };
  }
}

/** Remove the work trees of the comparison; what was uncommitted there stays on their branches. */
export async function removeTrees(): Promise<void> {
  const held = comparison.peek()!;
  const isDone = await attempt(async () => {
    for (const row of held.rows) await ask("DELETE", "/experimental/worktree", { body: { directory: row.directory, force: true }, directory: held.directory });
  });
  if (!isDone) return;
  write(null);
  tell("The work trees are removed; their branches stay");
}
