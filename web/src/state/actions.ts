// What the user can do in a session; each is one request of the server's contract.
import { post, ask, get } from "../wire/api";
import type { FileOutcome, ModelRef, Part, Pty, Session } from "../wire/types";
import { go } from "./route";
import { changed, conversationOf, current, offers, place, questions, sessions, type MessageView } from "./store";
import { sendThreads } from "./threads";
import { attempt, chosenAgent, chosenEffort, chosenModel, fail, insertion, isTerminalOpen, returned, outgoing, tell, wantedTerminal, type Attachment } from "./ui";

const newMessageID = (): string => `msg_${(Date.now() * 4096).toString(16).slice(-12).padStart(12, "0")}${Array.from(crypto.getRandomValues(new Uint8Array(14)), (byte) => "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[byte % 32]).join("")}`;

/** The model that answers next: the chosen one, the session's, the configured one. */
export function currentModel(): ModelRef | undefined {
  const [providerID, ...rest] = chosenModel.value.split("/");
  if (providerID && rest.length > 0) return { providerID, modelID: rest.join("/") };
  const own = current.value?.model;
  if (own) return { providerID: own.providerID, modelID: own.id };
  return undefined;
}

/** The model that is shown as the next one: what the server takes where none is chosen is named, too. */
export function shownModel(): ModelRef | undefined {
  const first = offers.value.providers[0];
  const modelID = first && offers.value.defaults[first.id];
  const ofAgent = offers.value.agents.find((agent) => agent.name === currentAgent())?.model;
  return currentModel() ?? ofAgent ?? (modelID ? { providerID: first.id, modelID } : undefined);
}

/** The names of how much a model may think; none where it has no such choice. */
export function effortsOf(model: ModelRef | undefined): string[] {
  const provider = offers.value.providers.find((each) => each.id === model?.providerID);
  return Object.keys(provider?.models[model?.modelID ?? ""]?.variants ?? {});
}

/** How much the model thinks next; "" for what it does by itself. */
export function currentEffort(): string {
  const wanted = chosenEffort.value ?? current.value?.model?.variant ?? "";
  return effortsOf(shownModel()).includes(wanted) ? wanted : "";
}

/** What was chosen for the next prompt, as requests have it. */
function chosenFields(): { model?: ModelRef; agent?: string; variant?: string } {
  // Without a model the server goes on with the session's, and how much that thought.
  const model = currentModel() ?? (chosenEffort.value === "" ? shownModel() : undefined);
  const agent = currentAgent();
  const variant = currentEffort();
  return { ...(model ? { model } : {}), ...(agent ? { agent } : {}), ...(variant ? { variant } : {}) };
}

export function currentAgent(): string {
  const named = chosenAgent.value || current.value?.agent;
  return named ?? offers.value.agents.find((agent) => agent.mode !== "subagent" && !agent.hidden && agent.name === "build")?.name ?? "";
}

/** The session on the screen; a new one is made by the first prompt. */
async function ensureSession(): Promise<Session> {
  const shown = current.value;
  if (shown) return shown;
  const made = await post<Session>("/session", {}, place.value.directory);
  sessions.value = changed(sessions.value, made.id, made);
  conversationOf(made.id).isLoaded.value = true;
  // What was chosen for the new session is chosen for the one that it has become.
  const [agent, model, effort] = [chosenAgent.value, chosenModel.value, chosenEffort.value];
  go({ directory: made.directory, sessionID: made.id });
  [chosenAgent.value, chosenModel.value, chosenEffort.value] = [agent, model, effort];
  return made;
}

const FILE = /(?:^|\s)@([^\s@]+)/g;

/** The files and agents that a prompt names with @, as parts. */
function mentions(text: string, files: ReadonlySet<string>, directory: string): object[] {
  const parts: object[] = [];
  for (const match of text.matchAll(FILE)) {
    const name = match[1]!;
    const start = match.index + match[0].indexOf("@");
    const source = { value: `@${name}`, start, end: start + name.length + 1 };
    if (offers.value.agents.some((agent) => agent.name === name && agent.mode !== "primary")) parts.push({ type: "agent", name, source });
    else if (files.has(name)) parts.push({ type: "file", mime: name.endsWith("/") ? "application/x-directory" : "text/plain", filename: name, url: `file://${encodeURI(`${directory}/${name}`)}`, source: { type: "file", path: name, text: source } });
  }
  return parts;
}

