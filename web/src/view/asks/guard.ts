// Keeps keys and clicks that were meant for something else from answering a question.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { promptBox, typeIntoPrompt } from "../prompt_box";

/** Milliseconds for which a question is seen before a key or a click can answer it. */
const SEEN = 700;
/** A letter answers when it stands alone for so many milliseconds; one that another follows began a word. */
const ALONE = 300;
/** Milliseconds after the last letter from which a box is no longer typed in. */
const PAUSE = 1_500;

const down = new Set<string>();
const repeats = new WeakSet<KeyboardEvent>();
/** The keys that are held down and have answered: they type nothing where the focus is next. */
const spent = new Set<string>();
let typedAt = -Infinity;

addEventListener(
  "keydown",
  (event) => {
    if (event.repeat || down.has(event.code)) repeats.add(event);
    if (event.code) down.add(event.code);
    if (spent.has(event.code)) {
      event.preventDefault();
      event.stopPropagation();
    }
    // An Enter sends what was typed, so that nothing is being typed any more.
    if (event.key === "Enter" && !event.shiftKey) typedAt = -Infinity;
  },
  true,
);
addEventListener("input", () => (typedAt = performance.now()), true);
addEventListener(
  "keyup",
  ({ code, key }) => {
    // While Meta is held, a Mac tells of no other key that goes up.
    if (key === "Meta") down.clear();
    down.delete(code);
    spent.delete(code);
  },
  true,
);
addEventListener("blur", () => {
  down.clear();
  spent.clear();
});

/** Whether a key is held down since an earlier event. */
export const isRepeat = (event: KeyboardEvent): boolean => repeats.has(event);

/** Whether a key types something. */
export const isLetter = (event: KeyboardEvent): boolean => event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey;

/** Whether nothing else is being done with the keyboard: no other field has the focus, and the prompt box is empty and at rest. */
function isFree(): boolean {
  const focused = document.activeElement;
  if (focused === document.body) return true;
  return focused === promptBox() && promptBox()!.value === "" && performance.now() - typedAt > PAUSE;
}

/** Whether what is named `shown` was seen long enough to be answered. */
export function useSeen(shown: string): boolean {
  const [seen, setSeen] = useState("");
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const begin = (): void => {
      clearTimeout(timer);
      setSeen("");
      if (!document.hidden) timer = setTimeout(() => setSeen(shown), SEEN);
    };
    begin();
    document.addEventListener("visibilitychange", begin);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", begin);
    };
  }, [shown]);
  return seen === shown;
}

/** Gives a question the focus where nothing is being typed, and gives it back afterwards. */
export function useFocus(box: { current: HTMLElement | null }, shown: string): void {
  const isFirst = useRef(true);
  const isHere = (): boolean => document.activeElement === document.body || !!box.current?.contains(document.activeElement);
  useLayoutEffect(() => {
    if (isFirst.current ? isFree() : isHere()) box.current?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [shown]);
  useLayoutEffect(
    () => () => {
      if (isHere() && matchMedia("(pointer: fine)").matches) promptBox()?.focus();
    },
    [],
  );
}

/** Returns what handles a letter: `act` is done when no other letter follows at once; else both go into the prompt box. */
export function useLoneKey(): (event: KeyboardEvent, act: (() => void) | undefined) => void {
  const waiting = useRef<{ key: string; timer: ReturnType<typeof setTimeout> } | null>(null);
  useEffect(() => () => clearTimeout(waiting.current?.timer), []);
  return (event, act) => {
    if (isRepeat(event)) return event.preventDefault();
    const earlier = waiting.current;
    clearTimeout(earlier?.timer);
    waiting.current = null;
    if (!act || earlier) return typeIntoPrompt(earlier?.key ?? ""); // the browser puts this letter behind it
    event.preventDefault();
    if (event.code) spent.add(event.code);
    const timer = setTimeout(() => {
      waiting.current = null;
      act();
    }, ALONE);
    waiting.current = { key: event.key, timer };
  };
}
