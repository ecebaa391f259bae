// A tool call: one line that says what is done with what, and its details when it is opened.
import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { watchOutput } from "../state/actions";
import { addressOf } from "../state/route";
import { standing } from "../state/now";
import { permissions, place, questions, statuses } from "../state/store";
import type { PlanThread } from "../state/threads";
import { hasDetails, isReadOnly } from "../state/ui";
import { FileChip, isPicture } from "./file_chip";
import { formatDuration, formatNumber, plainOutput, shortenPath } from "../text/format";
import type { Part, Todo, ToolState } from "../wire/types";
import { Counts, Diff } from "./diff";
import { Icon, type IconName } from "./icons";
import { Markdown } from "./markdown";

const MOST_LINES = 300;
const MOST_CHARACTERS = 40_000;
const TAIL_CHARACTERS = 2_000;

interface Row {
  icon: IconName;
  verb: string;
  subject: string;
  note?: ComponentChildren;
}

const text = (value: unknown): string => (typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value));

function fileDiff(state: ToolState): { file: string; patch: string; additions: number; deletions: number } | null {
  const { filediff, diff } = (state.metadata ?? {}) as { filediff?: { file?: string; patch?: string; additions?: number; deletions?: number }; diff?: string };
  const patch = filediff?.patch ?? diff;
  if (!patch) return null;
  return { file: filediff?.file ?? text(state.input["filePath"]), patch, additions: filediff?.additions ?? 0, deletions: filediff?.deletions ?? 0 };
}

/** The calls whose words would say that they were done. */
const FAILED: Record<string, string> = { read: "Read", edit: "Edit", write: "Write", apply_patch: "Patch", list: "List", webfetch: "Fetch", websearch: "Web search", grep: "Search", glob: "Search", skill: "Skill", todowrite: "Plan" };

/** What the line of a call says. */
function describe(tool: string, state: ToolState): Row {
  const { input } = state;
  const metadata = state.metadata ?? {};
  const path = (value: unknown): string => shortenPath(text(value), place.value.directory);
  const diff = fileDiff(state);
  const counts = diff ? <Counts additions={diff.additions} deletions={diff.deletions} /> : undefined;
  switch (tool) {
    case "bash":
      return { icon: "terminal", verb: state.status === "running" ? "Running" : "Ran", subject: text(input["command"]), note: exitNote(metadata["exit"]) };
    case "read":
      return { icon: "file", verb: "Read", subject: path(input["filePath"]) };
    case "edit":
      return { icon: "edit", verb: "Edited", subject: path(input["filePath"]), note: counts };
    case "write":
      return { icon: "edit", verb: metadata["exists"] === false ? "Created" : "Wrote", subject: path(input["filePath"]), note: counts };
    case "apply_patch":
      return { icon: "edit", verb: "Edited", subject: state.title ?? "files", note: counts };
    case "grep":
    case "glob":
      return { icon: "search", verb: tool === "grep" ? "Searched" : "Found files", subject: text(input["pattern"]), note: countNote(metadata["matches"] ?? metadata["count"]) };
    case "list":
      return { icon: "list", verb: "Listed", subject: path(input["path"]) || "." };
    case "webfetch":
    case "websearch":
      return { icon: "globe", verb: tool === "webfetch" ? "Fetched" : "Searched the web", subject: text(input["url"] ?? input["query"]) };
    case "task":
      return { icon: "agent", verb: text(input["subagent_type"]) || "Subagent", subject: text(input["description"]) };
    case "todowrite":
      return { icon: "list", verb: "Planned", subject: todoSummary(input["todos"]) };
    case "question":
      return { icon: "question", verb: "Asked", subject: questionSummary(input["questions"], metadata["answers"]) };
    case "plan_exit":
      return { icon: "question", verb: "Plan", subject: state.status === "completed" ? "approved" : "carry it out?", note: threadNote(metadata["threads"]) };
    case "skill":
      return { icon: "tool", verb: "Loaded skill", subject: text(input["name"]) };
    default:
      return { icon: "tool", verb: tool, subject: state.title ?? Object.values(input).map(text).join(" ").slice(0, 200) };
  }
}

