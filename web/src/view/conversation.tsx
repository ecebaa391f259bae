// The conversation: a virtual list, so that ten thousand messages cost no more than those on the screen.
import { effect, signal, useComputed } from "@preact/signals";
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer, type VirtualizerOptions } from "@tanstack/virtual-core";
import { useCallback, useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import { isUndoBegun, redo } from "../state/actions";
import { loadOlder, loadUntil } from "../state/load";
import { conversationOf, current, place, type MessageView } from "../state/store";
import { fail, tell } from "../state/ui";
import { formatNumber } from "../text/format";
import { MessageRow } from "./message";

const GUESS = 140;
const NEAR = 80;
const EDGE = 600;
const FIRST_ROWS = 2;
/** Milliseconds for which a message is a new one. */
const FRESH = 1_000;

/** The message that something else on the page wants to be shown. */
export const target = signal("");

type List = Virtualizer<HTMLDivElement, HTMLDivElement>;

/** A virtual list of messages in a scrolling element; draws again when what is seen changes. */
function useVirtual(views: readonly MessageView[], scroller: { current: HTMLDivElement | null }): List {
  const [, draw] = useReducer((count: number) => count + 1, 0);
  // The list measures all rows again when this function is another one.
  const getItemKey = useCallback((index: number) => views[index]!.info.peek().id, [views]);
  const options: VirtualizerOptions<HTMLDivElement, HTMLDivElement> = {
    count: views.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => GUESS,
    initialOffset: () => views.length * GUESS,
    getItemKey,
    overscan: 3,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => draw(0),
  };
  const kept = useRef<List | null>(null);
  const list = (kept.current ??= new Virtualizer(options));
  list.setOptions(options);
  useLayoutEffect(() => list._didMount(), []);
  useLayoutEffect(() => list._willUpdate());
  return list;
}

/** Keeps the end in sight while an answer streams in, until the user scrolls up. */
function useFollow(scroller: { current: HTMLDivElement | null }, inner: { current: HTMLDivElement | null }, sessionID: string) {
  const isAtEnd = useRef(true);
  const isJumpShown = useRef(signal(false)).current;
  const toEnd = (): void => {
    const box = scroller.current;
    if (box) box.scrollTop = box.scrollHeight;
  };
  useLayoutEffect(() => {
    isAtEnd.current = true;
    const watching = new ResizeObserver(() => {
      if (isAtEnd.current) toEnd();
    });
    watching.observe(inner.current!);
    watching.observe(scroller.current!);
    return () => watching.disconnect();
  }, [sessionID]);
  const top = useRef(0);
  // Rows that are measured or undone move the view up without the user. So after each change of the rows the view is at
  // the end again, and `onScroll` compares with where it is then.
  useLayoutEffect(() => {
    if (!isAtEnd.current || !scroller.current) return;
    toEnd();
    top.current = scroller.current.scrollTop;
  });
  const onScroll = (): void => {
    const box = scroller.current;
    if (!box) return;
    // What streams in may push the end away faster than this is called: only a move upwards leaves it.
    const isNear = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
    isAtEnd.current = isNear || (isAtEnd.current && box.scrollTop >= top.current);
    top.current = box.scrollTop;
    isJumpShown.value = !isAtEnd.current;
  };
  const leaveEnd = (): void => {
    isAtEnd.current = false;
    isJumpShown.value = true;
  };
  return { onScroll, isJumpShown, leaveEnd, toEnd: () => ((isAtEnd.current = true), toEnd()) };
}

/** Keeps what is read where it is when older messages come in above it. */
function useAnchor(views: readonly MessageView[], list: List, scroller: { current: HTMLDivElement | null }): void {
  const first = useRef<MessageView | undefined>(undefined);
  useLayoutEffect(() => {
    const added = first.current ? views.indexOf(first.current) : 0;
    first.current = views[0];
    const offset = added > 0 ? list.getOffsetForIndex(added, "start")?.[0] : undefined;
    if (offset !== undefined && scroller.current) scroller.current.scrollTop += offset;
  }, [views]);
}

/** What counts of the messages: those behind an undo are left out. */
function useVisible(): { value: readonly MessageView[] } {
  return useComputed(() => {
    const all = conversationOf(place.value.sessionID).messages.value;
    const undone = current.value?.revert?.messageID;
    const end = undone ? all.findIndex((view) => view.info.peek().id === undone) : -1;
    return end < 0 ? all : all.slice(0, end);
  });
}

let sought = "";

/** Read what is above until the wanted message is there; drawing it shows it. */
async function findAbove(wanted: string, sessionID: string, directory: string): Promise<void> {
  if (sought === wanted) return;
  sought = wanted;
  const timer = setTimeout(() => tell("Going there…"), 300);
  try {
    if (await loadUntil(wanted, sessionID, directory)) return;
    target.value = "";
    tell("This message is not in the conversation any more.");
  } catch (error) {
    target.value = "";
    fail(error);
  } finally {
    clearTimeout(timer);
    sought = "";
  }
}

/** Whether a row has just come in at the end. */
const isFresh = (views: readonly MessageView[], index: number): boolean => index === views.length - 1 && Date.now() - views[index]!.info.peek().time.created < FRESH;

export function ConversationView() {
  const { sessionID, directory } = place.value;
  const held = conversationOf(sessionID);
  const views = useVisible().value;
  const scroller = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const list = useVirtual(views, scroller);
  const { onScroll, isJumpShown, leaveEnd, toEnd } = useFollow(scroller, inner, sessionID);
  const loadAbove = (): void => {
    if (scroller.current && scroller.current.scrollTop < EDGE && held.cursor.value !== null) loadOlder(sessionID, directory).catch(fail);
  };
  useAnchor(views, list, scroller);
  useEffect(() => {
    const frame = requestAnimationFrame(loadAbove);
    return () => cancelAnimationFrame(frame);
  }, [views.length]);
  useEffect(() => {
    return effect(() => {
      const wanted = target.value;
      if (!wanted) return;
      const index = views.findIndex((view) => view.info.peek().id === wanted);
      if (index >= 0) {
        target.value = "";
        leaveEnd(); // before what is drawn for it moves the view back
        list.scrollToIndex(index, { align: "start" });
      } else if (!held.byId.has(wanted)) void findAbove(wanted, sessionID, directory);
      else target.value = ""; // it was undone
    });
  }, [views]);
  // The last messages are drawn first, the others in a task of their own.
  const [isWhole, setWhole] = useState(false);
  useEffect(() => {
    if (isWhole || views.length === 0) return;
    const timer = setTimeout(() => setWhole(true));
    return () => clearTimeout(timer);
  }, [views.length > 0]);
  const undone = held.messages.value.length - views.length;
  const isUndoing = isUndoBegun(current.value);
  return (
    <div class="transcript-frame">
      <div
        class="transcript"
        ref={scroller}
        tabindex={0}
        role="log"
        aria-label="Conversation"
        aria-live="off"
        onScroll={() => {
          onScroll();
          loadAbove();
        }}
      >
        <div class="transcript-inner" ref={inner}>
          {!held.isLoaded.value && <Skeleton />}
          <div class="virtual" style={{ height: `${list.getTotalSize()}px` }}>
            {list.getVirtualItems().slice(isWhole ? 0 : -FIRST_ROWS).map((item) => (
              <div key={item.key} class={`virtual-row ${isFresh(views, item.index) ? "fresh" : ""}`} data-index={item.index} ref={(node) => void (node && list.measureElement(node))} style={{ transform: `translateY(${item.start}px)` }}>
                <MessageRow views={views} index={item.index} />
              </div>
            ))}
          </div>
          {undone > 0 && (
            <div class={isUndoing ? "undoing" : "undone"}>
              {formatNumber(undone, "message")} {isUndoing ? "being undone. If this stays, the undo was cut off: undo again." : "undone."}
              <button type="button" class="link" onClick={() => void redo()}>
                Redo
              </button>
            </div>
          )}
        </div>
      </div>
      {isJumpShown.value && (
        <button type="button" class="jump" onClick={toEnd}>
          ↓ Latest
        </button>
      )}
    </div>
  );
}

const Skeleton = () => (
  <div class="skeleton" role="status" aria-label="Loading the conversation">
    <i />
    <i />
    <i />
  </div>
);
