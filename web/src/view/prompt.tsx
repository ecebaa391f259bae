// The prompt box: commands behind /, files and agents behind @, pictures by paste or drop. What was typed is kept.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { abort, currentAgent, currentEffort, effortsOf, findFiles, send, shownModel } from "../state/actions";
import { connection } from "../wire/stream";
import { current, isBusy, offers, place, untilPlaced } from "../state/store";
import { dialog, fail, insertion, keepDraft, readDraft, returned, type Attachment, type Dialog } from "../state/ui";
import { completionAt, commandsFor, type Completion } from "./completion";
import { Icon, IconButton } from "./icons";
import { runAction } from "./keys";

const MOST_BYTES = 10 * 1024 * 1024;

function readFile(file: File): Promise<Attachment> {
  return new Promise((resolve, reject) => {
    if (file.size > MOST_BYTES) return reject(new Error(`${file.name} is larger than 10 MB. Name it with @ instead.`));
    const reader = new FileReader();
    reader.onload = () => resolve({ filename: file.name, mime: file.type || "text/plain", url: String(reader.result) });
    reader.onerror = () => reject(new Error(`${file.name} can't be read.`));
    reader.readAsDataURL(file);
  });
}

/** Makes the box as high as its text, up to a third of the window. */
function fit(box: HTMLTextAreaElement): void {
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight, innerHeight / 3)}px`;
}

/** What the draft of the shown place is kept under; "" before it is known where the page is. */
const keyOf = (): string => place.value.sessionID || place.value.directory;

export function Prompt() {
  const key = keyOf();
  const text = useSignal("");
  const attachments = useSignal<readonly Attachment[]>([]);
  const completion = useSignal<Completion | null>(null);
  const chosen = useSignal(0);
  const files = useRef(new Set<string>()).current;
  const box = useRef<HTMLTextAreaElement>(null);
  const asked = useRef(0);
  const before = useRef<string | null>(null);
  /** The directory for which the first prompt of a session is on its way. */
  const begun = useRef("");
  const places = useRef(0);

  const setText = (value: string): void => {
    text.value = value;
    keepDraft(keyOf(), value);
  };
  useEffect(() => {
    // Until it is known where the page is, and until a first prompt has led to its session, what is typed is for that.
    const goesOn = before.current === "" || before.current === begun.current;
    const typed = goesOn ? text.peek() : "";
    if (goesOn) keepDraft(before.current!, "");
    else {
      attachments.value = [];
      files.clear();
      places.current++;
    }
    // A first prompt that was sent before it was known where the page is, is on its way still.
    if (before.current) begun.current = "";
    before.current = key;
    asked.current++;
    setText(typed || readDraft(key));
    completion.value = null;
    requestAnimationFrame(() => box.current && fit(box.current));
    if (matchMedia("(pointer: fine)").matches) box.current?.focus();
  }, [key]);
  useEffect(
    () =>
      insertion.subscribe((added) => {
        if (!added) return;
        insertion.value = null;
        setText([text.peek().trimEnd(), added.text].filter(Boolean).join("\n\n"));
        attachments.value = [...attachments.peek(), ...(added.files ?? [])];
        box.current?.focus();
        requestAnimationFrame(() => box.current && fit(box.current));
      }),
    [key],
  );

  useEffect(
    () =>
      returned.subscribe((given) => {
        if (!given) return;
        returned.value = null;
        if (!text.peek().trim() && attachments.peek().length === 0) insertion.value = given;
      }),
    [key],
  );

  const complete = async (): Promise<void> => {
    const found = completionAt(text.value, box.current?.selectionStart ?? text.value.length);
    const turn = ++asked.current;
    if (!found) return void (completion.value = null);
    chosen.value = 0;
    if (found.kind === "command") return void (completion.value = { ...found, items: commandsFor(found.query) });
    const agents = offers.value.agents.filter((agent) => agent.mode !== "primary" && !agent.hidden && agent.name.startsWith(found.query));
    try {
      const paths = await findFiles(found.query);
      if (turn !== asked.current) return;
      const items = [...agents.map((agent) => ({ value: agent.name, label: `@${agent.name}`, hint: agent.description ?? "subagent" })), ...paths.map((path) => ({ value: path, label: path, hint: "" }))];
      completion.value = items.length > 0 ? { ...found, items } : null;
    } catch (error) {
      fail(error);
    }
  };
  const accept = (index: number): void => {
    const shown = completion.value;
    const item = shown?.items[index];
    if (!shown || !item) return;
    const sign = shown.kind === "command" ? "/" : "@";
    if (shown.kind === "file") files.add(item.value);
    completion.value = null;
    if (item.action) {
      setText("");
      runAction(item.action);
      return;
    }
    setText(`${text.value.slice(0, shown.start)}${sign}${item.value} ${text.value.slice(shown.end)}`);
    const cursor = shown.start + item.value.length + 2;
    requestAnimationFrame(() => box.current?.setSelectionRange(cursor, cursor));
  };
  const submit = async (): Promise<void> => {
    const value = text.value.trim();
    const attached = attachments.value;
    if (!value && attached.length === 0) return;
    setText("");
    attachments.value = [];
    completion.value = null;
    requestAnimationFrame(() => box.current && fit(box.current));
    const at = places.current;
    try {
      await untilPlaced();
      if (!place.value.sessionID) begun.current = place.value.directory;
      await send(value, attached, new Set(files));
    } catch (error) {
      begun.current = "";
      // Where another place is shown by now, it is there when the user is back.
      if (at !== places.current) keepDraft(key, value);
      else {
        setText([value, text.peek()].filter(Boolean).join("\n\n"));
        attachments.value = [...attached, ...attachments.value];
      }
      fail(error);
    }
  };
  const attach = async (list: Iterable<File>): Promise<void> => {
    try {
      attachments.value = [...attachments.value, ...(await Promise.all([...list].map(readFile)))];
    } catch (error) {
      fail(error);
    }
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const shown = completion.value;
    if (shown && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      chosen.value = (chosen.value + step + shown.items.length) % shown.items.length;
    } else if (shown && (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey && shown.items.length > 0))) {
      event.preventDefault();
      accept(chosen.value);
    } else if (shown && event.key === "Escape") {
      event.stopPropagation();
      completion.value = null;
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      void submit();
    }
  };
  const model = shownModel();
  const shown = completion.value;
  return (
    <div class="prompt" onDragOver={(event) => event.preventDefault()} onDrop={(event) => (event.preventDefault(), void attach(event.dataTransfer?.files ?? []))}>
      {shown && shown.items.length > 0 && (
        <ul class="completions" id="completions" role="listbox" aria-label="Completions" tabindex={-1}>
          {shown.items.map((item, index) => (
            <li key={item.label} id={`completion-${index}`} role="option" aria-selected={index === chosen.value} ref={(node) => void (index === chosen.value && node?.scrollIntoView({ block: "nearest" }))} onMouseDown={(event) => (event.preventDefault(), accept(index))}>
              <span class="completion-label">{item.label}</span>
              <span class="completion-hint">{item.hint}</span>
            </li>
          ))}
        </ul>
      )}
      {attachments.value.length > 0 && (
        <div class="chips attachments">
          {attachments.value.map((each, index) => (
            <button key={index} type="button" class="chip" title="Remove" onClick={() => (attachments.value = attachments.value.filter((_, at) => at !== index))}>
              {each.mime.startsWith("image/") ? <img src={each.url} alt="" /> : <Icon name="file" size={14} />} {each.filename} <Icon name="cross" size={12} />
            </button>
          ))}
        </div>
      )}
      <textarea
        id="prompt"
        ref={box}
        rows={1}
        aria-label="Prompt"
        aria-controls={shown ? "completions" : undefined}
        aria-activedescendant={shown ? `completion-${chosen.value}` : undefined}
        aria-autocomplete="list"
        placeholder={isBusy.value ? "Add something; it is read at the next step" : "What should be done?  / commands  @ files  ! shell"}
        value={text.value}
        onInput={(event) => {
          setText(event.currentTarget.value);
          fit(event.currentTarget);
          void complete();
        }}
        onKeyDown={onKeyDown}
        onPaste={(event) => {
          const pasted = [...(event.clipboardData?.files ?? [])];
          if (pasted.length === 0) return;
          event.preventDefault();
          void attach(pasted);
        }}
        onBlur={() => (completion.value = null)}
      />
      <div class="prompt-bar">
        <label class="icon-button" title="Attach files">
          <Icon name="clip" size={18} />
          <span class="unseen">Attach files</span>
          <input type="file" multiple class="unseen" onChange={(event) => (void attach(event.currentTarget.files ?? []), (event.currentTarget.value = ""))} />
        </label>
        <Picker title="Switch agent" opens="agents">
          {currentAgent() || "default agent"}
        </Picker>
        <Picker title="Switch model" opens="models">
          {model ? nameOf(model) : "default model"}
        </Picker>
        {effortsOf(model).length > 0 && (
          <Picker title="How much the model thinks" opens="efforts">
            {currentEffort() || "default effort"}
          </Picker>
        )}
        <span class="spring" />
        {connection.value === "lost" && <span class="quiet">kept until the server is back</span>}
        {isBusy.value && <IconButton name="stop" label="Stop (Escape)" class="stop" onClick={() => void abort()} />}
        <IconButton name="send" label={current.value && isBusy.value ? "Send into this turn" : "Send (Enter)"} class="send" disabled={!text.value.trim() && attachments.value.length === 0} onClick={() => void submit()} />
      </div>
    </div>
  );
}

/** A chip that says what is chosen, and opens the choice. */
const Picker = ({ title, opens, children }: { title: string; opens: Dialog; children: ComponentChildren }) => (
  <button type="button" class="picker" title={title} aria-haspopup="dialog" onClick={() => (dialog.value = opens)}>
    <span>{children}</span>
    <Icon name="down" size={14} />
  </button>
);

function nameOf(model: { providerID: string; modelID: string }): string {
  const provider = offers.value.providers.find((each) => each.id === model.providerID);
  return provider?.models[model.modelID]?.name ?? model.modelID;
}
