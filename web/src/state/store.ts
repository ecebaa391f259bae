// What the page knows, as signals. Only `events.ts` (what the server tells) and `load.ts` (what it is asked) write here.
import { computed, signal, type Signal } from "@preact/signals";
import type { Agent, Command, Message, Part, PermissionRequest, Project, Provider, QuestionRequest, Session, Status, Todo } from "../wire/types";

/** A message on the screen. Parts are signals of their own: a streamed word redraws one part. */
export interface MessageView {
  info: Signal<Message>;
  parts: Signal<Signal<Part>[]>;
}

/** The messages of one session that were read so far, oldest first. `cursor`: where older ones begin, null: nowhere. */
export interface Conversation {
  messages: Signal<MessageView[]>;
  cursor: Signal<string | null>;
  isLoaded: Signal<boolean>;
  isReadingOlder: boolean;
  todos: Signal<Todo[]>;
  byId: Map<string, MessageView>;
  partsById: Map<string, Signal<Part>>;
}

/** Which session is shown; no `sessionID`: a new one. */
export interface Place {
  directory: string;
  sessionID: string;
}

/** What a directory offers: who answers, with which model, and what can stand behind a slash. */
export interface Offers {
  agents: Agent[];
  commands: Command[];
  providers: Provider[];
  defaults: Record<string, string>;
  worktree: string;
  home: string;
  /** The folder of the user's own configuration. */
  config: string;
  branch: string;
}

export const NO_OFFERS: Offers = { agents: [], commands: [], providers: [], defaults: {}, worktree: "", home: "", config: "", branch: "" };

export const place = signal<Place>({ directory: "", sessionID: "" });

/** Wait until it is known which session or directory the page shows. */
export const untilPlaced = (): Promise<void> =>
  new Promise((resolve) => {
    const isPlaced = (): boolean => Boolean(place.value.sessionID || place.value.directory);
    if (isPlaced()) return resolve();
    const stop = place.subscribe(() => isPlaced() && (resolve(), queueMicrotask(() => stop())));
  });
export const sessions = signal<ReadonlyMap<string, Session>>(new Map());
/** Projects that have a repository, by id. */
export const projects = signal<ReadonlyMap<string, Project>>(new Map());
export const areSessionsLoaded = signal(false);
/** Whether the server has sessions that are older than those that were read. */
export const hasOlderSessions = signal(false);
export const statuses = signal<ReadonlyMap<string, Status>>(new Map());
/** Sessions whose last turn failed, or ended while another session was on the screen. */
export const outcomes = signal<ReadonlyMap<string, "failed" | "finished">>(new Map());
export const permissions = signal<readonly PermissionRequest[]>([]);
export const questions = signal<readonly QuestionRequest[]>([]);
export const offers = signal<Offers>(NO_OFFERS);
/** Counts changes of files, so that a review that is open knows when it is out of date. */
export const changes = signal(0);
/** Counts changes of the terminals. */
export const terminals = signal(0);

const conversations = new Map<string, Conversation>();

/** The conversation of a session, empty until it is read. */
export function conversationOf(sessionID: string): Conversation {
  let found = conversations.get(sessionID);
  if (!found) {
    found = { messages: signal([]), cursor: signal(null), isLoaded: signal(false), isReadingOlder: false, todos: signal([]), byId: new Map(), partsById: new Map() };
    conversations.set(sessionID, found);
  }
  return found;
}

/** The conversation of a session if any of it is held. */
export const heldConversation = (sessionID: string): Conversation | undefined => conversations.get(sessionID);

/** Forget every conversation but one: what is held of the others may be out of date. */
export function keepOnly(sessionID: string): void {
  for (const id of conversations.keys()) if (id !== sessionID) conversations.delete(id);
}

export const current = computed<Session | undefined>(() => sessions.value.get(place.value.sessionID));
export const isBusy = computed(() => (statuses.value.get(place.value.sessionID)?.type ?? "idle") !== "idle");

/** The session at the top: a subagent's session belongs to the one that started it. */
export function rootOf(sessionID: string): string {
  let id = sessionID;
  for (let above = sessions.value.get(id)?.parentID, depth = 0; above && depth < 20; depth++) {
    id = above;
    above = sessions.value.get(id)?.parentID;
  }
  return id;
}

/** Sessions that wait for an answer, each by the one at its top. */
export const waiting = computed<ReadonlySet<string>>(() => new Set([...permissions.value, ...questions.value].map((request) => rootOf(request.sessionID))));

export type Mood = "waits" | "running" | "failed" | "finished" | "idle";

/** What the sidebar says of a session. */
export function moodOf(sessionID: string): Mood {
  if (waiting.value.has(sessionID)) return "waits";
  if ((statuses.value.get(sessionID)?.type ?? "idle") !== "idle") return "running";
  return outcomes.value.get(sessionID) ?? "idle";
}

/** A copy of a map with one entry changed; undefined removes it. */
export function changed<V>(map: ReadonlyMap<string, V>, key: string, value: V | undefined): ReadonlyMap<string, V> {
  const copy = new Map(map);
  if (value === undefined) copy.delete(key);
  else copy.set(key, value);
  return copy;
}
