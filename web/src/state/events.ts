// Applies events to the store. Words that stream in are collected and drawn once a frame.
import { batch, signal, type Signal } from "@preact/signals";
import type { Message, Part, PermissionRequest, QuestionRequest, Session, Status, Todo, WireEvent } from "../wire/types";
import { announce } from "./announce";
import { changed, changes, conversationOf, heldConversation, offers, outcomes, permissions, place, questions, rootOf, sessions, statuses, terminals, type Conversation, type MessageView } from "./store";
import { chosenAgent } from "./ui";

interface Properties {
  sessionID: string;
  messageID: string;
  partID: string;
  requestID: string;
  info: unknown;
  part: Part;
  delta: string;
  status: Status;
  todos: Todo[];
  branch?: string;
}

const pending = new Map<string, { conversation: Conversation; text: string }>();
let isFrameDue = false;
/** What is being read: the session whose words count, "" for none, and the events that came since. */
const readings = new Set<{ sessionID: string; since: WireEvent[] }>();
/** Whether events are applied a second time: the user was told of them, and has seen what they ended. */
let isReplaying = false;

/** Apply events in order. */
export function applyEvents(events: WireEvent[]): void {
  for (const { sessionID, since } of readings) {
    since.push(...events.filter((event) => event.type !== "message.part.delta" || event.properties["sessionID"] === sessionID));
  }
  batch(() => events.forEach(apply));
}

/** Read something and take it in; then apply once more the events that came meanwhile: what was read may be older. */
export async function takeIn<T>(read: () => Promise<T>, take: (found: T) => void, sessionID = ""): Promise<void> {
  const reading = { sessionID, since: [] as WireEvent[] };
  readings.add(reading);
  try {
    const found = await read();
    batch(() => {
      take(found);
      isReplaying = true;
      reading.since.filter((event) => !isTextThatIsHeld(event)).forEach(apply);
    });
  } finally {
    isReplaying = false;
    readings.delete(reading);
  }
}

/** Whether an event begins or continues the text of a part that is held: applied again, it would cut or double the text. */
function isTextThatIsHeld({ type, properties }: WireEvent): boolean {
  const { sessionID, partID, part } = properties as unknown as Properties;
  const isGrowing = type === "message.part.delta" || (type === "message.part.updated" && /^(text|reasoning)$/.test(part.type) && !part.time?.end);
  return isGrowing && (heldConversation(sessionID)?.partsById.has(partID ?? part.id) ?? false);
}

function apply(event: WireEvent): void {
  const given = event.properties as unknown as Properties;
  switch (event.type) {
    case "message.part.delta":
      return addDelta(given);
    case "message.part.updated":
      return withConversation(given.sessionID, (held) => putPart(held, given.part));
    case "message.part.removed":
      return withConversation(given.sessionID, (held) => removePart(held, given.messageID, given.partID));
    case "message.updated":
      return withConversation(given.sessionID, (held) => putMessage(held, given.info as Message));
    case "message.removed":
      return withConversation(given.sessionID, (held) => removeMessage(held, given.messageID));
    case "session.created":
    case "session.updated":
      // A choice was used by now, or an approved plan is carried out by another agent.
      if (given.sessionID === place.value.sessionID && sessions.value.get(given.sessionID)?.agent !== (given.info as Session).agent) chosenAgent.value = "";
      sessions.value = changed(sessions.value, given.sessionID, given.info as Session);
      return;
    case "session.deleted":
      sessions.value = changed(sessions.value, given.sessionID, undefined);
      return;
    case "session.status":
      return setStatus(given.sessionID, given.status);
    case "session.error":
      return setFailed(given.sessionID, event.properties["error"] as { name?: string } | undefined);
    case "todo.updated":
      return withConversation(given.sessionID, (held) => void (held.todos.value = given.todos));
    case "permission.asked":
      return addPermission(event.properties as unknown as PermissionRequest);
    case "permission.replied":
      permissions.value = permissions.value.filter((request) => request.id !== given.requestID);
      return;
    case "question.asked":
      return addQuestion(event.properties as unknown as QuestionRequest);
    case "question.replied":
    case "question.rejected":
      questions.value = questions.value.filter((request) => request.id !== given.requestID);
      return;
    case "file.edited":
    case "session.diff":
      if (!isReplaying) changes.value++;
      return;
    case "vcs.branch.updated":
      if (event.directory === place.value.directory) offers.value = { ...offers.value, branch: given.branch ?? "" };
      return;
    default:
      if (event.type.startsWith("pty.") && !isReplaying) terminals.value++;
  }
}

function withConversation(sessionID: string, work: (held: Conversation) => void): void {
  const held = heldConversation(sessionID);
  if (held) work(held);
}

/** Put a message in its place by the time that it was created. */
export function putMessage(held: Conversation, info: Message): MessageView {
  const known = held.byId.get(info.id);
  if (known) {
    known.info.value = info;
    return known;
  }
  const view: MessageView = { info: signal(info), parts: signal([]) };
  held.byId.set(info.id, view);
  const list = held.messages.value;
  let at = list.length;
  while (at > 0 && list[at - 1]!.info.peek().time.created > info.time.created) at--;
  held.messages.value = [...list.slice(0, at), view, ...list.slice(at)];
  return view;
}

