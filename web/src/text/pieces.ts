// Long texts in pieces, each of which is read and drawn by itself: what a text costs at once does not grow with it.

/** Characters from which on a piece ends at the next line where it may. */
const PIECE = 4_000;
/** A line without any place to end at is cut at a blank behind so many characters. */
const LONGEST_LINE = 8_000;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const ITEM = /^(?:[-*+]|\d{1,9}[.)])\s/;
const DELIMITER = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;

/** A piece of a text. `isRest`: it goes on with what the one before has begun. */
export interface Piece {
  text: string;
  isRest: boolean;
  /** It begins with the head of a table that stands before it. */
  hasHead: boolean;
}

/** Cut a text between blocks and items, between rows of a table (which get its head again), and within endless lines. Joined, the pieces without such heads are the text. */
export function cutText(text: string): Piece[] {
  if (text.length <= PIECE) return [{ text, isRest: false, hasHead: false }];
  const pieces: Piece[] = [];
  let piece = "";
  let isRest = false;
  let hasHead = false;
  let fence = "";
  let head: string[] = [];
  let previous = "";
  const end = (isNextRest: boolean, begin = ""): void => {
    pieces.push({ text: piece, isRest, hasHead });
    piece = begin;
    isRest = isNextRest;
    hasHead = begin !== "";
  };
  for (const line of text.split(/(?<=\n)/)) {
    const isOpen = fence !== "";
    if (piece.length >= PIECE && !isOpen) {
      const isIndented = /^\s/.test(line);
      if (!previous.trim() && line.trim() && !isIndented && !ITEM.test(line)) end(false);
      else if (ITEM.test(line)) end(true);
      else if (head.length === 2 && line.includes("|")) end(true, head.join(""));
    }
    const mark = FENCE.exec(line)?.[1];
    if (mark && !isOpen) fence = mark;
    else if (mark && isOpen && mark[0] === fence[0] && mark.length >= fence.length && !line.trim().slice(mark.length)) fence = "";
    if (DELIMITER.test(line) && line.includes("-") && previous.includes("|")) head = [previous, line];
    else if (!line.includes("|")) head = [];
    previous = line;
    let rest = line;
    while (!isOpen && rest.length > LONGEST_LINE) {
      const at = rest.lastIndexOf(" ", LONGEST_LINE) + 1 || LONGEST_LINE;
      piece += rest.slice(0, at);
      end(true);
      rest = rest.slice(at);
    }
    piece += rest;
  }
  pieces.push({ text: piece, isRest, hasHead });
  return pieces;
}

/** Cuts a text that grows: what stands before the last piece is not read again. */
export class Cutter {
  private settled: Piece[] = [];
  private before = "";
  private isRest = false;

  cut(text: string): Piece[] {
    if (!text.startsWith(this.before)) {
      this.settled = [];
      this.before = "";
    }
    const fresh = cutText(text.slice(this.before.length));
    if (this.settled.length > 0) fresh[0] = { ...fresh[0]!, isRest: this.isRest };
    // Up to the last but one, so that a cut is not made again in another place. Heads of tables are no part of the text: those stay together.
    const last = fresh.at(-1)!;
    const pieces = [...this.settled, ...fresh];
    if (fresh.length > 1 && !last.hasHead && text.endsWith(last.text)) {
      this.settled = pieces.slice(0, -1);
      this.before = text.slice(0, text.length - last.text.length);
      this.isRest = last.isRest;
    }
    return pieces;
  }
}
