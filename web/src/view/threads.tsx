// A thread of comments at its place in the changes, and the field for a comment.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { removeThread, reply, type Remark, type Thread } from "../state/threads";
import { panel } from "../state/ui";
import { target } from "./conversation";

interface FormProps {
  label: string;
  placeholder: string;
  onClose: () => void;
  onSubmit: (text: string) => void;
}

export function CommentForm({ label, placeholder, onClose, onSubmit }: FormProps) {
  const text = useSignal("");
  const before = useRef(document.activeElement);
  useEffect(() => () => void (before.current instanceof HTMLElement && before.current.isConnected && before.current.focus({ preventScroll: true })), []);
  const submit = (): void => {
    if (!text.value.trim()) return;
    onSubmit(text.value.trim());
    onClose();
  };
  return (
    <form
      class="comment"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <textarea
        class="field"
        rows={2}
        aria-label={label}
        placeholder={placeholder}
        ref={(node) => node?.focus()}
        onInput={(event) => (text.value = event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
          else if (event.key === "Escape") onClose();
          else return;
          event.stopPropagation();
          event.preventDefault();
        }}
      />
      <div class="ask-actions">
        <button type="submit" class="button primary">
          {label}
        </button>
        <button type="button" class="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </form>
  );
}

const timeOf = (ms: number): string => new Date(ms).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });

/** Show the answer to a comment; on a phone the review is above it. */
function showAnswer(id: string): void {
  if (matchMedia("(max-width: 820px)").matches) panel.value = "none";
  setTimeout(() => (target.value = id));
}

function RemarkView({ remark }: { remark: Remark }) {
  const { text, promptID, answeredAt, answerID } = remark;
  return (
    <div class="remark">
      <p class="remark-text">{text}</p>
      <p class="remark-state">
        {!promptID && <span class="waits">Not sent yet</span>}
        {promptID && !answeredAt && "Sent, not answered yet"}
        {answeredAt && (
          <>
            <span class="done">Answered at {timeOf(answeredAt)}</span>{" "}
            <button type="button" class="link" onClick={() => showAnswer(answerID!)}>
              Show the answer
            </button>
          </>
        )}
      </p>
    </div>
  );
}

/** A thread; `isNamed`: with its file and line, where it does not stand at them. */
export function ThreadView({ thread, isNamed = false }: { thread: Thread; isNamed?: boolean }) {
  const isReplying = useSignal(false);
  return (
    <div class="thread" role="group" aria-label={`Comments on ${thread.file} line ${thread.line}`}>
      <p class="thread-place">
        {isNamed && `${thread.file} `}line {thread.line}
        <span class="spring" />
        {!isReplying.value && (
          <button type="button" class="link" onClick={() => (isReplying.value = true)}>
            Reply
          </button>
        )}
        <button type="button" class="link" onClick={() => removeThread(thread.id)}>
          Remove
        </button>
      </p>
      {thread.remarks.map((remark, index) => (
        <RemarkView key={index} remark={remark} />
      ))}
      {isReplying.value && <CommentForm label="Reply" placeholder="What else?" onClose={() => (isReplying.value = false)} onSubmit={(text) => reply(thread.id, text)} />}
    </div>
  );
}