const questionsOf = (questions: unknown): { question: string }[] => (Array.isArray(questions) ? (questions as { question: string }[]) : []);
function questionSummary(value: unknown, answers: unknown): string {
  const questions = questionsOf(value);
  return Array.isArray(answers) && questions.length > 0 ? formatNumber(questions.length, "question") : questions.map((each) => each.question).join(" ");
}

/** The answers of the user, each under its question. */
function Answers({ state }: { state: ToolState }) {
  const answers = state.metadata?.["answers"];
  if (!Array.isArray(answers)) return null;
  return (
    <dl class="answers">
      {questionsOf(state.input["questions"]).map(({ question }, index) => (
        <div key={index}>
          <dt>{question}</dt>
          <dd>{[answers[index]].flat().map(text).join(", ") || "No answer"}</dd>
        </div>
      ))}
    </dl>
  );
}

function threadNote(value: unknown): ComponentChildren {
  const threads = Array.isArray(value) ? (value as PlanThread[]) : [];
  const open = threads.filter((thread) => !thread.answer).length;
  return threads.length === 0 ? undefined : open > 0 ? <span class="bad">{open} of {formatNumber(threads.length, "comment")} open</span> : `${formatNumber(threads.length, "comment")} answered`;
}

/** Comments on a plan, each with the model's answer, or open. */
function PlanThreads({ threads }: { threads: readonly PlanThread[] }) {
  return (
    <ul class="plan-threads">
      {threads.map((thread, index) => (
        <li key={index}>
          <p>
            {thread.line > 0 && <span class="quiet">line {thread.line} </span>}
            {thread.text}
          </p>
          <p class="remark-state">{thread.answer ? <span class="done">{thread.answer}</span> : <span class="waits">Open</span>}</p>
        </li>
      ))}
    </ul>
  );
}

const exitNote = (exit: unknown): ComponentChildren => (typeof exit === "number" ? exit === 0 ? <span>exit 0</span> : <span class="bad">exit code {exit}</span> : undefined);

/** The last lines of what a command prints: three while it runs or where it failed, one where all went well. */
function Tail({ state }: { state: ToolState }) {
  const metadata = state.metadata ?? {};
  const isWell = state.status === "completed" && (metadata["exit"] ?? 0) === 0;
  const printed = plainOutput(text(metadata["output"] ?? state.output).slice(-TAIL_CHARACTERS)).trimEnd();
  const lines = printed.split("\n").filter((line) => line.trim()).slice(isWell ? -1 : -3);
  return lines.length > 0 ? <pre class="tail">{lines.join("\n")}</pre> : null;
}
const countNote = (count: unknown): ComponentChildren => (typeof count === "number" ? formatNumber(count, "match").replace(/matchs$/, "matches") : undefined);

function todoSummary(todos: unknown): string {
  const list = Array.isArray(todos) ? (todos as Todo[]) : [];
  return `${list.filter((todo) => todo.status === "completed").length} of ${formatNumber(list.length, "task")} done`;
}

/** What counts of a long output is at its end. */
function showEnd(box: HTMLElement | null): void {
  if (!box || box.dataset["shown"]) return;
  box.dataset["shown"] = "yes";
  box.scrollTop = box.scrollHeight;
}

/** Text that a program printed, cut where it is long. */
export function Output({ children }: { children: string }) {
  const [isWhole, setWhole] = useState(false);
  const whole = plainOutput(children).replace(/\n+$/, "");
  const lines = whole.split("\n");
  const shown = isWhole ? whole : lines.slice(-MOST_LINES).join("\n").slice(-MOST_CHARACTERS);
  if (!whole) return null;
  return (
    <>
      {shown.length < whole.length && (
        <button type="button" class="show-more" onClick={() => setWhole(true)}>
          Show all {lines.length} lines
        </button>
      )}
      <pre class="output" tabindex={0} ref={showEnd}>
        {shown}
      </pre>
    </>
  );
}

export function Todos({ todos }: { todos: readonly Todo[] }) {
  return (
    <ul class="todos">
      {todos.map((todo, index) => (
        <li key={index} class={todo.status}>
          <span class="box" role="img" aria-label={todo.status.replace("_", " ")} />
          <span>{todo.content}</span>
        </li>
      ))}
    </ul>
  );
}

