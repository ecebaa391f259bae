// Reads what the page shows: at its start, when a place is opened, and again after events were missed.
import { get, getPage } from "../wire/api";
import type { Agent, Command, MessageWithParts, PermissionRequest, Project, Provider, QuestionRequest, Session, Status, Todo } from "../wire/types";
import { putMessages, takeIn } from "./events";
import { areSessionsLoaded, changed, conversationOf, hasOlderSessions, heldConversation, keepOnly, NO_OFFERS, offers, outcomes, permissions, place, projects, questions, sessions, statuses } from "./store";

const PAGE = 100;
const OLDER = 200;
const SESSIONS = 1_000;
/** Messages to read at once on the way to one that was found far above. */
const FAR = 1_000;

interface Paths {
  directory: string;
  worktree: string;
  home: string;
  config: string;
}

/** The directory that the server was started in. */
export const findDirectory = async (): Promise<string> => (await get<Paths>("/path")).directory;

/** How many sessions are read; more once older ones were asked for. */
let wantedSessions = SESSIONS;

/** Read the newest sessions of all projects. */
export async function loadSessions(directory: string): Promise<void> {
  const read = () => Promise.all([get<Project[]>("/project", directory), get<Session[]>("/session/everything", directory, { limit: wantedSessions })]);
  await takeIn(read, ([known, everywhere]) => {
    projects.value = new Map(known.map((project) => [project.id, project]));
    // The one on the screen may be older than all of them.
    const shown = sessions.value.get(place.value.sessionID);
    sessions.value = new Map([...everywhere, ...(shown ? [shown] : [])].map((session) => [session.id, session]));
    hasOlderSessions.value = everywhere.length >= wantedSessions;
    areSessionsLoaded.value = true;
  });
}

/** Read older sessions, too. */
export async function loadOlderSessions(): Promise<void> {
  wantedSessions *= 3;
  await loadSessions(place.value.directory);
}

/** Have the server look for sessions by a part of their titles: what it finds is among the others then. */
export async function searchSessions(query: string): Promise<void> {
  const found = await get<Session[]>("/session/everything", place.value.directory, { search: query, limit: 100 });
  const fresh = found.filter((session) => !sessions.value.has(session.id));
  if (fresh.length > 0) sessions.value = new Map([...sessions.value, ...fresh.map((session) => [session.id, session] as const)]);
}

/** Read what works and what waits in a directory. */
export async function loadState(directory: string): Promise<void> {
  const read = () =>
    Promise.all([
      get<Record<string, Status>>("/session/status", directory),
      get<PermissionRequest[]>("/permission", directory),
      get<QuestionRequest[]>("/question", directory),
    ]);
  await takeIn(read, ([busy, asked, questioned]) => {
    const isElsewhere = (id: string): boolean => (sessions.value.get(id)?.directory ?? directory) !== directory;
    statuses.value = new Map([...[...statuses.value].filter(([id]) => isElsewhere(id)), ...Object.entries(busy)]);
    permissions.value = [...permissions.value.filter((each) => isElsewhere(each.sessionID)), ...asked];
    questions.value = [...questions.value.filter((each) => isElsewhere(each.sessionID)), ...questioned];
  });
}

/** Read what works and what waits wherever something does, as far as the page knows, and in the shown directory. */
export async function loadStates(): Promise<void> {
  const ids = [...statuses.value.keys(), ...permissions.value.map((each) => each.sessionID), ...questions.value.map((each) => each.sessionID)];
  const directories = new Set([place.value.directory, ...ids.map((id) => sessions.value.get(id)?.directory ?? "")].filter(Boolean));
  await Promise.all([...directories].map(loadState));
}

