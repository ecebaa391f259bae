// A file's changes: hunks as the server computed them, in one column or two. Rows far from the screen are not drawn.
import { useComputed, type ReadonlySignal } from "@preact/signals";
import { Fragment, type ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { diffStyle, isReadOnly } from "../state/ui";
import { colour, languageOf, languages, type Piece } from "../text/highlight";
import { pairRows, readHunks, type Hunk, type Row } from "../text/patch";

const FIRST_ROWS = 400;
const ROWS_AT_ONCE = 60;
const ROW_HEIGHT = 21;
const NEAR = "700px";

const Pieces = ({ pieces }: { pieces: Piece[] }) => <>{pieces.map((piece, index) => (typeof piece === "string" ? piece : <span key={index} class={piece.className}><Pieces pieces={piece.pieces} /></span>))}</>;

function Code({ row, language }: { row: Row; language: string }) {
  const count = languages.value;
  const pieces = useMemo(() => (row.mark ? null : colour(row.text || " ", language)), [row, language, count]);
  if (row.mark) {
    const [start, end] = row.mark;
    return (
      <code>
        {row.text.slice(0, start)}
        {end > start && <mark>{row.text.slice(start, end)}</mark>}
        {row.text.slice(end)}
      </code>
    );
  }
  return (
    <code>
      <Pieces pieces={pieces!} />
    </code>
  );
}

const SIGNS = { same: " ", add: "+", del: "-" };

/** What stands below lines of a hunk, as comments do. `lines`: those that have something, as they are after the change. */
export interface Notes {
  lines: ReadonlySignal<readonly number[]>;
  draw: (line: number) => ComponentChildren;
}

const Note = ({ row, notes, lines }: { row: Row | null; notes: Notes | undefined; lines: ReadonlySet<number> }) => (notes && row?.after && lines.has(row.after) ? <div class="row-note">{notes.draw(row.after)}</div> : null);

function UnifiedRow({ row, language }: { row: Row; language: string }) {
  return (
    <div class={`row ${row.kind}`}>
      <span class="number" data-number={row.after ?? row.before ?? ""} />
      <span class="sign" data-sign={SIGNS[row.kind]} />
      <Code row={row} language={language} />
    </div>
  );
}

function Side({ row, language, side }: { row: Row | null; language: string; side: "before" | "after" }) {
  if (!row) return <div class="side none" />;
  return (
    <div class={`side ${row.kind}`}>
      <span class="number" data-number={row[side] ?? ""} />
      <Code row={row} language={language} />
    </div>
  );
}

const Pair = ({ pair: [left, right], language }: { pair: [Row | null, Row | null]; language: string }) => (
  <div class="pair">
    <Side row={left} language={language} side="before" />
    <Side row={right} language={language} side="after" />
  </div>
);

const waiting = new Map<Element, () => void>();
const watching = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) if (isIntersecting) waiting.get(target)?.();
  },
  { rootMargin: NEAR, scrollMargin: NEAR } as IntersectionObserverInit,
);

/** Some rows, drawn when they come near the screen; until then as much room as they need. */
interface ChunkProps {
  rows: readonly (Row | null)[];
  isFirst: boolean;
  notes: Notes | undefined;
  children: (lines: ReadonlySet<number>) => ComponentChildren;
}

function Chunk({ rows, isFirst, notes, children }: ChunkProps) {
  const count = rows.length;
  // As a text, so that only the rows with another note are drawn again.
  const noted = useComputed(() => notes?.lines.value.filter((line) => rows.some((row) => row?.after === line)).join() ?? "").value;
  const [isNear, setNear] = useState(isFirst || isReadOnly.value);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current!;
    if (isNear) return;
    waiting.set(element, () => setNear(true));
    watching.observe(element);
    return () => {
      waiting.delete(element);
      watching.unobserve(element);
    };
  }, [isNear]);
  return (
    <div class="rows-chunk" ref={box} style={isNear ? {} : { height: `${count * ROW_HEIGHT}px` }}>
      {isNear && children(new Set(noted ? noted.split(",").map(Number) : []))}
    </div>
  );
}

function inChunks<T>(items: T[]): T[][] {
  return Array.from({ length: Math.ceil(items.length / ROWS_AT_ONCE) }, (_, index) => items.slice(index * ROWS_AT_ONCE, (index + 1) * ROWS_AT_ONCE));
}

interface RowsProps {
  rows: Row[];
  language: string;
  isSplit: boolean;
  notes: Notes | undefined;
}

function Rows({ rows, language, isSplit, notes }: RowsProps) {
  const chunks = useMemo(() => inChunks<[Row | null, Row | null]>(isSplit ? pairRows(rows) : rows.map((row) => [null, row])), [rows, isSplit]);
  return (
    <>
      {chunks.map((pairs, index) => (
        <Chunk key={index} rows={pairs.map(([, row]) => row)} isFirst={index === 0} notes={notes}>
          {(lines) =>
            pairs.map((pair, at) => (
              <Fragment key={at}>
                {isSplit ? <Pair pair={pair} language={language} /> : <UnifiedRow row={pair[1]!} language={language} />}
                <Note row={pair[1]} notes={notes} lines={lines} />
              </Fragment>
            ))
          }
        </Chunk>
      ))}
    </>
  );
}

