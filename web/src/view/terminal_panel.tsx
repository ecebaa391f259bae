// Terminals of the directory, below the conversation. The emulator is loaded when the first one is opened.
import { signal, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { place, terminals } from "../state/store";
import { attempt, fail, isTerminalOpen, wantedTerminal } from "../state/ui";
import { ask, get, post } from "../wire/api";
import type { Pty } from "../wire/types";
import { IconButton } from "./icons";
import type { OpenTerminal } from "./terminal_session";

/** One terminal: connected for as long as it is on the screen. */
function TerminalView({ pty }: { pty: Pty }) {
  const box = useRef<HTMLDivElement>(null);
  const shown = useRef<OpenTerminal | null>(null);
  const words = useSignal("Connecting…");
  useEffect(() => {
    let isGone = false;
    import("./terminal_session").then(async ({ openTerminal }) => {
      if (isGone || !box.current) return;
      const opened = await openTerminal(box.current, pty, place.value.directory, (state) => (words.value = state), () => (isFinding.value = true));
      if (isGone) opened.end();
      else shown.current = opened;
    }, fail);
    return () => {
      isGone = true;
      shown.current?.end();
    };
  }, [pty.id]);
  return (
    <>
      {isFinding.value && <FindBar terminal={shown} />}
      <div class="terminal-box" ref={box} aria-label={pty.title} />
      {words.value && (
        <p class="terminal-words" role="status">
          {words.value}
        </p>
      )}
    </>
  );
}

const isFinding = signal(false);

/** Looks for a text in what the terminal shows and has shown: Enter goes back in it, Shift+Enter forward. */
function FindBar({ terminal }: { terminal: { current: OpenTerminal | null } }) {
  const text = useSignal("");
  const isFound = useSignal(true);
  const find = (isBackwards: boolean): void => void (isFound.value = !text.value || (terminal.current?.find(text.value, isBackwards) ?? false));
  const close = (): void => {
    isFinding.value = false;
    terminal.current?.focus();
  };
  return (
    <div class="terminal-find" role="search">
      <input
        class="field"
        aria-label="Find in the terminal"
        placeholder="Find"
        ref={(node) => void (node && !text.peek() && node.focus())}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          find(true);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") find(!event.shiftKey);
          else if (event.key === "Escape") close();
          else return;
          event.stopPropagation();
          event.preventDefault();
        }}
      />
      {!isFound.value && <span class="quiet">not there</span>}
      <IconButton name="cross" label="Close the search" onClick={close} />
    </div>
  );
}

/** The server names a terminal after its id where nobody gave it a name. */
const nameOf = ({ id, title }: Pty, index: number): string => (title === `Terminal ${id.slice(-4)}` ? `Terminal ${index + 1}` : title);

export function TerminalPanel() {
  const list = useSignal<readonly Pty[]>([]);
  const shown = useSignal("");
  useSignalEffect(() => {
    if (wantedTerminal.value) shown.value = wantedTerminal.value;
  });
  useSignalEffect(() => {
    void terminals.value;
    get<Pty[]>("/pty", place.value.directory).then((found) => {
      list.value = found;
      if (!found.some((pty) => pty.id === shown.peek())) shown.value = found.at(-1)?.id ?? "";
    }, fail);
  });
  const create = (): void =>
    void attempt(async () => {
      const made = await post<Pty>("/pty", {}, place.value.directory);
      list.value = [...list.value.filter((pty) => pty.id !== made.id), made];
      shown.value = made.id;
    });
  useEffect(() => {
    void get<Pty[]>("/pty", place.value.directory).then((found) => {
      if (found.length === 0 && !wantedTerminal.peek()) create();
    }, fail);
  }, []);
  const remove = (pty: Pty): void => void attempt(() => ask("DELETE", `/pty/${pty.id}`, { directory: place.value.directory }));
  const pty = list.value.find((each) => each.id === shown.value);
  return (
    <section class="terminals" aria-label="Terminals">
      <header>
        <div class="tabs" role="tablist" aria-label="Terminals">
          {list.value.map((each, index) => (
            <button key={each.id} type="button" role="tab" aria-selected={each.id === shown.value} onClick={() => (shown.value = each.id)}>
              {nameOf(each, index)}
            </button>
          ))}
        </div>
        <IconButton name="plus" label="New terminal" onClick={create} />
        <span class="spring" />
        {pty && <IconButton name="search" label="Find in the terminal (Ctrl+Shift+F)" pressed={isFinding.value} onClick={() => (isFinding.value = !isFinding.value)} />}
        {pty && <IconButton name="stop" label="End this terminal" onClick={() => remove(pty)} />}
        <IconButton name="cross" label="Hide terminals" onClick={() => (isTerminalOpen.value = false)} />
      </header>
      {pty ? <TerminalView key={pty.id} pty={pty} /> : <p class="quiet empty">No terminal runs.</p>}
    </section>
  );
}
