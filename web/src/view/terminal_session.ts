// A terminal emulator on one of the server's terminals: output with replay, input, size; connected again when cut off.
import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal } from "@xterm/xterm";
import { ask, Refused } from "../wire/api";
import type { Pty } from "../wire/types";

const RETRY = 1_000;
const ENDED = 1_000;

function loadStyle(): Promise<void> {
  if (document.querySelector("#terminal-style")) return Promise.resolve();
  return new Promise((resolve) => {
    const link = Object.assign(document.createElement("link"), { id: "terminal-style", rel: "stylesheet", href: "/web/terminal.css" });
    link.onload = link.onerror = () => resolve();
    document.head.append(link);
  });
}

const DARK = ["#45443f", "#f0998e", "#8bcf9c", "#e9b765", "#8fbde8", "#d6a0d1", "#6cc9b9", "#e9e6df"];
const LIGHT = ["#23211e", "#a52a22", "#1c6a3a", "#8a5200", "#1f5c99", "#8b3a86", "#0c665c", "#6d6961"];
const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** The page's colours, as the emulator wants them: plain ones, of the theme that is on. */
function colours(box: HTMLElement): Record<string, string> {
  const value = (name: string): string => {
    box.style.color = `var(${name})`;
    const found = getComputedStyle(box).color;
    box.style.color = "";
    return found;
  };
  const isDark = Number(/\d+/.exec(value("--ground"))?.[0]) < 128;
  const palette = (isDark ? DARK : LIGHT).flatMap((colour, index) => [
    [NAMES[index]!, colour],
    [`bright${NAMES[index]![0]!.toUpperCase()}${NAMES[index]!.slice(1)}`, colour],
  ]);
  return { background: value("--code"), foreground: value("--ink"), cursor: value("--accent"), selectionBackground: value("--select"), ...(Object.fromEntries(palette) as Record<string, string>) };
}

/** A terminal on the screen. `find` looks for a text from where the last one was found, and says whether there is one. */
export interface OpenTerminal {
  find(text: string, isBackwards: boolean): boolean;
  focus(): void;
  end(): void;
}

/** Show a terminal in an element. `say` tells how the connection is, "" for well; `onFind`: the user wants to look for a text. */
export async function openTerminal(box: HTMLElement, pty: Pty, directory: string, say: (words: string) => void, onFind: () => void): Promise<OpenTerminal> {
  await loadStyle();
  const terminal = new Terminal({ fontFamily: getComputedStyle(box).getPropertyValue("--mono"), fontSize: 13, scrollback: 20_000, theme: colours(box), screenReaderMode: true, allowProposedApi: false });
  const fit = new FitAddon();
  const search = new SearchAddon();
  terminal.loadAddon(fit);
  terminal.loadAddon(search);
  terminal.loadAddon(new WebLinksAddon((_event, url) => void window.open(url, "_blank", "noopener,noreferrer")));
  terminal.attachCustomKeyEventHandler((event) => {
    if (!((event.ctrlKey && event.shiftKey) || event.metaKey) || event.key.toLowerCase() !== "f") return true;
    event.preventDefault();
    if (event.type === "keydown") onFind();
    return false;
  });
  terminal.open(box);
  let socket: WebSocket | null = null;
  let cursor = 0;
  let isOver = false;
  // Keys that are typed while the first connection is made; null: it was made, or it failed, which the user is told.
  let early: string | null = "";

  const resize = (): void => {
    fit.fit();
    ask("PUT", `/pty/${pty.id}`, { directory, body: { size: { rows: terminal.rows, cols: terminal.cols } } }).catch(() => {});
  };
  const receive = ({ data }: MessageEvent<string | ArrayBuffer>): void => {
    if (typeof data === "string") {
      terminal.write(data);
      cursor += [...data].length;
    } else {
      cursor = (JSON.parse(new TextDecoder().decode(data.slice(1))) as { cursor: number }).cursor;
    }
  };
  const connect = async (): Promise<void> => {
    if (isOver) return;
    try {
      const { ticket } = await connectToken(pty.id, directory);
      const url = new URL(`/pty/${pty.id}/connect`, location.href.replace(/^http/, "ws").split("#")[0]);
      url.search = new URLSearchParams({ cursor: String(cursor), ticket, directory }).toString();
      socket = new WebSocket(url);
      socket.binaryType = "arraybuffer";
      socket.onmessage = receive;
      socket.onopen = () => {
        say("");
        if (early) socket?.send(early);
        early = null;
      };
      socket.onclose = ({ code }) => {
        early = null;
        if (isOver) return;
        if (code === ENDED) return say("The program has ended.");
        say("Disconnected. Connecting again…");
        setTimeout(() => void connect(), RETRY);
      };
    } catch (error) {
      early = null;
      if (error instanceof Refused && error.status === 404) return say("The program has ended.");
      say("Disconnected. Connecting again…");
      setTimeout(() => void connect(), RETRY);
    }
  };
  terminal.onData((data) => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(data);
    else if (early !== null) early += data;
  });
  const watching = new ResizeObserver(resize);
  watching.observe(box);
  terminal.focus();
  await connect();
  return {
    find: (text, isBackwards) => (isBackwards ? search.findPrevious(text) : search.findNext(text)),
    focus: () => terminal.focus(),
    end: () => {
      isOver = true;
      watching.disconnect();
      socket?.close();
      terminal.dispose();
    },
  };
}

/** A ticket stands in for the session on the WebSocket, once: no credential is in its address. */
async function connectToken(id: string, directory: string): Promise<{ ticket: string }> {
  return await ask("POST", `/pty/${id}/connect-token`, { body: {}, directory, headers: { "x-opencode-ticket": "1" } });
}
