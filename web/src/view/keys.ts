// What can be done, each with its keys: those of the terminal UI, after the leader Ctrl+X.
import { signal } from "@preact/signals";
import { abort, archive, compact, effortsOf, fork, lastPrompt, newSession, redo, shownModel, textOf } from "../state/actions";
import { toggleNotifications } from "../state/announce";
import { conversationOf, current, isBusy, place } from "../state/store";
import { attempt, copy, dialog, diffStyle, hasDetails, isSidebarOpen, isTerminalOpen, panel, reviewed, section, switchTheme, tell, type Section } from "../state/ui";
import { go } from "../state/route";
import type { Session } from "../wire/types";
import { undoTarget } from "./dialogs/undo";
import { promptBox } from "./prompt_box";
import { exportSession } from "./save";
import { togglePinned } from "./sidebar";

export interface Action {
  title: string;
  /** The key after the leader. */
  key?: string;
  slash?: string;
  run: () => unknown;
}

const open = (name: NonNullable<typeof dialog.value>) => (): void => void (dialog.value = name);

const openSection = (name: Section) => (): void => {
  section.value = name;
  dialog.value = "settings";
};

function askUndo(): void {
  const target = lastPrompt();
  if (isBusy.value) return tell("Stop the turn first.");
  if (!target) return tell("There is nothing to undo.");
  undoTarget.value = target;
  dialog.value = "undo";
}

function copyAnswer(): void {
  const last = conversationOf(place.value.sessionID).messages.value.findLast((view) => view.info.value.role === "assistant");
  if (last) void copy(textOf(last.parts.value.map((part) => part.value)));
}

function showParent(): void {
  const parent = current.value?.parentID;
  if (parent) go({ directory: place.value.directory, sessionID: parent });
}

function withSession(work: (session: Session) => unknown): void {
  if (isBusy.value) tell("Stop the turn first.");
  else if (current.value) work(current.value);
  else tell("There is no session yet.");
}

const actions = {
  palette: { title: "All commands", run: open("commands") },
  new: { title: "New session", key: "n", slash: "new", run: () => newSession() },
  sessions: { title: "Switch session", key: "l", slash: "sessions", run: open("sessions") },
  models: { title: "Switch model", key: "m", slash: "models", run: open("models") },
  agents: { title: "Switch agent", key: "a", slash: "agents", run: open("agents") },
  efforts: { title: "How much the model thinks", slash: "effort", run: () => (effortsOf(shownModel()).length > 0 ? open("efforts")() : tell("This model has no such choice.")) },
  undo: { title: "Undo the last turn", key: "u", slash: "undo", run: askUndo },
  redo: { title: "Redo what was undone", key: "r", slash: "redo", run: () => void redo() },
  copy: { title: "Copy the last answer", key: "y", slash: "copy", run: copyAnswer },
  compact: { title: "Compact the conversation", key: "c", slash: "compact", run: () => void compact() },
  fork: { title: "Fork the session", slash: "fork", run: () => void fork() },
  pin: { title: "Pin or unpin the session", slash: "pin", run: () => place.value.sessionID && togglePinned(place.value.sessionID) },
  archive: { title: "Archive the session", slash: "archive", run: () => withSession(archive) },
  delete: { title: "Delete the session", slash: "delete", run: () => withSession(() => void (dialog.value = "delete")) },
  timeline: { title: "Go to a prompt", key: "g", slash: "timeline", run: open("timeline") },
  share: { title: "Share the session as a file", slash: "share", run: () => (place.value.sessionID ? open("share")() : tell("There is nothing to share yet.")) },
  export: { title: "Export the session as JSON, as it is", slash: "export", run: () => (current.value ? void attempt(() => exportSession(current.value!)) : tell("There is nothing to export yet.")) },
  find: { title: "Find in the conversation", key: "f", slash: "find", run: open("find") },
  goal: { title: "Work for a goal", slash: "goal", run: open("goal") },
  compare: { title: "Compare models", slash: "compare", run: open("compare") },
  open: { title: "Open a project or folder", key: "o", slash: "open", run: open("open") },
  files: {
    title: "Files of the project",
    key: "e",
    slash: "files",
    run: () => {
      reviewed.value = "files";
      panel.value = "review";
    },
  },
  review: { title: "Review changed files", key: "v", slash: "diff", run: () => (panel.value = panel.value === "review" ? "none" : "review") },
  jobs: { title: "What runs in the background", key: "j", slash: "jobs", run: open("jobs") },
  terminal: { title: "Show or hide terminals", key: "k", slash: "terminal", run: () => (isTerminalOpen.value = !isTerminalOpen.value) },
  details: { title: "Show or hide details of calls", key: "d", slash: "details", run: () => (hasDetails.value = hasDetails.value === "yes" ? "no" : "yes") },
  split: { title: "Show changes in one column or two", slash: "split", run: () => (diffStyle.value = diffStyle.value === "split" ? "unified" : "split") },
  status: { title: "Context, cost and status", key: "s", slash: "context", run: open("context") },
  parent: { title: "Back to the parent session", key: "ArrowUp", run: showParent },
  sidebar: { title: "Show or hide the sidebar", key: "b", run: () => (isSidebarOpen.value = !isSidebarOpen.value) },
  theme: { title: "Switch theme", key: "t", slash: "theme", run: switchTheme },
  notifications: { title: "Notifications on or off", slash: "notifications", run: () => void toggleNotifications().then(() => tell("Notifications changed")) },
  settings: { title: "Settings", key: ",", slash: "settings", run: open("settings") },
  connect: { title: "Sign in at a provider", slash: "connect", run: openSection("models") },
  permissions: { title: "What is always allowed", slash: "permissions", run: openSection("permissions") },
  mcp: { title: "MCP servers", slash: "mcp", run: openSection("mcp") },
  pair: { title: "Use on another device", slash: "pair", run: open("pair") },
  help: { title: "Keys and help", slash: "help", run: open("help") },
} satisfies Record<string, Action>;

