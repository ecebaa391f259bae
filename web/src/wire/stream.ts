// The event stream, read so that nothing is missed: after each break it goes on behind the last event that came.
import { signal } from "@preact/signals";
import { credentials, isSignedOut } from "./api";
import type { WireEvent } from "./types";

const SILENCE = 30_000;
const WAITS = [300, 1_000, 2_000, 5_000];

export type Connection = "connecting" | "open" | "lost";

/** How the stream is doing; the page says so when it is lost. */
export const connection = signal<Connection>("connecting");

interface Listener {
  /** Events that came together, in order. */
  onEvents(events: WireEvent[]): void;
  /** What the page holds may be out of date: read everything again. */
  onResync(): void;
  /** The server is back, perhaps as another process: what worked and waited may be over without an event. */
  onReturn(): void;
}

interface Envelope {
  directory?: string;
  payload: { type: string; properties?: Record<string, unknown> };
}

/** Wait until the stream is open or can't be opened, but no longer than `ms`. */
export function waitForStream(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    connection.subscribe((now) => {
      if (now === "connecting") return;
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Follow the server's events for as long as the page is open. */
export async function follow(listener: Listener): Promise<never> {
  let last = "";
  for (let failures = 0; ; failures++) {
    let isAfresh = !last;
    try {
      await readStream(last, (id, events) => {
        failures = 0;
        if (id) last = id;
        if (connection.value === "lost") listener.onReturn();
        if (connection.value !== "open") connection.value = "open";
        if (isAfresh || events.some((event) => event.type === "server.resync")) listener.onResync();
        isAfresh = false;
        listener.onEvents(events);
      });
    } catch {
      // Whatever ended it, the answer is the same: say so, wait, connect again.
    }
    connection.value = "lost";
    await pause(WAITS[Math.min(failures, WAITS.length - 1)]!);
  }
}

/** Wait some ms, or until there is a reason to try at once: the network or the page is back, or the browser signed in. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      removeEventListener("online", done);
      document.removeEventListener("visibilitychange", done);
      stop();
      resolve();
    };
    const timer = setTimeout(done, ms);
    addEventListener("online", done);
    document.addEventListener("visibilitychange", done);
    let isFirst = true;
    const stop = isSignedOut.subscribe((signedOut) => {
      if (!isFirst && !signedOut) queueMicrotask(done);
      isFirst = false;
    });
  });
}

async function readStream(last: string, receive: (id: string, events: WireEvent[]) => void): Promise<void> {
  const aborting = new AbortController();
  const headers: Record<string, string> = { ...credentials(), ...(last ? { "last-event-id": last } : {}) };
  let timer = setTimeout(() => aborting.abort(), SILENCE);
  try {
    const response = await fetch("/global/event", { headers, signal: aborting.signal, credentials: "same-origin", cache: "no-store" });
    if (response.status === 401) isSignedOut.value = true;
    if (!response.ok || !response.body) return;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => aborting.abort(), SILENCE);
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop() ?? "";
      const { id, events } = parse(blocks);
      if (blocks.length > 0) receive(id, events);
    }
  } finally {
    clearTimeout(timer);
    aborting.abort();
  }
}

function parse(blocks: string[]): { id: string; events: WireEvent[] } {
  let id = "";
  const events: WireEvent[] = [];
  for (const block of blocks) {
    for (const line of block.split("\n")) {
      if (line.startsWith("id: ")) id = line.slice(4);
      if (!line.startsWith("data: ")) continue;
      const { directory = "", payload } = JSON.parse(line.slice(6)) as Envelope;
      events.push({ directory, type: payload.type, properties: payload.properties ?? {} });
    }
  }
  return { id, events };
}