/** Send what was typed: a prompt, a /command or a !shell line. Returns the prompt's id, "" for others. Throws Refused; then nothing was sent. */
export async function send(text: string, attachments: readonly Attachment[], files: ReadonlySet<string>): Promise<string> {
  const messageID = newMessageID();
  outgoing.value = [...outgoing.value, { id: messageID, text }];
  try {
    return await deliver(messageID, text, attachments, files);
  } finally {
    outgoing.value = outgoing.value.filter((each) => each.id !== messageID);
  }
}

async function deliver(messageID: string, text: string, attachments: readonly Attachment[], files: ReadonlySet<string>): Promise<string> {
  const chosen = chosenFields();
  const { id, directory } = await ensureSession();
  const attached = attachments.map((each) => ({ type: "file", ...each }));
  const command = /^\/(\S+)\s*([\s\S]*)$/.exec(text);
  if (text.startsWith("!")) {
    const { variant: _unused, ...others } = chosen;
    void attempt(() => post(`/session/${id}/shell`, { command: text.slice(1).trim(), ...others }, directory));
  } else if (command && offers.value.commands.some((each) => each.name === command[1])) {
    const { model, ...others } = chosen;
    const named = model ? { model: `${model.providerID}/${model.modelID}` } : {};
    void attempt(() => post(`/session/${id}/command`, { command: command[1], arguments: command[2], parts: attached, ...others, ...named }, directory));
  } else {
    const parts = [{ type: "text", text }, ...mentions(text, files, directory), ...attached];
    await post(`/session/${id}/prompt_async`, { messageID, parts, ...chosen }, directory);
    return messageID;
  }
  return "";
}

/** Have the model work until the checks of a goal pass. Throws Refused; then nothing was sent. */
export async function sendGoal(text: string, goal: { checks: string[]; rounds?: number }): Promise<void> {
  const chosen = chosenFields();
  const { id, directory } = await ensureSession();
  await post(`/session/${id}/prompt_async`, { messageID: newMessageID(), parts: [{ type: "text", text }], goal, ...chosen }, directory);
}

/** Send the comments that were not sent yet: to a plan that waits for a yes, or as one prompt. */
export async function sendComments(): Promise<void> {
  const plan = questions.value.find((request) => request.sessionID === place.value.sessionID && request.questions[0]?.header === "Plan");
  const isDone = await attempt(() =>
    sendThreads(async (text, files) => {
      if (!plan) return send(text, [], files);
      await post(`/question/${plan.id}/reply`, { answers: [[text]] }, place.value.directory);
      return plan.id;
    }),
  );
  if (isDone) tell("Your comments are sent");
}

/** Take a prompt that was not read yet out of the conversation, and put it into the prompt box. */
export async function takeBack({ info, parts }: MessageView): Promise<void> {
  const { id, directory } = at();
  const given = contentOf(parts.value.map((part) => part.value));
  const isDone = await attempt(() => ask("DELETE", `/session/${id}/message/${info.value.id}`, { directory }));
  if (isDone) insertion.value = given;
}

/** What was typed and attached for a prompt, for the prompt box. */
function contentOf(parts: readonly Part[]): { text: string; files: Attachment[] } {
  const files = parts.filter((part) => part.type === "file" && !part.synthetic && part.url?.startsWith("data:"));
  return { text: textOf(parts), files: files.map((part) => ({ filename: part.filename ?? "file", mime: part.mime ?? "text/plain", url: part.url! })) };
}

const at = (): { id: string; directory: string } => ({ id: place.value.sessionID, directory: place.value.directory });

export const newSession = (directory = place.value.directory): void => go({ directory, sessionID: "" });

export async function abort(): Promise<void> {
  const { id, directory } = at();
  if (id) await attempt(() => post(`/session/${id}/abort`, {}, directory));
}

type Reverted = Session & { outcome?: FileOutcome };

/** Whether an undo is at work, or was cut off: it has stored its diff when all files are restored. */
export const isUndoBegun = (session: Session | undefined): boolean => session?.revert !== undefined && session.revert.diff === undefined;

/** The prompt that undo takes back next: the last one that still counts, or that of an undo which was cut off. */
export function lastPrompt(): string | undefined {
  if (isUndoBegun(current.value)) return current.value?.revert?.messageID;
  const messages = conversationOf(place.value.sessionID).messages.value;
  const end = messages.findIndex((view) => view.info.value.id === current.value?.revert?.messageID);
  return messages.slice(0, end < 0 ? messages.length : end).findLast((view) => view.info.value.role === "user")?.info.value.id;
}

