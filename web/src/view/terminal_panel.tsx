// Terminals of the directory, below the conversation. The emulator is loaded when the first one is opened.
import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { place, terminals } from "../state/store";
import { attempt, fail, isTerminalOpen } from "../state/ui";
import { ask, get, post } from "../wire/api";
import type { Pty } from "../wire/types";
import { IconButton } from "./icons";

/** One terminal: connected for as long as it is on the screen. */
function TerminalView({ pty }: { pty: Pty }) {
  const box = useRef<HTMLDivElement>(null);
  const words = useSignal("Connecting…");
  useEffect(() => {
    let end = (): void => {};
    let isGone = false;
    import("./terminal_session").then(async ({ openTerminal }) => {
      if (isGone || !box.current) return;
      end = await openTerminal(box.current, pty, place.value.directory, (state) => (words.value = state));
      if (isGone) end();
    }, fail);
    return () => {
      isGone = true;
      end();
    };
  }, [pty.id]);
  return (
    <>
      <div class="terminal-box" ref={box} aria-label={pty.title} />
      {words.value && (
        <p class="terminal-words" role="status">
          {words.value}
        </p>
      )}
    </>
  );
}

export function TerminalPanel() {
  const list = useSignal<readonly Pty[]>([]);
  const shown = useSignal("");
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
      if (found.length === 0) create();
    }, fail);
  }, []);
  const remove = (pty: Pty): void => void attempt(() => ask("DELETE", `/pty/${pty.id}`, { directory: place.value.directory }));
  const pty = list.value.find((each) => each.id === shown.value);
  return (
    <section class="terminals" aria-label="Terminals">
      <header>
        <div class="tabs" role="tablist" aria-label="Terminals">
          {list.value.map((each) => (
            <button key={each.id} type="button" role="tab" aria-selected={each.id === shown.value} onClick={() => (shown.value = each.id)}>
              {each.title}
            </button>
          ))}
        </div>
        <IconButton name="plus" label="New terminal" onClick={create} />
        <span class="spring" />
        {pty && <IconButton name="stop" label="End this terminal" onClick={() => remove(pty)} />}
        <IconButton name="cross" label="Hide terminals" onClick={() => (isTerminalOpen.value = false)} />
      </header>
      {pty ? <TerminalView key={pty.id} pty={pty} /> : <p class="quiet empty">No terminal runs.</p>}
    </section>
  );
}
