/** Says what a turn did to the project, as the program itself found it. */

import type { TurnFacts } from "../wire/types";

/** What changed, and how the checks stand, as short texts: `3 files changed (+12 -3)`. */
export function describeChanges(facts: TurnFacts | undefined): string[] {
  if (!facts) return [];
  const { files, additions, deletions, checks, unrecorded = [] } = facts;
  const lines = additions || deletions ? ` (+${additions} -${deletions})` : "";
  const changes = files ? `${files === 1 ? "1 file" : `${files} files`} changed${lines}` : "no file was changed";
  // Where not all is known, nothing may have changed, or much.
  const known = files || unrecorded.length === 0 ? [changes] : [];
  return checks === "none" ? known : [...known, `checks ${checks}`];
}

/** False claims, open todos, and what it did besides: moved commits and branches, and uncommitted work of the user's that commands removed. */
export function describeSideEffects(facts: TurnFacts | undefined): string[] {
  const { git = [], lostFiles = [], unrecorded = [], falseClaims = [], openTodos = 0 } = facts ?? {};
  const sentences = falseClaims.map(makeSentence);
  if (openTodos > 0) sentences.push(`${openTodos === 1 ? "1 todo is" : `${openTodos} todos are`} still open.`);
  if (git.length > 0) sentences.push(makeSentence(git.join("; ")));
  if (lostFiles.length > 0) sentences.push(`Uncommitted work of yours was removed by a command: ${lostFiles.join(", ")}. Undo brings it back.`);
  if (unrecorded.length > 0) sentences.push(`What can't be undone: ${unrecorded.slice(0, 5).join(", ")}.`);
  return sentences;
}

const makeSentence = (clause: string) => `${clause.replace(/^./, (first) => first.toUpperCase())}.`;
