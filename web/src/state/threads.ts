// Comments on changed files: threads that become prompts, and know when they were answered. They stay in this browser.
import { computed, effect, signal, type ReadonlySignal } from "@preact/signals";
import { readKept, writeKept } from "./kept";
import { conversationOf, place } from "./store";

/** One comment. `promptID`: the prompt that it was sent in; then, when its answer was complete (ms), and which message that is. */
export interface Remark {
  text: string;
  promptID?: string;
  answeredAt?: number;
  answerID?: string;
}

/** Comments on one place: a line of a file as it is after the change. `excerpt`: the lines of the patch around it. */
export interface Thread {
  id: string;
  file: string;
  line: number;
  excerpt: string;
  remarks: readonly Remark[];
}

const MOST_THREADS = 100;

const scope = computed(() => place.value.sessionID || place.value.directory);
const held = signal<{ scope: string; threads: readonly Thread[] }>({ scope: "", threads: [] });

function read(name: string): Thread[] {
  try {
    const kept: unknown = JSON.parse(readKept(`threads.${name}`) || "[]");
    return Array.isArray(kept) ? (kept as Thread[]) : [];
  } catch {
    return [];
  }
}

effect(() => void (held.value = { scope: scope.value, threads: read(scope.value) }));

/** The threads of the session that is shown, or of the directory while there is none. */
export const threads: ReadonlySignal<readonly Thread[]> = computed(() => held.value.threads);

/** The comments that were not sent yet. */
export const unsent = computed(() => threads.value.flatMap((thread) => thread.remarks.filter((remark) => !remark.promptID)));

function write(next: readonly Thread[], name = scope.peek()): void {
  const kept = next.slice(-MOST_THREADS);
  writeKept(`threads.${name}`, kept.length > 0 ? JSON.stringify(kept) : "");
  if (name === scope.peek()) held.value = { scope: name, threads: kept };
}

const change = (id: string, next: (thread: Thread) => Thread): void => write(threads.peek().map((thread) => (thread.id === id ? next(thread) : thread)));

export function addThread(file: string, line: number, excerpt: string, text: string): void {
  write([...threads.peek(), { id: crypto.getRandomValues(new Uint32Array(2)).join("-"), file, line, excerpt, remarks: [{ text }] }]);
}

export const reply = (id: string, text: string): void => change(id, (thread) => ({ ...thread, remarks: [...thread.remarks, { text }] }));

export const removeThread = (id: string): void => write(threads.peek().filter((thread) => thread.id !== id));

/** The comments that were not sent, as one prompt. */
function promptOf(list: readonly Thread[]): string {
  const open = list.filter((thread) => thread.remarks.some((remark) => !remark.promptID));
  const texts = open.map(({ file, line, excerpt, remarks }) => {
    const isNew = remarks.every((remark) => !remark.promptID);
    const words = remarks.filter((remark) => !remark.promptID).map((remark) => remark.text);
    return `About @${file} line ${line}${isNew ? "" : ", again"}:\n${isNew ? `\`\`\`diff\n${excerpt}\n\`\`\`\n` : ""}${words.join("\n")}`;
  });
  return texts.join("\n\n");
}

/** Send the comments that were not sent yet by `send`, which gives the prompt's id. The first prompt may make a session: they are its own then. */
export async function sendThreads(send: (text: string, files: ReadonlySet<string>) => Promise<string>): Promise<void> {
  const [list, before] = [threads.value, scope.value];
  const promptID = await send(promptOf(list), new Set(list.map((thread) => thread.file)));
  if (scope.value !== before) write([], before);
  write(list.map((thread) => ({ ...thread, remarks: thread.remarks.map((remark) => (remark.promptID ? remark : { ...remark, promptID })) })));
}

/** A comment on a plan as the model has it: open while it has no answer. */
export interface PlanThread {
  text: string;
  file: string;
  line: number;
  answer: string;
}

/** The model's answer to a comment on a plan, which a call of `plan_exit` holds. */
function findPlanAnswer(text: string, file: string, line: number): { at: number; id: string } | undefined {
  for (const view of conversationOf(place.value.sessionID).messages.value) {
    for (const { value: part } of view.parts.value) {
      const threads = part.tool === "plan_exit" ? ((part.state?.metadata?.["threads"] ?? []) as PlanThread[]) : [];
      if (threads.some((each) => each.answer && each.file === file && each.line === line && each.text.includes(text))) return { at: part.state?.time?.end ?? Date.now(), id: view.info.value.id };
    }
  }
  return undefined;
}

/** What answered a prompt: the first complete answer behind it. */
function findAnswer(promptID: string): { at: number; id: string } | undefined {
  const { messages, byId } = conversationOf(place.value.sessionID);
  const prompt = byId.get(promptID)?.info.value.time.created;
  if (prompt === undefined) return undefined;
  for (const view of messages.value) {
    const info = view.info.value;
    if (info.role === "assistant" && info.time.created >= prompt && info.time.completed && info.finish === "stop") return { at: info.time.completed, id: info.id };
  }
  return undefined;
}

effect(() => {
  if (held.value.scope !== place.value.sessionID) return;
  let isChanged = false;
  const next = held.value.threads.map((thread) => ({
    ...thread,
    remarks: thread.remarks.map((remark) => {
      const find = thread.file.startsWith(".codeloop/plans/") ? () => findPlanAnswer(remark.text, thread.file, thread.line) : findAnswer;
      const answer = remark.promptID && !remark.answeredAt ? find(remark.promptID) : undefined;
      isChanged ||= answer !== undefined;
      return answer ? { ...remark, answeredAt: answer.at, answerID: answer.id } : remark;
    }),
  }));
  if (isChanged) queueMicrotask(() => write(next, held.peek().scope));
});