/** Put a part in place of the one with its id, or behind the others. Parts of messages that are not held are dropped. */
export function putPart(held: Conversation, part: Part): void {
  pending.delete(part.id);
  const known = held.partsById.get(part.id);
  if (known) {
    known.value = part;
    return;
  }
  const view = held.byId.get(part.messageID);
  if (!view) return;
  const added = signal(part);
  held.partsById.set(part.id, added);
  view.parts.value = [...view.parts.value, added];
}

function removePart(held: Conversation, messageID: string, partID: string): void {
  const view = held.byId.get(messageID);
  const gone = held.partsById.get(partID);
  held.partsById.delete(partID);
  if (view) view.parts.value = view.parts.value.filter((each: Signal<Part>) => each !== gone);
}

function removeMessage(held: Conversation, messageID: string): void {
  const gone = held.byId.get(messageID);
  held.byId.delete(messageID);
  for (const part of gone?.parts.value ?? []) held.partsById.delete(part.peek().id);
  held.messages.value = held.messages.value.filter((each) => each !== gone);
}

function addDelta({ sessionID, partID, delta }: Properties): void {
  const conversation = heldConversation(sessionID);
  if (!conversation) return;
  const waiting = pending.get(partID);
  pending.set(partID, { conversation, text: (waiting?.text ?? "") + delta });
  if (isFrameDue) return;
  isFrameDue = true;
  if (document.hidden) setTimeout(drawDeltas, 200);
  else requestAnimationFrame(drawDeltas);
}

function drawDeltas(): void {
  isFrameDue = false;
  batch(() => {
    for (const [id, { conversation, text }] of pending) {
      const part = conversation.partsById.get(id);
      if (part) part.value = { ...part.peek(), text: (part.peek().text ?? "") + text };
    }
    pending.clear();
  });
}

function setStatus(sessionID: string, status: Status): void {
  const wasBusy = statuses.value.has(sessionID);
  statuses.value = changed(statuses.value, sessionID, status.type === "idle" ? undefined : status);
  if (isReplaying) return;
  const isSeen = sessionID === place.value.sessionID && !document.hidden;
  const root = sessions.value.get(sessionID)?.parentID === undefined;
  if (status.type === "idle") {
    changes.value++;
    if (!wasBusy || !root) return;
    if (!outcomes.value.has(sessionID) && !isSeen) outcomes.value = changed(outcomes.value, sessionID, "finished");
    announce(outcomes.value.get(sessionID) === "failed" ? "The turn failed." : "The answer is complete.", sessionID);
  } else if (!wasBusy) {
    outcomes.value = changed(outcomes.value, sessionID, undefined);
  }
}

function setFailed(sessionID: string, error: { name?: string } | undefined): void {
  if (sessionID && error?.name !== "MessageAbortedError") outcomes.value = changed(outcomes.value, sessionID, "failed");
}

function addPermission(request: PermissionRequest): void {
  if (permissions.value.some((each) => each.id === request.id)) return;
  permissions.value = [...permissions.value, request];
  if (!isReplaying) announce("codeloop asks for permission.", rootOf(request.sessionID));
}

function addQuestion(request: QuestionRequest): void {
  if (questions.value.some((each) => each.id === request.id)) return;
  questions.value = [...questions.value, request];
  if (!isReplaying) announce("codeloop has a question.", rootOf(request.sessionID));
}

const createdAt = (view: MessageView | undefined): number => view?.info.peek().time.created ?? Infinity;

/** Join messages by the time that they were created; older ones come as a page that ends where the others begin. */
function inOrder(added: MessageView[], held: MessageView[]): MessageView[] {
  if (createdAt(added.at(-1)) <= createdAt(held[0])) return [...added, ...held];
  return [...held, ...added].sort((a, b) => createdAt(a) - createdAt(b));
}

/** Take in a page of messages: older ones, or all that is held anew. */
export function putMessages(sessionID: string, items: { info: Message; parts: Part[] }[]): void {
  const held = conversationOf(sessionID);
  batch(() => {
    const views: MessageView[] = [];
    for (const { info, parts } of items) {
      const known = held.byId.get(info.id);
      const view: MessageView = known ?? { info: signal(info), parts: signal([]) };
      if (known) known.info.value = info;
      else views.push(view);
      held.byId.set(info.id, view);
      const earlier = view.parts.peek();
      view.parts.value = parts.map((part) => {
        pending.delete(part.id);
        const part_ = held.partsById.get(part.id) ?? signal(part);
        part_.value = part;
        held.partsById.set(part.id, part_);
        return part_;
      });
      // One that began after the page was read is added again by its event.
      for (const part of earlier) if (!view.parts.peek().includes(part)) held.partsById.delete(part.peek().id);
    }
    if (views.length > 0) held.messages.value = inOrder(views, held.messages.value);
  });
}
