// The sessions of all projects, newest first, told apart by what they do.
import { signal, useComputed, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { newSession } from "../state/actions";
import { readKept, writeKept } from "../state/kept";
import { addressOf } from "../state/route";
import { loadOlderSessions, searchSessions } from "../state/load";
import { areSessionsLoaded, hasOlderSessions, moodOf, offers, place, projects, rootOf, sessions, type Mood } from "../state/store";
import { attempt, dialog, isSidebarOpen, switchTheme, theme } from "../state/ui";
import { baseName, formatAge, shortenHome } from "../text/format";
import type { Session } from "../wire/types";
import { Icon, IconButton } from "./icons";

const FIRST = 60;
const MOODS: Record<Mood, string> = { waits: "waits for you", running: "running", failed: "failed", finished: "finished", idle: "" };

/** The pinned sessions of this browser. */
const pinned = signal<readonly string[]>(readPinned());

function readPinned(): string[] {
  try {
    const kept: unknown = JSON.parse(readKept("pinned") || "[]");
    return Array.isArray(kept) ? kept.filter((each) => typeof each === "string") : [];
  } catch {
    return [];
  }
}

export function togglePinned(id: string): void {
  pinned.value = pinned.value.includes(id) ? pinned.value.filter((each) => each !== id) : [...pinned.value, id];
  writeKept("pinned", JSON.stringify(pinned.value));
}

export const isPinned = (id: string): boolean => pinned.value.includes(id);

/** A project's sessions, by work tree: `name` of a tree is "" where the project has only one. */
interface Group {
  key: string;
  name: string;
  title: string;
  trees: { name: string; directory: string; items: Session[] }[];
}

const NO_PROJECT = "global";

function groupSessions(query: string): Group[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const nameOf = (session: Session): string => projects.value.get(session.projectID)?.name ?? "";
  const fits = (session: Session): boolean => words.every((word) => `${session.title} ${session.directory} ${nameOf(session)}`.toLowerCase().includes(word));
  const roots = [...sessions.value.values()].filter((session) => !session.parentID && !session.time.archived && fits(session)).sort((a, b) => b.time.updated - a.time.updated);
  const groups = new Map<string, Group>();
  const first = roots.filter((session) => isPinned(session.id));
  if (first.length > 0) groups.set("", { key: "", name: "Pinned", title: "Pinned", trees: [{ name: "", directory: "", items: first }] });
  for (const session of roots) {
    if (isPinned(session.id)) continue;
    const project = session.projectID === NO_PROJECT ? undefined : projects.value.get(session.projectID);
    const key = project ? session.projectID : session.directory;
    const title = project?.worktree ?? session.directory;
    const group = groups.get(key) ?? { key, name: project?.name || baseName(title), title, trees: [] };
    let tree = group.trees.find((each) => each.directory === session.directory);
    if (!tree) group.trees.push((tree = { name: baseName(session.directory), directory: session.directory, items: [] }));
    tree.items.push(session);
    groups.set(key, group);
  }
  for (const group of groups.values()) if (group.trees.length === 1) group.trees[0]!.name = "";
  return [...groups.values()];
}

function SessionLink({ session }: { session: Session }) {
  const mood = moodOf(session.id);
  const isCurrent = rootOf(place.value.sessionID) === session.id;
  return (
    <a class={`session ${mood}`} href={addressOf({ directory: session.directory, sessionID: session.id })} aria-current={isCurrent ? "page" : undefined}>
      <span class="mood" title={MOODS[mood]} />
      <span class="session-title">{session.title}</span>
      {MOODS[mood] && <span class="unseen">, {MOODS[mood]}</span>}
      <time class="session-age">{mood === "waits" ? "waits" : formatAge(session.time.updated)}</time>
    </a>
  );
}

function TreeView({ tree: { name, directory, items } }: { tree: Group["trees"][number] }) {
  const count = useSignal(FIRST);
  const rest = items.length - count.value;
  return (
    <>
      {name && (
        <h3 class="tree" title={directory}>
          <Icon name="fork" size={12} />
          <span>
            {name}
            <span class="group-path">{shortenHome(directory.slice(0, -name.length - 1), offers.value.home)}</span>
          </span>
          <IconButton name="plus" label={`New session in ${name}`} onClick={() => newSession(directory)} />
        </h3>
      )}
      <ul>
        {items.slice(0, count.value).map((session) => (
          <li key={session.id}>
            <SessionLink session={session} />
          </li>
        ))}
      </ul>
      {rest > 0 && (
        <button type="button" class="show-more" onClick={() => (count.value += 200)}>
          Show {Math.min(rest, 200)} more
        </button>
      )}
    </>
  );
}

const GroupView = ({ group }: { group: Group }) => (
  <section class={`group ${group.trees.length > 1 ? "has-trees" : ""}`} aria-label={group.title}>
    <h2 title={group.title}>
      {group.name}
      {group.key && <span class="group-path">{shortenHome(group.title.slice(0, -baseName(group.title).length - 1), offers.value.home)}</span>}
    </h2>
    {group.trees.map((tree) => (
      <TreeView key={tree.directory} tree={tree} />
    ))}
  </section>
);

export function Sidebar() {
  const query = useSignal("");
  const groups = useComputed(() => groupSessions(query.value));
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const search = (text: string): void => {
    query.value = text;
    clearTimeout(timer.current);
    if (hasOlderSessions.value && text.trim().length > 1) timer.current = setTimeout(() => void attempt(() => searchSessions(text.trim())), 200);
  };
  return (
    <nav class={`sidebar ${isSidebarOpen.value ? "open" : ""}`} aria-label="Sessions">
      <div class="sidebar-top">
        <span class="brand">codeloop</span>
        <span class="spring" />
        <IconButton name="folder" label="Open a project or folder" onClick={() => (dialog.value = "open")} />
        <IconButton name="plus" label="New session" onClick={() => newSession()} />
      </div>
      <label class="search">
        <Icon name="search" />
        <input type="search" aria-label="Search sessions" placeholder="Search" value={query.value} onInput={(event) => search(event.currentTarget.value)} />
      </label>
      <div class="sidebar-list" tabindex={-1}>
        {groups.value.map((group) => (
          <GroupView key={group.key} group={group} />
        ))}
        {hasOlderSessions.value && !query.value && (
          <button type="button" class="show-more" onClick={() => void attempt(loadOlderSessions)}>
            Show older sessions
          </button>
        )}
        {areSessionsLoaded.value && groups.value.length === 0 && <p class="quiet empty">{query.value ? "No session has these words in its title." : "No sessions yet."}</p>}
      </div>
      <div class="sidebar-bottom">
        <button type="button" class="ghost" onClick={() => (dialog.value = "settings")}>
          <Icon name="settings" /> <span>Settings</span>
        </button>
        <IconButton name="theme" label={`Theme: ${theme.value}`} onClick={switchTheme} />
        <IconButton name="phone" label="Use on another device" onClick={() => (dialog.value = "pair")} />
        <IconButton name="question" label="Keys and help" onClick={() => (dialog.value = "help")} />
      </div>
    </nav>
  );
}
