// What the session on the screen is doing now.
import { computed, effect, signal } from "@preact/signals";
import { get } from "../wire/api";
import type { Status } from "../wire/types";
import { connection } from "../wire/stream";
import { conversationOf, permissions, place, questions, rootOf, sessions, statuses, type MessageView } from "./store";
import { hasNoEnd, standingOf, type Facts, type LastMessage } from "./standing";

const IDLE: Status = { type: "idle" };
/** Milliseconds until the server is asked whether another program works on what has no end, and between two such questions. */
const DOUBT = 700;
const AGAIN = 5_000;

/** What the server has stored of a session, once it was asked. */
const found = signal<{ sessionID: string; state: string } | null>(null);

const isPrompt = ({ info, parts }: MessageView): boolean => info.value.role === "user" && !parts.value.some((part) => part.value.type === "compaction");

/** The prompts that no request has held yet, oldest first: those after the one that was answered last. */
export const unread = computed<readonly MessageView[]>(() => {
  const views = conversationOf(place.value.sessionID).messages.value;
  const answered = views.findLast((view) => view.info.value.role === "assistant")?.info.value.parentID;
  const at = answered ? views.findLastIndex((view) => view.info.value.id === answered) : -1;
  return views.slice(at + 1).filter(isPrompt);
});

const last = computed<LastMessage | null>(() => {
  const views = conversationOf(place.value.sessionID).messages.value;
  const answer = views.findLast((view) => view.info.value.role === "assistant")?.info.value;
  if (unread.value.length > 0) return { role: "user", isComplete: false, isStopped: answer?.error?.name === "MessageAbortedError" };
  return answer ? { role: "assistant", isComplete: answer.time.completed !== undefined, isStopped: false } : null;
});

const isCompacting = computed<boolean>(() => {
  const view = conversationOf(place.value.sessionID).messages.value.at(-1);
  if (!view) return false;
  const info = view.info.value;
  return info.role === "user" ? !isPrompt(view) : info.summary === true && !info.time.completed;
});

const status = computed<Status>(() => statuses.value.get(place.value.sessionID) ?? IDLE);

/** Whether a session was started by another one, or by a subagent of that. */
function isBelow(id: string, above: string): boolean {
  let parent = sessions.value.get(id)?.parentID;
  for (let depth = 0; parent && parent !== above && depth < 20; depth++) parent = sessions.value.get(parent)?.parentID;
  return parent === above;
}

const subagents = computed<number>(() => [...statuses.value.keys()].filter((id) => isBelow(id, place.value.sessionID)).length);

const facts = computed<Facts>(() => {
  const { sessionID } = place.value;
  const root = rootOf(sessionID);
  const isHere = (request: { sessionID: string }): boolean => !!sessionID && rootOf(request.sessionID) === root;
  const stored = found.value?.sessionID === sessionID ? found.value.state : "";
  return {
    isConnected: connection.value !== "lost",
    status: status.value.type,
    waits: [...permissions.value, ...questions.value].filter(isHere).length,
    isCompacting: isCompacting.value,
    subagents: subagents.value,
    last: last.value,
    stored: stored as Facts["stored"],
  };
});

export const standing = computed(() => standingOf(facts.value));

export const details = computed(() => ({ status: status.value, subagents: subagents.value }));

const isDoubtful = computed(() => connection.value === "open" && status.value.type === "idle" && hasNoEnd(last.value) && !last.value?.isStopped);

async function lookUp(sessionID: string, directory: string): Promise<void> {
  const overviews = await get<{ id: string; state: string }[]>("/session/overview", directory, { limit: 50 }).catch(() => []);
  const state = overviews.find((each) => each.id === sessionID)?.state ?? "";
  if (place.value.sessionID === sessionID) found.value = { sessionID, state };
}

/** Ask the server for as long as it is not known who works on what has no end. */
export function followDoubts(): void {
  effect(() => {
    const { sessionID, directory } = place.value;
    if (!sessionID || !isDoubtful.value) return void (found.value = null);
    const ask = (): void => void lookUp(sessionID, directory);
    const timers = [setTimeout(ask, DOUBT), setInterval(ask, AGAIN)];
    return () => timers.forEach(clearTimeout);
  });
}
