// The frame of every dialog, and a list to choose from with the keyboard.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { dialog } from "../../state/ui";
import { IconButton } from "../icons";

export const close = (): void => void (dialog.value = null);

/** A dialog of the browser: what is behind it can't be reached, and the focus goes back where it was. */
export function Frame({ title, children, size = "" }: { title: string; children: ComponentChildren; size?: "" | "wide" | "sheet" }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    box.current?.showModal();
    // What is to be done has the focus, not the way out.
    (box.current?.querySelector<HTMLElement>("[autofocus], .button.primary:not(:disabled)") ?? box.current)?.focus();
    return () => {
      box.current?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={box}
      class={size}
      tabindex={-1}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClick={(event) => event.target === box.current && close()}
    >
      <div class="dialog-inner">
        <header class="dialog-header">
          <h2>{title}</h2>
          <IconButton name="cross" label="Close" onClick={close} />
        </header>
        {children}
      </div>
    </dialog>
  );
}

export interface Choice {
  id: string;
  label: string;
  hint?: string;
  group?: string;
  isChosen?: boolean;
}

const MOST = 200;

/** A field and the choices that fit what is typed; Enter takes the marked one. */
interface ChooserProps {
  title: string;
  choices: readonly Choice[];
  onChoose: (id: string) => void;
  /** Called with what is typed. */
  onQuery?: (query: string) => void;
  /** Whether the choices are those that were found for what is typed, and need no filter. */
  isFound?: boolean;
  isSearching?: boolean;
}

export function Chooser({ title, choices, onChoose, onQuery, isFound = false, isSearching = false }: ChooserProps) {
  const query = useSignal("");
  const at = useSignal(0);
  const words = isFound ? [] : query.value.toLowerCase().split(/\s+/).filter(Boolean);
  const fitting = choices.filter((choice) => words.every((word) => `${choice.label} ${choice.group ?? ""} ${choice.hint ?? ""}`.toLowerCase().includes(word))).slice(0, MOST);
  const take = (choice: Choice | undefined): void => {
    if (!choice) return;
    close();
    onChoose(choice.id);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && fitting.length > 0) {
      event.preventDefault();
      at.value = (at.value + step + fitting.length) % fitting.length;
    } else if (event.key === "Enter") {
      event.preventDefault();
      take(fitting[at.value]);
    }
  };
  return (
    <Frame title={title}>
      <input
        class="field"
        role="combobox"
        aria-label={title}
        aria-expanded="true"
        aria-controls="choices"
        aria-activedescendant={fitting[at.value] ? `choice-${at.value}` : undefined}
        autofocus
        placeholder="Type to filter"
        value={query.value}
        onKeyDown={onKeyDown}
        onInput={(event) => {
          query.value = event.currentTarget.value;
          at.value = 0;
          onQuery?.(query.value);
        }}
      />
      <ul class="choices" id="choices" role="listbox" aria-label={title}>
        {fitting.map((choice, index) => (
          <li key={choice.id} id={`choice-${index}`} role="option" aria-selected={index === at.value} class={choice.isChosen ? "chosen" : ""} ref={(node) => void (index === at.value && node?.scrollIntoView({ block: "nearest" }))} onClick={() => take(choice)}>
            <span class="choice-label">{choice.label}</span>
            <span class="choice-hint">{choice.hint ?? choice.group}</span>
          </li>
        ))}
      </ul>
      {fitting.length === 0 && <p class="quiet">{isSearching ? "Searching…" : "Nothing fits."}</p>}
    </Frame>
  );
}