/** Read what a directory offers. */
export async function loadOffers(directory: string): Promise<void> {
  const read = () =>
    Promise.all([
      get<Agent[]>("/agent", directory),
      get<Command[]>("/command", directory),
      get<{ providers: Provider[]; default: Record<string, string> }>("/config/providers", directory),
      get<Paths>("/path", directory),
      get<{ branch?: string }>("/vcs", directory).catch(() => ({}) as { branch?: string }),
    ]);
  await takeIn(read, ([agents, commands, models, paths, vcs]) => {
    if (place.value.directory !== directory) return;
    offers.value = { agents, commands, providers: models.providers, defaults: models.default, worktree: paths.worktree, home: paths.home, config: paths.config, branch: vcs.branch ?? "" };
  });
}

/** Read the newest messages of a session and its todo list; `afresh`: what is held is out of date. */
export async function loadConversation(sessionID: string, directory: string, afresh = false): Promise<void> {
  const held = conversationOf(sessionID);
  const read = () =>
    Promise.all([
      getPage<MessageWithParts>(`/session/${sessionID}/message`, directory, { limit: PAGE }),
      get<Todo[]>(`/session/${sessionID}/todo`, directory),
      get<Session>(`/session/${sessionID}`, directory),
    ]);
  await takeIn(read, ([page, todos, session]) => {
    sessions.value = changed(sessions.value, sessionID, session);
    if (afresh) {
      held.messages.value = [];
      held.byId.clear();
      held.partsById.clear();
    }
    if (afresh || !held.isLoaded.value) held.cursor.value = page.cursor;
    held.todos.value = todos;
    putMessages(sessionID, page.items);
    held.isLoaded.value = true;
    const error = page.items.at(-1)?.info.error;
    if (error && error.name !== "MessageAbortedError") outcomes.value = changed(outcomes.value, sessionID, "failed");
  }, sessionID);
}

/** Read what is above until a message is held. Returns whether it is. */
export async function loadUntil(messageID: string, sessionID: string, directory: string): Promise<boolean> {
  const held = conversationOf(sessionID);
  while (!held.byId.has(messageID)) {
    const before = held.cursor.value;
    if (before === null) {
      if (!held.isReadingOlder) return false;
      await new Promise((resolve) => setTimeout(resolve, 50)); // another reading is at it
    } else await loadOlder(sessionID, directory, FAR);
    if (place.value.sessionID !== sessionID) return false;
  }
  return true;
}

/** Read the page before the oldest message that is held. */
export async function loadOlder(sessionID: string, directory: string, limit = OLDER): Promise<void> {
  const held = conversationOf(sessionID);
  const before = held.cursor.value;
  if (before === null) return;
  held.cursor.value = null;
  held.isReadingOlder = true;
  try {
    const read = () => getPage<MessageWithParts>(`/session/${sessionID}/message`, directory, { limit, before });
    await takeIn(read, (page) => {
      putMessages(sessionID, page.items);
      held.cursor.value = page.cursor;
    }, sessionID);
  } catch (error) {
    held.cursor.value = before;
    throw error;
  } finally {
    held.isReadingOlder = false;
  }
}

/** The directory of which all was read: what failed, as before the browser was signed in, is read once more. */
let complete = "";

/** Read the current place: also what is around the session, where that was not read yet. */
export async function loadPlace(): Promise<void> {
  const { directory, sessionID } = place.value;
  const conversation = sessionID && !heldConversation(sessionID)?.isLoaded.value ? loadConversation(sessionID, directory) : undefined;
  await Promise.all([directory === complete ? undefined : loadAround(directory), conversation]);
}

async function loadAround(directory: string): Promise<void> {
  complete = "";
  offers.value = NO_OFFERS;
  await Promise.all([loadState(directory), loadOffers(directory)]);
  if (place.value.directory === directory) complete = directory;
}

/** Read everything again, because events were missed. */
export async function reload(): Promise<void> {
  const { directory, sessionID } = place.value;
  keepOnly(sessionID);
  const conversation = sessionID ? [loadConversation(sessionID, directory, true)] : [];
  await Promise.all([loadSessions(directory), loadState(directory), loadOffers(directory), ...conversation]);
}
