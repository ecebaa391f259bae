// What the page itself remembers: how it looks, what is open, what was typed.
import { effect, signal } from "@preact/signals";
import { Refused } from "../wire/api";
import { keep, readKept, writeKept } from "./kept";

export type Theme = "system" | "light" | "dark";
export type Panel = "none" | "review";
export type Dialog = "help" | "models" | "agents" | "sessions" | "commands" | "context" | "pair" | "undo" | "find" | "timeline" | "share" | "settings" | "goal" | "compare" | "delete" | "jobs" | "efforts" | "open";
export type Section = "look" | "notifications" | "models" | "agents" | "permissions" | "mcp" | "keys" | "files";

export const theme = keep<Theme>("theme", "system");
/** Colours, letters and their size, as a factor. */
export const palette = keep<"paper" | "slate" | "contrast">("palette", "paper");
export const letters = keep<"own" | "system">("letters", "own");
export const size = keep<string>("size", "1");
export const diffStyle = keep<"unified" | "split">("diff", "unified");
export const hasDetails = keep<"yes" | "no">("details", "no");
/** Whether the page shows a session that it holds itself: there is no server, so nothing can be done to it. */
export const isReadOnly = signal(false);
export const isSidebarOpen = signal(false);
export const panel = signal<Panel>("none");
export type Scope = "session" | "turn" | "tree" | "files";
/** What the review shows; "" for what there is first. */
export const reviewed = signal<Scope | "">("");
export const isTerminalOpen = signal(false);
/** The terminal that something else on the page wants to be shown. */
export const wantedTerminal = signal("");
export const dialog = signal<Dialog | null>(null);
/** The section of the settings that is shown. */
export const section = signal<Section>("look");
export const chosenAgent = signal("");
export const chosenModel = signal("");
/** How much the model thinks, where it has variants; "" for what it does by itself. */
export const chosenEffort = signal<string | null>(null);

effect(() => {
  const root = document.documentElement;
  if (theme.value === "system") delete root.dataset["theme"];
  else root.dataset["theme"] = theme.value;
});

effect(() => {
  const root = document.documentElement;
  root.dataset["palette"] = palette.value;
  root.dataset["letters"] = letters.value;
  root.style.setProperty("--scale", size.value);
});

export function switchTheme(): void {
  const order: Theme[] = ["system", "light", "dark"];
  theme.value = order[(order.indexOf(theme.value) + 1) % order.length]!;
  tell(`Theme: ${theme.value}`);
}

export interface Attachment {
  filename: string;
  mime: string;
  url: string;
}

export interface Notice {
  text: string;
  isError: boolean;
}

/** A sentence that goes away by itself. */
export const notice = signal<Notice | null>(null);
let timer: ReturnType<typeof setTimeout> | undefined;

function show(text: string, isError: boolean): void {
  clearTimeout(timer);
  notice.value = { text, isError };
  timer = setTimeout(() => (notice.value = null), isError ? 8_000 : 3_000);
}

export const tell = (text: string): void => show(text, false);

/** Show an error in its own words. Who is not signed in sees how to, and no error. */
export function fail(error: unknown): void {
  if (error instanceof Refused && error.status === 401) return;
  show(error instanceof Error ? error.message : String(error), true);
}

/** Do something that may be refused; the user sees the reason. Returns whether it was done. */
export async function attempt(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    fail(error);
    return false;
  }
}

/** What was typed for a session (or a directory's new one) and not sent. */
export const readDraft = (key: string): string => readKept(`draft.${key}`);

export const keepDraft = (key: string, text: string): void => writeKept(`draft.${key}`, text);

/** Text and files that something else on the page wants in the prompt box. */
export const insertion = signal<{ text: string; files?: readonly Attachment[] } | null>(null);

/** A prompt that was undone: it is put into the prompt box where that is empty. */
export const returned = signal<{ text: string; files: readonly Attachment[] } | null>(null);

/** Prompts that are on their way to the server. */
export const outgoing = signal<readonly { id: string; text: string }[]>([]);

/** Copy the way that also works where the page came without encryption, as on a phone in one's own network. */
function copyFromField(text: string): void {
  const field = Object.assign(document.createElement("textarea"), { value: text, className: "unseen" });
  document.body.append(field);
  field.select();
  const isDone = document.execCommand("copy");
  field.remove();
  if (!isDone) throw new Error("The browser does not let this page copy.");
}

export async function copy(text: string): Promise<void> {
  const done = await attempt(async () => (isSecureContext ? navigator.clipboard.writeText(text) : copyFromField(text)));
  if (done) tell("Copied");
}
