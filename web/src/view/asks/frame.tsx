// The frame of what waits for an answer: its text scrolls, its buttons stay in sight, and neither can be used by accident.
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { isLetter, isRepeat, useFocus, useLoneKey, useSeen } from "./guard";

export interface Choice {
  key?: string;
  label: ComponentChildren;
  title?: string;
  kind?: "primary" | "danger" | "link";
  isOff?: boolean;
  act: () => void;
}

interface Props {
  /** What is shown: another name for each thing that may be answered, as a step of a question. */
  shown: string;
  label: string;
  choices: readonly Choice[];
  /** Further keys, which choose but don't answer. */
  keys?: Record<string, () => void>;
  isBusy?: boolean;
  /** What Enter does where no button has the focus. */
  onEnter?: () => void;
  onEscape?: () => void;
  children: ComponentChildren;
}

const isField = (target: EventTarget | null): boolean => target instanceof HTMLTextAreaElement || (target instanceof HTMLInputElement && target.type === "text");

export function AskFrame({ shown, label, choices, keys = {}, isBusy = false, onEnter, onEscape, children }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const isSeen = useSeen(shown) && !isBusy;
  useFocus(box, shown);
  const pressLetter = useLoneKey();
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Escape" && onEscape) {
      event.preventDefault();
      return onEscape();
    }
    if (event.key === "Enter") {
      if (isRepeat(event) || !isSeen) event.preventDefault();
      else if (onEnter && !(event.target instanceof HTMLButtonElement)) {
        event.preventDefault();
        onEnter();
      }
      return;
    }
    if (isField(event.target) || !isLetter(event) || event.key === "?") return;
    if (event.key === " ") return isRepeat(event) ? event.preventDefault() : undefined;
    const choose = keys[event.key];
    if (isSeen && choose && !isRepeat(event)) {
      event.preventDefault();
      return choose();
    }
    pressLetter(event, isSeen ? choices.find((choice) => choice.key === event.key && !choice.isOff)?.act : undefined);
  };
  return (
    <div class={`ask ${isSeen ? "seen" : ""}`} ref={box} tabindex={-1} role="group" aria-label={label} onKeyDown={onKeyDown}>
      <div class="ask-body">{children}</div>
      <div class="ask-actions">
        {choices.map(({ key, label: text, title, kind, isOff, act }, index) => (
          <button key={index} type="button" class={kind === "link" ? "link" : `button ${kind ?? ""}`} title={title} disabled={!isSeen || isOff} onClick={act}>
            {text} {key && <kbd>{key}</kbd>}
          </button>
        ))}
        <span class="ask-way quiet">
          <kbd>Esc</kbd> leads here
        </span>
      </div>
    </div>
  );
}
