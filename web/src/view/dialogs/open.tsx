// Opens a project or a folder: those that were used, and a way through the folders of the server's machine.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { newSession } from "../../state/actions";
import { offers, place, projects, sessions } from "../../state/store";
import { baseName, shortenHome } from "../../text/format";
import { get, Refused } from "../../wire/api";
import { Icon } from "../icons";
import { close, Frame } from "./frame";

interface Listing {
  path: string;
  parent: string;
  folders: readonly { name: string; path: string; isRepository: boolean }[];
  isCut: boolean;
}

const MOST_RECENT = 8;

/** Directories that sessions were held in, the latest first. */
function listRecent(): string[] {
  const bySession = [...sessions.value.values()].filter((session) => !session.parentID).sort((a, b) => b.time.updated - a.time.updated).map((session) => session.directory);
  const all = new Set([...bySession, ...[...projects.value.values()].map((project) => project.worktree)]);
  return [...all].filter((path) => path.startsWith("/") && path !== "/" && path !== place.value.directory);
}

export function OpenDialog() {
  const { home } = offers.value;
  const start = place.value.directory.slice(0, -baseName(place.value.directory).length);
  const typed = useSignal(shortenHome(start, home));
  /** What a folder holds, with the words that it was asked by: others may be typed since. */
  const held = useSignal<{ folder: string; prefix: string; listing: Listing } | null>(null);
  const problem = useSignal("");
  const at = useSignal(0);
  const asked = useRef(0);
  const end = typed.value.lastIndexOf("/") + 1;
  const folder = typed.value.slice(0, end);
  const name = typed.value.slice(end);
  // What is told already is narrowed here; where it was cut, the server is asked for what begins so.
  const isTold = held.value?.folder === folder && name.startsWith(held.value.prefix) && (!held.value.listing.isCut || name === held.value.prefix);
  const prefix = isTold ? held.value!.prefix : held.value?.folder === folder ? name : "";
  useEffect(() => {
    if (isTold) return;
    const turn = ++asked.current;
    get<Listing>("/folder", place.value.directory, { path: folder || "~", prefix }).then(
      (found) => {
        if (turn !== asked.current) return;
        held.value = { folder, prefix, listing: found };
        problem.value = "";
      },
      (error: unknown) => {
        if (turn !== asked.current) return;
        held.value = null;
        problem.value = error instanceof Refused ? error.message : String(error);
      },
    );
  }, [folder, prefix, isTold]);
  const listing = held.value?.folder === folder ? held.value.listing : null;
  const isFresh = typed.value === shortenHome(start, home);
  const recent = listRecent().filter((path) => isFresh || path.toLowerCase().includes(typed.value.replace(/^~/, home).toLowerCase())).slice(0, MOST_RECENT);
  const fitting = (listing?.folders ?? []).filter((each) => each.name.toLowerCase().startsWith(name.toLowerCase()));
  const rows = [...recent.map((path) => ({ path, isRecent: true, isRepository: true })), ...fitting.map((each) => ({ path: each.path, isRecent: false, isRepository: each.isRepository }))];
  const go = (path: string): void => {
    close();
    newSession(path);
  };
  const enter = (path: string): void => {
    typed.value = `${shortenHome(path, home)}/`;
    at.value = 0;
  };
  const whole = listing && !name ? listing.path : "";
  const take = (row: (typeof rows)[number] | undefined): void => {
    if (row) row.isRecent ? go(row.path) : enter(row.path);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && rows.length > 0) at.value = (at.value + step + rows.length) % rows.length;
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && whole) go(whole);
    else if (event.key === "Enter" || (event.key === "Tab" && !event.shiftKey && name)) take(rows[at.value]);
    else return;
    event.preventDefault();
  };
  return (
    <Frame title="Open a project or folder">
      <input
        class="field"
        role="combobox"
        aria-label="Folder"
        aria-expanded="true"
        aria-controls="folders"
        aria-activedescendant={rows[at.value] ? `folder-${at.value}` : undefined}
        autofocus
        autocomplete="off"
        spellcheck={false}
        value={typed.value}
        onKeyDown={onKeyDown}
        onInput={(event) => {
          typed.value = event.currentTarget.value;
          at.value = 0;
        }}
      />
      <ul class="choices" id="folders" role="listbox" aria-label="Folders">
        {rows.map((row, index) => (
          <li key={`${row.isRecent} ${row.path}`} id={`folder-${index}`} role="option" aria-selected={index === at.value} ref={(node) => void (index === at.value && node?.scrollIntoView({ block: "nearest" }))} onClick={() => take(row)}>
            <span class="choice-label">
              <Icon name={row.isRecent ? "list" : "folder"} size={14} /> {baseName(row.path)}
            </span>
            <span class="choice-hint">{row.isRecent ? shortenHome(row.path, home) : row.isRepository ? "git repository" : ""}</span>
          </li>
        ))}
      </ul>
      {problem.value && <p class="failure">{problem.value}</p>}
      {!problem.value && listing && isTold && rows.length === 0 && <p class="quiet">{name ? "No folder begins like this." : "There are no folders in this one."}</p>}
      {listing?.isCut && <p class="quiet">There are more: type the beginning of a name.</p>}
      <div class="dialog-actions">
        <button type="button" class="button primary" disabled={!whole} onClick={() => go(whole)}>
          {whole ? `Open ${shortenHome(whole, home)}` : "Open"}
        </button>
        {listing?.parent && (
          <button type="button" class="button" onClick={() => enter(listing.parent === "/" ? "" : listing.parent)}>
            Up
          </button>
        )}
      </div>
      <p class="quiet">Enter opens a project, or leads into a folder; Ctrl+Enter opens the folder that is shown.</p>
    </Frame>
  );
}