export type ActionName = keyof typeof actions;

export const ACTIONS: Record<ActionName, Action> = actions;

export const runAction = (name: ActionName): void => void ACTIONS[name].run();

/** Whether the leader was pressed and its second key may come. */
export const isLeading = signal(false);
let timer: ReturnType<typeof setTimeout> | undefined;

function lead(isOn: boolean): void {
  clearTimeout(timer);
  isLeading.value = isOn;
  if (isOn) timer = setTimeout(() => (isLeading.value = false), 4_000);
}

const isTyping = (target: EventTarget | null): boolean => target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

const hasSelection = (target: EventTarget | null): boolean =>
  target instanceof HTMLTextAreaElement || target instanceof HTMLInputElement ? target.selectionStart !== target.selectionEnd : !getSelection()?.isCollapsed;

/** When Escape was pressed, if nothing was since. */
let lastEscape = 0;

/** Handle a key for the whole page. Returns whether it was one of ours. */
export function handleKey(event: KeyboardEvent): boolean {
  if (event.target instanceof Element && event.target.closest(".xterm")) return false;
  if (isLeading.value && !/^(?:Control|Shift|Alt|Meta)$/.test(event.key)) {
    lead(false);
    const found = Object.values(ACTIONS).find((action: Action) => action.key === event.key);
    found?.run();
    return true;
  }
  const isControl = event.ctrlKey || event.metaKey;
  if (event.ctrlKey && event.key === "x" && !hasSelection(event.target)) {
    lead(true);
    return true;
  }
  if (isControl && !event.shiftKey && (event.key === "k" || event.key === "p")) {
    runAction("palette");
    return true;
  }
  if (isControl && event.key === "f" && place.value.sessionID) {
    runAction("find");
    return true;
  }
  if (event.key === "Escape") return handleEscape(event);
  lastEscape = 0;
  if (event.key === "?" && !isTyping(event.target)) {
    runAction("help");
    return true;
  }
  if (event.key === "/" && !isTyping(event.target)) {
    promptBox()?.focus();
    return false;
  }
  return false;
}

/** Close what is on top; twice: stop the turn. From the prompt box it leads to the question that waits. */
function handleEscape(event: KeyboardEvent): boolean {
  if (!dialog.value && event.target === promptBox()) document.querySelector<HTMLElement>(".ask")?.focus();
  if (dialog.value) dialog.value = null;
  else if (isSidebarOpen.value) isSidebarOpen.value = false;
  else if (panel.value !== "none" && !isTyping(event.target)) panel.value = "none";
  else if (isBusy.value) {
    const isSecond = event.timeStamp - lastEscape < 2_000;
    lastEscape = isSecond ? 0 : event.timeStamp;
    if (isSecond) void abort();
    else tell("Press Escape again to stop the turn.");
  } else return false;
  return true;
}
