/** Says what a turn did to the project, as the program itself found it. */

import type { TurnFacts } from "../wire/types";

/** What changed, and how the checks stand, as short texts: `3 files changed (+12 -3)`. */
export function describeChanges(facts: TurnFacts | undefined): string[] {
  if (!facts) return [];
  const { files, additions, deletions, checks } = facts;
  const lines = additions || deletions ? ` (+${additions} -${deletions})` : "";
  const changes = files ? `${files === 1 ? "1 file" : `${files} files`} changed${lines}` : "no file was changed";
  return checks === "none" ? [changes] : [changes, `checks ${checks}`];
}

/** What it did besides: moved commits and branches, and uncommitted work of the user's that commands removed. */
export function describeSideEffects(facts: TurnFacts | undefined): string[] {
  const { git = [], lostFiles = [], unrecorded = [] } = facts ?? {};
  const sentences: string[] = [];
  if (git.length > 0) sentences.push(`${git.join("; ").replace(/^./, (first) => first.toUpperCase())}.`);
  if (lostFiles.length > 0) sentences.push(`Uncommitted work of yours was removed by a command: ${lostFiles.join(", ")}. Undo brings it back.`);
  if (unrecorded.length > 0) sentences.push(`What can't be undone: ${unrecorded.slice(0, 5).join(", ")}.`);
  return sentences;
}
