// One message: what the user wrote, or a step of the answer with its thoughts, words and calls.
import type { Signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { fork, takeBack, textOf } from "../state/actions";
import { unread } from "../state/now";
import { conversationOf, isBusy, type MessageView } from "../state/store";
import { copy, dialog, isReadOnly } from "../state/ui";
import { describeChanges, describeSideEffects } from "../text/facts";
import { formatCost, formatCount, formatDuration } from "../text/format";
import type { Message, Part } from "../wire/types";
import { ChangedFiles, changesOf } from "./changed";
import { undoTarget } from "./dialogs/undo";
import { Diff } from "./diff";
import { Explored, foldParts } from "./explored";
import { FileChip } from "./file_chip";
import { Icon, IconButton } from "./icons";
import { Markdown } from "./markdown";
import { ToolCall } from "./tool";

function Reasoning({ part }: { part: Part }) {
  const isLive = !part.time?.end;
  const took = part.time?.end ? part.time.end - part.time.start : 0;
  if (!part.text && !isLive) return null;
  return (
    <details class="reasoning">
      <summary>
        <Icon name="brain" />
        <span>{isLive ? "Thinking…" : took > 1_000 ? `Thought for ${formatDuration(took)}` : "Thought"}</span>
        <Icon name="chevron" size={14} />
      </summary>
      <Markdown text={part.text ?? ""} isLive={isLive} />
    </details>
  );
}

function PartView({ part }: { part: Signal<Part> }) {
  const value = part.value;
  switch (value.type) {
    case "text":
      return value.synthetic || value.ignored || !value.text ? null : <Markdown text={value.text} isLive={!value.time?.end} />;
    case "reasoning":
      return <Reasoning part={value} />;
    case "tool":
      return <ToolCall part={part} />;
    case "file":
      return <FileChip part={value} />;
    default:
      return null;
  }
}

/** A message of the list. */
export function MessageRow({ views, index }: { views: readonly MessageView[]; index: number }) {
  const view = views[index]!;
  if (view.info.value.role === "user") return <UserMessage view={view} />;
  const next = views[index + 1];
  const isTurnEnd = next ? next.info.value.role === "user" : !isBusy.value;
  return <AssistantMessage views={views} index={index} isTurnEnd={isTurnEnd} />;
}

const FENCE = /```(\w*)\n([\s\S]*?)\n```/;

/** What the user wrote, as it is: code between fences in its own letters, changes as changes. */
function UserText({ text }: { text: string }) {
  const pieces = text.split(FENCE); // text, language, code, text, ...
  return (
    <>
      {pieces.map((piece, index) => {
        if (index % 3 === 1) return null;
        if (index % 3 === 0) return piece.trim() && <p class="user-text">{piece.trim()}</p>;
        return pieces[index - 1] === "diff" ? <Diff key={index} patch={piece} file="" isNarrow /> : <pre class="output" key={index} tabindex={0}>{piece}</pre>;
      })}
    </>
  );
}

/** What is said below a prompt that no request has held yet. */
function Unread({ view }: { view: MessageView }) {
  return (
    <p class="unread">
      {isBusy.value ? "Waits: it is read at the next step" : "Not read yet"}
      <button type="button" class="link" onClick={() => void takeBack(view)}>
        Take it back
      </button>
    </p>
  );
}

function UserMessage({ view }: { view: MessageView }) {
  const parts = view.parts.value.map((part) => part.value);
  const words = textOf(parts);
  const extra = parts.filter((part) => part.type === "file" && !part.synthetic);
  const isCompaction = parts.some((part) => part.type === "compaction");
  if (isCompaction) return <div class="divider">The conversation so far was summarised</div>;
  if (!words && extra.length === 0) {
    const subtask = parts.find((part) => part.type === "subtask");
    return subtask ? <div class="user-message">{subtask.description}</div> : null;
  }
  return (
    <div class="user-turn">
      <div class="user-message">
        {words && <UserText text={words} />}
        {extra.length > 0 && (
          <div class="chips">
            {extra.map((part) => (
              <FileChip key={part.id} part={part} />
            ))}
          </div>
        )}
      </div>
      {!isReadOnly.value && unread.value.includes(view) && <Unread view={view} />}
      <div class="message-actions">
        <IconButton name="copy" label="Copy this prompt" onClick={() => void copy(words)} />
        {!isReadOnly.value && (
          <>
            <IconButton name="fork" label="Fork: a new session up to here" onClick={() => void fork(view.info.value.id)} />
            <IconButton
              name="undo"
              label="Undo back to here"
              disabled={isBusy.value}
              onClick={() => {
                undoTarget.value = view.info.value.id;
                dialog.value = "undo";
              }}
            />
          </>
        )}
      </div>
    </div>
  );
}

function AssistantMessage({ views, index, isTurnEnd }: { views: readonly MessageView[]; index: number; isTurnEnd: boolean }) {
  const view = views[index]!;
  const info = view.info.value;
  const drawn = foldParts(views, index);
  const effects = describeSideEffects(info.facts);
  const changed = isTurnEnd ? changesOf(view) : [];
  const isClosed = isTurnEnd && !info.error && !!info.time.completed;
  // A step whose calls all stand in the line of the one before.
  if (drawn.length + effects.length + changed.length === 0 && !info.error && !isClosed) return null;
  return (
    <div class={`answer ${info.summary ? "summary" : ""}`}>
      {drawn.map((parts) => (parts.length > 1 ? <Explored key={parts[0]!.peek().id} calls={parts} /> : <PartView key={parts[0]!.peek().id} part={parts[0]!} />))}
      {info.error && <ErrorView info={info} />}
      {effects.map((sentence) => (
        <p key={sentence} class="side-effect">
          {sentence}
        </p>
      ))}
      {changed.length > 0 && <ChangedFiles diffs={changed} messageID={info.parentID!} />}
      {isClosed && <Closing view={view} />}
    </div>
  );
}

/** How the server begins to say that nobody stopped a turn: its program ended. */
const INTERRUPTED = "Interrupted:";

function ErrorView({ info }: { info: Message }) {
  const { name, data } = info.error!;
  if (name === "MessageAbortedError") return <p class="quiet">{data.message?.startsWith(INTERRUPTED) ? data.message : "You stopped this turn."}</p>;
  return (
    <p class="failure" role="alert">
      <strong>The turn failed.</strong> {data.message ?? name}
    </p>
  );
}

/** The line below the last step of a turn. */
function Closing({ view }: { view: MessageView }) {
  const info = view.info.value;
  const [isCopied, setCopied] = useState(false);
  const tokens = info.tokens ? info.tokens.input + info.tokens.output + info.tokens.cache.read + info.tokens.cache.write : 0;
  const began = conversationOf(info.sessionID).byId.get(info.parentID ?? "")?.info.value.time.created;
  const took = began && info.time.completed ? formatDuration(info.time.completed - began) : "";
  const facts = [...describeChanges(info.facts), info.agent ?? info.mode, info.modelID, took, tokens > 0 && `${formatCount(tokens)} tokens`, info.cost ? formatCost(info.cost) : ""].filter(Boolean).join(" · ");
  return (
    <div class="closing">
      <span>{facts}</span>
      <button
        type="button"
        class="icon-button"
        aria-label="Copy the answer"
        title="Copy the answer"
        onClick={() => {
          void copy(textOf(view.parts.value.map((part) => part.value)));
          setCopied(true);
        }}
      >
        <Icon name={isCopied ? "check" : "copy"} />
      </button>
    </div>
  );
}
