// A file's changes: hunks as the server computed them, in one column or two. Rows far from the screen are not drawn.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { diffStyle, isReadOnly } from "../state/ui";
import { showHidden } from "../text/format";
import { colour, languageOf, languages, type Piece } from "../text/highlight";
import { pairRows, readHunks, type Hunk, type Row } from "../text/patch";

const FIRST_ROWS = 400;
const ROWS_AT_ONCE = 60;
const ROW_HEIGHT = 21;
const NEAR = "700px";

const Pieces = ({ pieces }: { pieces: Piece[] }) => <>{pieces.map((piece, index) => (typeof piece === "string" ? piece : <span key={index} class={piece.className}><Pieces pieces={piece.pieces} /></span>))}</>;

function Code({ row, language }: { row: Row; language: string }) {
  const count = languages.value;
  const pieces = useMemo(() => (row.mark ? null : colour(showHidden(row.text) || " ", language)), [row, language, count]);
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
function Chunk({ count, isFirst, children }: { count: number; isFirst: boolean; children: () => ComponentChildren }) {
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
      {isNear && children()}
    </div>
  );
}

function inChunks<T>(items: T[]): T[][] {
  return Array.from({ length: Math.ceil(items.length / ROWS_AT_ONCE) }, (_, index) => items.slice(index * ROWS_AT_ONCE, (index + 1) * ROWS_AT_ONCE));
}

function Rows({ rows, language, isSplit }: { rows: Row[]; language: string; isSplit: boolean }) {
  const chunks = useMemo(() => (isSplit ? { pairs: inChunks(pairRows(rows)) } : { rows: inChunks(rows) }), [rows, isSplit]);
  if (chunks.pairs) return <>{chunks.pairs.map((pairs, index) => <Chunk key={index} count={pairs.length} isFirst={index === 0}>{() => pairs.map((pair, at) => <Pair key={at} pair={pair} language={language} />)}</Chunk>)}</>;
  return <>{chunks.rows.map((some, index) => <Chunk key={index} count={some.length} isFirst={index === 0}>{() => some.map((row, at) => <UnifiedRow key={at} row={row} language={language} />)}</Chunk>)}</>;
}

/** One hunk; `actions` stand in its header, `onLine`: a line's number (as it is after the change) was clicked. */
export function HunkView({ hunk, file, actions, onLine }: { hunk: Hunk; file: string; actions?: preact.ComponentChildren; onLine?: (line: number) => void }) {
  const onClick = (event: MouseEvent): void => {
    const number = event.target instanceof HTMLElement && event.target.closest(".row:not(.del) > .number, .side:not(.del) > .number");
    const line = Number(number && number.getAttribute("data-number"));
    if (line > 0) onLine?.(line);
  };
  const [isWhole, setWhole] = useState(false);
  const language = languageOf(file);
  const rows = useMemo(() => (isWhole ? hunk.rows : hunk.rows.slice(0, FIRST_ROWS)), [hunk, isWhole]);
  return (
    <div class="hunk">
      <div class="hunk-header">
        <span>{hunk.header}</span>
        {actions}
      </div>
      <div class={`rows ${diffStyle.value} ${onLine ? "numbered" : ""}`} onClick={onClick} tabindex={0} role="group" aria-label={`Changes of ${file}`}>
        <Rows rows={rows} language={language} isSplit={diffStyle.value === "split"} />
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
export function Diff({ patch, file }: { patch: string; file: string }) {
  const hunks = useMemo(() => readHunks(patch), [patch]);
  if (hunks.length === 0) return <p class="quiet">No lines changed.</p>;
  return (
    <div class="diff">
      {hunks.map((hunk, index) => (
        <HunkView key={index} hunk={hunk} file={file} />
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
