// What a session is doing, from what is known of it: one table for the page, in `tests/support/standings.json`.
import type { Status } from "../wire/types";

/** The end of what was said: a prompt that nobody has read, or an answer. */
export interface LastMessage {
  role: "user" | "assistant";
  isComplete: boolean;
  /** Whether the last answer was stopped by the user. */
  isStopped: boolean;
}

export interface Facts {
  isConnected: boolean;
  status: Status["type"];
  /** Questions of the session and its subagents. */
  waits: number;
  isCompacting: boolean;
  /** Subagents that work. */
  subagents: number;
  last: LastMessage | null;
  /** What the server finds in its database, where no turn runs in it but the last answer has no end; "": not asked yet. */
  stored: "" | "running" | "waits" | "interrupted";
}

export type Standing = "lost" | "waits" | "retry" | "compacting" | "subagents" | "working" | "elsewhere" | "asksElsewhere" | "interrupted" | "unread" | "idle";

/** Whether the end of what was said looks as if nobody works on it any more: the server is asked for what it has stored. */
export const hasNoEnd = (last: LastMessage | null): boolean => last !== null && !last.isComplete;

export function standingOf({ isConnected, status, waits, isCompacting, subagents, last, stored }: Facts): Standing {
  if (!isConnected) return "lost";
  if (waits > 0) return "waits";
  if (status === "retry") return "retry";
  if (status === "busy") return isCompacting ? "compacting" : subagents > 0 ? "subagents" : "working";
  if (!hasNoEnd(last)) return "idle";
  if (last!.role === "user" && last!.isStopped) return "unread";
  if (stored === "running") return "elsewhere";
  if (stored === "waits") return "asksElsewhere";
  return stored === "interrupted" ? "interrupted" : "idle";
}

/** What the line says; "" for nothing. `seconds`: until a retry. */
export function wordsFor(standing: Standing, { status, subagents, seconds }: { status: Status; subagents: number; seconds: number }): string {
  switch (standing) {
    case "lost":
      return "The connection is lost. Connecting again…";
    case "waits":
      return "Waits for your answer";
    case "retry":
      if (status.type !== "retry") return "";
      return status.attempt > 0 ? `Retry ${status.attempt} in ${seconds} s: ${status.message}` : status.message;
    case "compacting":
      return "Summarises the conversation";
    case "subagents":
      return subagents === 1 ? "A subagent works" : `${subagents} subagents work`;
    case "working":
      return "Working";
    case "elsewhere":
      return "Works in another window or program";
    case "asksElsewhere":
      return "Waits for an answer in another window or program";
    case "interrupted":
      return "Interrupted: its program ended before the answer did";
    case "unread":
      return "Stopped before the last prompt was read";
    case "idle":
      return "";
  }
}