/** What an undo of a prompt would do to the files, without doing it. */
export async function previewUndo(messageID: string): Promise<FileOutcome> {
  const { id, directory } = at();
  return (await post<Reverted>(`/session/${id}/revert`, { messageID, dryRun: true }, directory)).outcome ?? { restored: [], unchanged: [], conflicts: [] };
}

/** Take a prompt and what came of it back; its words are in the prompt box then, unless something else is typed there. */
export async function undo(messageID: string): Promise<void> {
  const { id, directory } = at();
  const parts = conversationOf(id).byId.get(messageID)?.parts.value ?? [];
  await attempt(async () => {
    const session = await post<Reverted>(`/session/${id}/revert`, { messageID }, directory);
    if (place.value.sessionID === id) returned.value = contentOf(parts.map((part) => part.value));
    report("Undone", session.outcome);
  });
}

export async function redo(): Promise<void> {
  const { id, directory } = at();
  if (!current.value?.revert) return tell("There is nothing to redo.");
  await attempt(async () => report("Redone", (await post<Reverted>(`/session/${id}/unrevert`, {}, directory)).outcome));
}

function report(what: string, outcome: FileOutcome | undefined): void {
  const left = outcome?.conflicts.length ?? 0;
  if (left > 0) fail(new Error(`${what}, but for ${left === 1 ? outcome!.conflicts[0]!.path : `${left} files`}: ${outcome!.conflicts[0]!.reason}`));
  else tell(what);
}

export async function compact(): Promise<void> {
  const { id, directory } = at();
  const model = shownModel();
  if (!id || !model) return tell("There is nothing to compact.");
  await attempt(() => post(`/session/${id}/summarize`, model, directory));
}

export async function fork(messageID?: string): Promise<void> {
  const { id, directory } = at();
  await attempt(async () => {
    const made = await post<Session>(`/session/${id}/fork`, messageID ? { messageID } : {}, directory);
    go({ directory: made.directory, sessionID: made.id });
  });
}

export async function rename(session: Session, title: string): Promise<void> {
  await attempt(() => ask("PATCH", `/session/${session.id}`, { body: { title }, directory: session.directory }));
}

/** Put a session away: no list has it any more, its link still leads to it. */
export async function archive(session: Session): Promise<void> {
  const body = { time: { archived: Date.now() } };
  const isDone = await attempt(() => ask("PATCH", `/session/${session.id}`, { body, directory: session.directory }));
  if (!isDone) return;
  tell("Archived");
  if (place.value.sessionID === session.id) newSession(session.directory);
}

export async function remove(session: Session): Promise<void> {
  const done = await attempt(() => ask("DELETE", `/session/${session.id}`, { directory: session.directory }));
  if (done && place.value.sessionID === session.id) newSession(session.directory);
}

const directoryOf = (sessionID: string): string => sessions.value.get(sessionID)?.directory ?? place.value.directory;

export async function answerPermission(request: { id: string; sessionID: string }, reply: "once" | "session" | "always" | "reject", message = "", always?: string[]): Promise<boolean> {
  const answer = reply === "session" ? { reply: "always", scope: "session" } : { reply };
  return attempt(() => post(`/permission/${request.id}/reply`, { ...answer, ...(message ? { message } : {}), ...(always ? { always } : {}) }, directoryOf(request.sessionID)));
}

export async function answerQuestion(request: { id: string; sessionID: string }, answers: string[][]): Promise<boolean> {
  return attempt(() => post(`/question/${request.id}/reply`, { answers }, directoryOf(request.sessionID)));
}

export async function rejectQuestion(request: { id: string; sessionID: string }): Promise<void> {
  await attempt(() => post(`/question/${request.id}/reject`, {}, directoryOf(request.sessionID)));
}

/** Show what a background command prints in a terminal: all of it, and what comes. */
export async function watchOutput(path: string, title: string): Promise<void> {
  const { directory } = at();
  await attempt(async () => {
    const made = await post<Pty>("/pty", { command: "tail", args: ["-n", "+1", "-F", path], title: title.slice(0, 60) }, directory);
    wantedTerminal.value = made.id;
    isTerminalOpen.value = true;
  });
}

/** Paths below the directory that fit what was typed, best first. */
export async function findFiles(query: string): Promise<string[]> {
  const { directory } = at();
  const found = await get<{ data: { path: string }[] }>("/api/fs/find", directory, { query, limit: 20, "location[directory]": directory });
  return found.data.map((each) => each.path);
}

/** The text of a message, as it is copied. */
export const textOf = (parts: readonly Part[]): string => parts.filter((part) => part.type === "text" && !part.synthetic && part.text).map((part) => part.text).join("\n\n");
