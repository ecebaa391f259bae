// The files of the directory: a tree, a search for names and for text, and a file to read, with its changes and comments.
import { signal, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { findFiles } from "../state/actions";
import { editorAddress } from "../state/editor";
import { changes, place } from "../state/store";
import { attempt, copy, fail, insertion, panel } from "../state/ui";
import { formatNumber } from "../text/format";
import { readHunks, type Hunk } from "../text/patch";
import { get } from "../wire/api";
import { Icon, IconButton } from "./icons";
import { ReviewHunk } from "./review";

interface Node {
  name: string;
  path: string;
  type: "file" | "directory";
  ignored: boolean;
}

interface Content {
  type: "text" | "binary";
  content: string;
  encoding?: "base64";
  mimeType?: string;
  diff?: string;
}

interface FoundLine {
  path: { text: string };
  lines: { text: string };
  line_number: number;
}

const MOST_FOUND = 100;

/** The file that is read, with the line to begin at; "" for the tree. */
const shown = signal<{ path: string; line: number }>({ path: "", line: 0 });

const read = (path: string, line = 0): void => void (shown.value = { path, line });

/** Put the name of a file into the prompt. */
function mention(path: string): void {
  insertion.value = { text: `@${path} ` };
  if (matchMedia("(max-width: 820px)").matches) panel.value = "none";
}

function Folder({ path }: { path: string }) {
  const nodes = useSignal<readonly Node[] | null>(null);
  useEffect(() => void get<Node[]>("/file", place.value.directory, { path }).then((found) => (nodes.value = found), fail), [path, changes.value]);
  if (!nodes.value) return null;
  return (
    <ul>
      {nodes.value.map((node) => (
        <Entry key={node.path} node={node} />
      ))}
      {nodes.value.length === 0 && <li class="quiet">empty</li>}
    </ul>
  );
}

function Entry({ node }: { node: Node }) {
  const isOpen = useSignal(false);
  const isFolder = node.type === "directory";
  return (
    <li class={node.ignored ? "ignored" : ""}>
      <button type="button" class="file-entry" aria-expanded={isFolder ? isOpen.value : undefined} onClick={() => (isFolder ? (isOpen.value = !isOpen.value) : read(node.path))}>
        <Icon name={isFolder ? "folder" : "file"} size={14} />
        <span>{node.name}</span>
      </button>
      {isOpen.value && <Folder path={node.path} />}
    </li>
  );
}

/** Names and lines that hold what is typed. */
function Found({ query }: { query: string }) {
  const names = useSignal<readonly string[]>([]);
  const lines = useSignal<readonly FoundLine[]>([]);
  const asked = useRef(0);
  const isSearching = useSignal(true);
  useEffect(() => {
    const turn = ++asked.current;
    isSearching.value = true;
    const timer = setTimeout(() => {
      const pattern = query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
      void attempt(async () => {
        const [paths, matches] = await Promise.all([findFiles(query), get<FoundLine[]>("/find", place.value.directory, { pattern })]);
        if (turn !== asked.current) return;
        names.value = paths.filter((path) => !path.endsWith("/"));
        lines.value = matches;
      }).then(() => turn === asked.current && (isSearching.value = false));
    }, 200);
    return () => clearTimeout(timer);
  }, [query]);
  if (!isSearching.value && names.value.length + lines.value.length === 0) return <p class="quiet">No name and no line has this.</p>;
  return (
    <ul aria-busy={isSearching.value}>
      {names.value.map((path) => (
        <li key={path}>
          <button type="button" class="file-entry" onClick={() => read(path)}>
            <Icon name="file" size={14} />
            <span>{path}</span>
          </button>
        </li>
      ))}
      {lines.value.slice(0, MOST_FOUND).map((match) => (
        <li key={`${match.path.text}:${match.line_number}`}>
          <button type="button" class="file-entry found-line" onClick={() => read(match.path.text, match.line_number)}>
            <span class="quiet">
              {match.path.text}:{match.line_number}
            </span>
            <code>{match.lines.text.trim().slice(0, 200)}</code>
          </button>
        </li>
      ))}
    </ul>
  );
}

/** All lines of a text as rows without changes. */
function asHunk(content: string): Hunk {
  const rows = content.split("\n").map((text, index) => ({ kind: "same" as const, text, before: index + 1, after: index + 1 }));
  return { header: formatNumber(rows.length, "line"), rows, source: "" };
}

function FileView({ path, line }: { path: string; line: number }) {
  const found = useSignal<Content | null>(null);
  const isDiff = useSignal(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => void get<Content>("/file/content", place.value.directory, { path }).then((content) => (found.value = content), fail), [path, changes.value]);
  const content = found.value;
  const whole = useMemo(() => (content?.type === "text" ? asHunk(content.content) : null), [content]);
  const hunks = useMemo(() => readHunks(content?.diff ?? ""), [content]);
  const address = editorAddress(`${place.value.directory}/${path}`, line || 1);
  return (
    <div class="file-view" ref={box}>
      <header>
        <IconButton name="undo" label="Back to the files" onClick={() => read("")} />
        <span class="review-name" title={path}>
          {path}
        </span>
        <span class="spring" />
        {hunks.length > 0 && (
          <button type="button" class="link" aria-pressed={isDiff.value} onClick={() => (isDiff.value = !isDiff.value)}>
            {isDiff.value ? "Whole file" : "Changes"}
          </button>
        )}
        {address && (
          <a class="link" href={address}>
            Open
          </a>
        )}
        <button type="button" class="link" title="Name it in the prompt" onClick={() => mention(path)}>
          @ in the prompt
        </button>
        <IconButton name="copy" label={`Copy the text of ${path}`} onClick={() => void copy(content?.content ?? "")} />
      </header>
      {content?.type === "binary" && (content.mimeType?.startsWith("image/") ? <img class="picture" src={`data:${content.mimeType};base64,${content.content}`} alt={path} /> : <p class="quiet">This is no text.</p>)}
      {isDiff.value ? hunks.map((hunk) => <ReviewHunk key={hunk.source} hunk={hunk} file={path} canUndo={false} />) : whole && <ReviewHunk key={path} hunk={whole} file={path} canUndo={false} at={line} />}
    </div>
  );
}

export function Files() {
  const query = useSignal("");
  useEffect(() => () => read(""), []);
  const { path, line } = shown.value;
  if (path) return <FileView key={`${path} ${line}`} path={path} line={line} />;
  return (
    <div class="files-panel">
      <input class="field" type="search" aria-label="Search files" placeholder="Search names and text" value={query.value} onInput={(event) => (query.value = event.currentTarget.value)} />
      <div class="file-tree">{query.value.trim().length > 1 ? <Found query={query.value.trim()} /> : <Folder path="." />}</div>
    </div>
  );
}
