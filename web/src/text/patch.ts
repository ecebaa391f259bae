// Patches, as the server's diff computes them, read into hunks and rows. The page computes no diff itself.

export type RowKind = "same" | "add" | "del";

export interface Row {
  kind: RowKind;
  text: string;
  before: number | null;
  after: number | null;
  /** Start and end of what differs from the row that it stands for, in a small hunk. */
  mark?: [number, number];
}

export interface Hunk {
  header: string;
  rows: Row[];
  /** The hunk as it stands in the patch. */
  source: string;
}

const HEADER = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;
const SMALL = 60;

/** Read the hunks of one file's patch. */
export function readHunks(patch: string): Hunk[] {
  const hunks: Hunk[] = [];
  let hunk: Hunk | undefined;
  let before = 0;
  let after = 0;
  for (const line of patch.split("\n")) {
    const header = HEADER.exec(line);
    if (header) {
      hunk = { header: line, rows: [], source: line };
      before = Number(header[1]);
      after = Number(header[2]);
      hunks.push(hunk);
      continue;
    }
    if (!hunk || !/^[-+ \\]/.test(line)) continue;
    hunk.source += `\n${line}`;
    const text = line.slice(1);
    if (line[0] === " ") hunk.rows.push({ kind: "same", text, before: before++, after: after++ });
    if (line[0] === "-") hunk.rows.push({ kind: "del", text, before: before++, after: null });
    if (line[0] === "+") hunk.rows.push({ kind: "add", text, before: null, after: after++ });
  }
  for (const each of hunks) if (each.rows.length <= SMALL) markWords(each.rows);
  return hunks;
}

/** Return a patch that takes one hunk of a file back. */
export function reverseHunk(hunk: Hunk, file: string): string {
  const [header = "", ...lines] = hunk.source.split("\n");
  const turned = header.replace(/^@@ -(\S+) \+(\S+) @@/, "@@ -$2 +$1 @@");
  const rows = lines.map((line) => (line[0] === "+" ? `-${line.slice(1)}` : line[0] === "-" ? `+${line.slice(1)}` : line));
  return [`diff --git a/${file} b/${file}`, `--- a/${file}`, `+++ b/${file}`, turned, ...rows, ""].join("\n");
}

/** Find, in runs of as many removed as added rows, what differs between a row and its counterpart. */
function markWords(rows: Row[]): void {
  for (let at = 0; at < rows.length; ) {
    let dels = at;
    while (rows[dels]?.kind === "del") dels++;
    let adds = dels;
    while (rows[adds]?.kind === "add") adds++;
    const count = dels - at;
    if (count > 0 && count === adds - dels) for (let n = 0; n < count; n++) markPair(rows[at + n]!, rows[dels + n]!);
    at = Math.max(adds, at + 1);
  }
}

function markPair(del: Row, add: Row): void {
  const most = Math.min(del.text.length, add.text.length);
  let start = 0;
  while (start < most && del.text[start] === add.text[start]) start++;
  let end = 0;
  while (end < most - start && del.text[del.text.length - 1 - end] === add.text[add.text.length - 1 - end]) end++;
  const isWord = (sign: string | undefined): boolean => !!sign && /\w/.test(sign);
  while (start > 0 && isWord(del.text[start - 1]) && (isWord(del.text[start]) || isWord(add.text[start]))) start--;
  while (end > 0 && isWord(del.text[del.text.length - end]) && (isWord(del.text[del.text.length - end - 1]) || isWord(add.text[add.text.length - end - 1]))) end--;
  if (start + end < most / 3) return;
  del.mark = [start, del.text.length - end];
  add.mark = [start, add.text.length - end];
}

/** Pair removed with added rows, for two columns. */
export function pairRows(rows: Row[]): [Row | null, Row | null][] {
  const pairs: [Row | null, Row | null][] = [];
  let dels: Row[] = [];
  let adds: Row[] = [];
  const flush = (): void => {
    for (let n = 0; n < Math.max(dels.length, adds.length); n++) pairs.push([dels[n] ?? null, adds[n] ?? null]);
    dels = [];
    adds = [];
  };
  for (const row of rows) {
    if (row.kind === "del") dels.push(row);
    else if (row.kind === "add") adds.push(row);
    else {
      flush();
      pairs.push([row, row]);
    }
  }
  flush();
  return pairs;
}