/** The line (as it is after the change) of a row on the screen; that of the next one for a removed line. */
function lineOf(row: Element | null): number {
  for (let at = row; at; at = at.nextElementSibling) {
    const number = at.matches(".row:not(.del)") ? at.querySelector(".number") : at.querySelector(".side:not(.del):last-child > .number");
    if (number) return Number(number.getAttribute("data-number"));
  }
  return 0;
}

/** Bring a line into sight, and mark it; rows that are not drawn yet are as high as they will be. */
function showLine(box: HTMLElement, line: number): void {
  const chunk = box.children[Math.floor((line - 1) / ROWS_AT_ONCE)];
  chunk?.scrollIntoView({ block: "start" });
  const mark = (): void => {
    const row = chunk?.querySelector(`[data-number="${line}"]`)?.closest(".row, .pair");
    if (!row) return;
    drawn.disconnect();
    row.classList.add("at");
    row.scrollIntoView({ block: "center" });
  };
  const drawn = new MutationObserver(mark);
  if (chunk) drawn.observe(chunk, { childList: true, subtree: true });
  mark();
}

/** Moves a mark over the rows with the arrow keys; `c` or Enter take its line. */
function onRowKey(event: KeyboardEvent, onLine: (line: number) => void): void {
  const box = event.currentTarget as HTMLElement;
  if (event.target !== box || event.ctrlKey || event.metaKey || event.altKey) return;
  const rows = [...box.querySelectorAll(".row, .pair")];
  const at = rows.findIndex((row) => row.classList.contains("at"));
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) {
    const next = rows[Math.min(Math.max(at + step, 0), rows.length - 1)];
    rows[at]?.classList.remove("at");
    next?.classList.add("at");
    next?.scrollIntoView({ block: "nearest" });
  } else if ((event.key === "c" || event.key === "Enter") && lineOf(rows[Math.max(at, 0)] ?? null) > 0) onLine(lineOf(rows[Math.max(at, 0)]!));
  else return;
  event.preventDefault();
  event.stopPropagation();
}

interface HunkProps {
  hunk: Hunk;
  file: string;
  /** Stand in its header. */
  actions?: ComponentChildren;
  /** Called with a line (as it is after the change) that was chosen by its number or by key. */
  onLine?: (line: number) => void;
  notes?: Notes;
  /** A line to begin at. */
  at?: number;
  /** Where there is room for one column only. */
  isNarrow?: boolean;
}

export function HunkView({ hunk, file, actions, onLine, notes, at = 0, isNarrow = false }: HunkProps) {
  const style = isNarrow ? "unified" : diffStyle.value;
  const onClick = (event: MouseEvent): void => {
    const number = event.target instanceof HTMLElement && event.target.closest(".row:not(.del) > .number, .side:not(.del) > .number");
    const line = Number(number && number.getAttribute("data-number"));
    if (line > 0) onLine?.(line);
  };
  const [isWhole, setWhole] = useState(at > FIRST_ROWS);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => void (at > 0 && box.current && showLine(box.current, at)), [at]);
  const language = languageOf(file);
  const rows = useMemo(() => (isWhole ? hunk.rows : hunk.rows.slice(0, FIRST_ROWS)), [hunk, isWhole]);
  return (
    <div class="hunk">
      <div class="hunk-header">
        <span>{hunk.header}</span>
        {actions}
      </div>
      <div ref={box} class={`rows ${style} ${onLine ? "numbered" : ""}`} onClick={onClick} onKeyDown={onLine && ((event) => onRowKey(event, onLine))} tabindex={0} role="group" aria-label={`Lines of ${file}`} title={onLine && "Comment on a line: click its number, or arrow keys and c"}>
        <Rows rows={rows} language={language} isSplit={style === "split"} notes={notes} />
      </div>
      {rows.length < hunk.rows.length && (
        <button type="button" class="show-more" onClick={() => setWhole(true)}>
          Show {hunk.rows.length - rows.length} more lines
        </button>
      )}
    </div>
  );
}

/** The hunks of a patch. */
export function Diff({ patch, file, isNarrow = false }: { patch: string; file: string; isNarrow?: boolean }) {
  const hunks = useMemo(() => readHunks(patch), [patch]);
  if (hunks.length === 0) return <p class="quiet">No lines changed.</p>;
  return (
    <div class="diff">
      {hunks.map((hunk, index) => (
        <HunkView key={index} hunk={hunk} file={file} isNarrow={isNarrow} />
      ))}
    </div>
  );
}

/** "+12 −3" */
export function Counts({ additions, deletions }: { additions: number; deletions: number }) {
  return (
    <span class="counts">
      {additions > 0 && <span class="plus">+{additions}</span>}
      {deletions > 0 && <span class="minus">−{deletions}</span>}
    </span>
  );
}