function Details({ tool, state }: { tool: string; state: ToolState }) {
  const diff = fileDiff(state);
  const metadata = state.metadata ?? {};
  if (tool === "bash") {
    return (
      <>
        <pre class="command" tabindex={0}>
          {text(state.input["command"])}
        </pre>
        <Output>{text(metadata["output"] ?? state.output ?? "")}</Output>
      </>
    );
  }
  if (diff) return <Diff patch={diff.patch} file={diff.file} />;
  if (tool === "todowrite" && Array.isArray(state.input["todos"])) return <Todos todos={state.input["todos"] as Todo[]} />;
  if (tool === "plan_exit") return <PlanThreads threads={(metadata["threads"] ?? []) as PlanThread[]} />;
  if (tool === "write") return <Output>{text(state.input["content"])}</Output>;
  if (tool === "task") return <Markdown text={taskResult(state.output ?? text(state.input["prompt"]))} />;
  return (
    <>
      {Object.keys(state.input).length > 0 && <pre class="command" tabindex={0}>{JSON.stringify(state.input, null, 2)}</pre>}
      <Output>{state.output ?? ""}</Output>
    </>
  );
}

/** The words of a subagent, without the marks that are there for the model. */
const taskResult = (output: string): string => /<task_result>\n?([\s\S]*?)\n?<\/task_result>/.exec(output)?.[1] ?? output;

export function ToolCall({ part }: { part: Signal<Part> }) {
  const { tool = "tool", state } = part.value;
  const [isOpen, setOpen] = useState<boolean | null>(null);
  if (!state) return null;
  const { icon, verb, subject, note } = describe(tool, state);
  const isOpenEnded = state.status === "running" || state.status === "pending";
  const isDead = isOpenEnded && (isReadOnly.value || standing.value === "interrupted");
  const isAsked = isOpenEnded && !isDead && [...permissions.value, ...questions.value].some((request) => request.tool?.callID === part.value.callID);
  const isRunning = isOpenEnded && !isDead && !isAsked;
  const log = tool === "bash" && state.input["run_in_background"] === true ? text(state.metadata?.["outputPath"]) : "";
  const child = text(state.metadata?.["sessionId"]);
  const open = isOpen ?? (hasDetails.value === "yes" || (tool === "edit" && !!fileDiff(state)) || (tool === "plan_exit" && !!state.metadata?.["threads"]));
  const took = state.time?.end ? state.time.end - state.time.start : 0;
  return (
    <div class={`tool ${isDead ? "dead" : isAsked ? "asked" : state.status}`}>
      <button type="button" class="tool-line" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class={`tool-icon ${isRunning ? "spinning" : ""}`}>{isRunning ? <span class="spinner" /> : <Icon name={isDead ? "stop" : state.status === "error" ? "cross" : icon} />}</span>
        <span class="tool-verb">{isDead ? "Interrupted:" : isAsked ? "Waits for you:" : state.status === "error" && tool in FAILED ? `${FAILED[tool]} failed:` : verb}</span>
        <span class="tool-subject">{subject}</span>
        <span class="tool-note">
          {note}
          {took > 2_000 && <span>{formatDuration(took)}</span>}
        </span>
        <span class="tool-chevron">
          <Icon name="chevron" size={14} />
        </span>
      </button>
      {tool === "bash" && !open && <Tail state={state} />}
      {tool === "question" && <Answers state={state} />}
      {state.error && <p class="tool-error">{state.error}</p>}
      {child && (
        <a class="tool-child" href={addressOf({ directory: place.value.directory, sessionID: child })}>
          {statuses.value.has(child) ? "Watch the subagent" : "Open the subagent's session"}
        </a>
      )}
      {state.attachments?.filter(isPicture).map((file) => <FileChip key={file.id} part={file} />)}
      {log && !isReadOnly.value && (
        <button type="button" class="tool-child" onClick={() => void watchOutput(log, subject)}>
          Watch its output
        </button>
      )}
      {open && (
        <div class="tool-body">
          <Details tool={tool} state={state} />
        </div>
      )}
    </div>
  );
}
