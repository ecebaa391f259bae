// A file's changes: hunks as the server computed them, in one column or two.
import { useMemo, useState } from "preact/hooks";
import { diffStyle } from "../state/ui";
import { showHidden } from "../text/format";
import { languageOf } from "../text/highlight";
import { renderCode } from "../text/markdown";
import { pairRows, readHunks, type Hunk, type Row } from "../text/patch";

const FIRST_ROWS = 400;

function Code({ row, language }: { row: Row; language: string }) {
  const html = useMemo(() => (row.mark ? null : renderCode(showHidden(row.text) || " ", language)), [row, language]);
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
  return <code dangerouslySetInnerHTML={{ __html: html! }} />;
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

function SplitRows({ rows, language }: { rows: Row[]; language: string }) {
  return (
    <>
      {pairRows(rows).map(([left, right], index) => (
        <div class="pair" key={index}>
          <Side row={left} language={language} side="before" />
          <Side row={right} language={language} side="after" />
        </div>
      ))}
    </>
  );
}

/** One hunk; `actions` stand in its header. */
export function HunkView({ hunk, file, actions }: { hunk: Hunk; file: string; actions?: preact.ComponentChildren }) {
  const [isWhole, setWhole] = useState(false);
  const language = languageOf(file);
  const rows = isWhole ? hunk.rows : hunk.rows.slice(0, FIRST_ROWS);
  return (
    <div class="hunk">
      <div class="hunk-header">
        <span>{hunk.header}</span>
        {actions}
      </div>
      <div class={`rows ${diffStyle.value}`} tabindex={0} role="group" aria-label={`Changes of ${file}`}>
        {diffStyle.value === "split" ? <SplitRows rows={rows} language={language} /> : rows.map((row, index) => <UnifiedRow key={index} row={row} language={language} />)}
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
