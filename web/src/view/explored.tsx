// Runs of calls that only look, as reads and searches: one line for all of them, also where each is a step of its own.
import type { Signal } from "@preact/signals";
import { useState } from "preact/hooks";
import type { MessageView } from "../state/store";
import { hasDetails } from "../state/ui";
import { formatNumber } from "../text/format";
import type { Part } from "../wire/types";
import { Icon } from "./icons";
import { ToolCall } from "./tool";

const NOUNS: Record<string, string> = { read: "file", list: "folder", grep: "search", glob: "search" };

/** Parts that nothing is drawn for. */
const isUnseen = ({ type, text, synthetic, ignored, time }: Part): boolean => /^(?:step-|snapshot|patch|compaction|subtask|agent)/.test(type) || (type === "text" && (!text || synthetic === true || ignored === true)) || (type === "reasoning" && !text && !!time?.end);

const looks = ({ type, tool = "", state }: Part): boolean => type === "tool" && Object.hasOwn(NOUNS, tool) && state?.status === "completed" && !state.attachments?.length;

type Parts = readonly Signal<Part>[];

const seenParts = (view: MessageView): Parts => view.parts.value.filter((part) => !isUnseen(part.value));

/** The calls at the beginning of a list of parts that only look. */
function leading(parts: Parts): Parts {
  const end = parts.findIndex((part) => !looks(part.value));
  return end < 0 ? parts : parts.slice(0, end);
}

const isAnswer = (view: MessageView | undefined): view is MessageView => view?.info.value.role === "assistant" && !view.info.value.error;

/** Whether the step before ends with a call that looks: then the first ones of this step are in its line. */
function isContinued(views: readonly MessageView[], index: number): boolean {
  const before = views[index - 1];
  const last = isAnswer(before) && seenParts(before).at(-1);
  return !!last && looks(last.value);
}

/** The parts of a step as they are drawn: alone, or several calls in one line. Those that stand in the line of a step before are left out. */
export function foldParts(views: readonly MessageView[], index: number): Signal<Part>[][] {
  const view = views[index]!;
  let rest: Parts = seenParts(view);
  if (isContinued(views, index)) rest = rest.slice(leading(rest).length);
  const folded: Signal<Part>[][] = [];
  while (rest.length > 0) {
    const run = leading(rest);
    folded.push(run.length > 0 ? [...run] : [rest[0]!]);
    rest = rest.slice(Math.max(run.length, 1));
  }
  const open = folded.at(-1);
  if (!open || !looks(open[0]!.value)) return folded;
  for (let at = index + 1; isAnswer(views[at]); at++) {
    const parts = seenParts(views[at]!);
    const run = leading(parts);
    open.push(...run);
    if (run.length < parts.length) break;
  }
  return folded;
}

/** "2 files, 1 search" */
function summarise(calls: readonly Part[]): string {
  const counts = new Map<string, number>();
  for (const { tool } of calls) counts.set(NOUNS[tool!]!, (counts.get(NOUNS[tool!]!) ?? 0) + 1);
  return [...counts].map(([noun, count]) => formatNumber(count, noun).replace(/searchs$/, "searches")).join(", ");
}

export function Explored({ calls }: { calls: readonly Signal<Part>[] }) {
  const [isOpen, setOpen] = useState<boolean | null>(null);
  const open = isOpen ?? hasDetails.value === "yes";
  return (
    <div class="tool explored completed">
      <button type="button" class="tool-line" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class="tool-icon">
          <Icon name="search" />
        </span>
        <span class="tool-verb">Looked at</span>
        <span class="tool-words">{summarise(calls.map((part) => part.value))}</span>
        <span class="tool-chevron">
          <Icon name="chevron" size={14} />
        </span>
      </button>
      {open && (
        <div class="explored-calls">
          {calls.map((part) => (
            <ToolCall key={part.peek().id} part={part} />
          ))}
        </div>
      )}
    </div>
  );
}
