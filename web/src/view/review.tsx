// Review of changed files: of the whole session, of the last turn, or of the work tree; hunks can be commented on.
import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { lastPrompt, sendComments } from "../state/actions";
import { editorAddress } from "../state/editor";
import { changes, current, offers, place } from "../state/store";
import { addThread, threads, unsent } from "../state/threads";
import { attempt, copy, diffStyle, fail, isSidebarOpen, panel, reviewed, tell, type Scope } from "../state/ui";
import { isViewed, toggleViewed } from "../state/viewed";
import { baseName, formatNumber } from "../text/format";
import { readHunks, reverseHunk, type Hunk } from "../text/patch";
import { get, post } from "../wire/api";
import type { FileDiff, FileOutcome } from "../wire/types";
import { Counts, HunkView } from "./diff";
import { Icon, IconButton } from "./icons";
import { makeLazy } from "./lazy";
import { CommentForm, ThreadView } from "./threads";



/** Rows of an excerpt before and after the line that is commented on. */
const AROUND = 4;
const SCOPES: Record<Scope, string> = { session: "Session", turn: "Last turn", tree: "Work tree", files: "Files" };

const Files = makeLazy(() => import("./files").then((module) => module.Files));

function readDiffs(scope: Exclude<Scope, "files">): Promise<FileDiff[]> {
  const { sessionID, directory } = place.value;
  if (scope === "tree" || !sessionID) return get<FileDiff[]>("/vcs/diff", directory, { mode: "git", context: 4 });
  return get<FileDiff[]>(`/session/${sessionID}/diff`, directory, scope === "session" ? { whole: true } : { messageID: lastPrompt() });
}

/** The last turn's changes of a file are taken back; the conversation stays. */
async function undoFile(file: string): Promise<void> {
  const { sessionID, directory } = place.value;
  await attempt(async () => {
    const { outcome } = await post<{ outcome: FileOutcome }>(`/session/${sessionID}/undo`, { files: [file] }, directory);
    const conflict = outcome.conflicts[0];
    if (conflict) fail(new Error(`${conflict.path} was left as it is: ${conflict.reason}`));
    else tell(outcome.restored.length > 0 ? `${baseName(file)} is as it was before the turn` : "There was nothing to undo");
    changes.value++;
  });
}

/** One hunk is taken back in the work tree; git refuses when the lines are others by now. */
async function undoHunk(hunk: Hunk, file: string): Promise<void> {
  await attempt(async () => {
    await post("/vcs/apply", { patch: reverseHunk(hunk, file) }, place.value.directory);
    tell(`These lines of ${baseName(file)} are as they were before`);
    changes.value++;
  });
}

/** A hunk with the comments on its lines; `at`: the line to begin at. */
export function ReviewHunk({ hunk, file, canUndo, at = 0 }: { hunk: Hunk; file: string; canUndo: boolean; at?: number }) {
  const commenting = useSignal(0);
  const line = hunk.rows.find((row) => row.kind !== "same" && row.after !== null)?.after ?? hunk.rows.find((row) => row.after !== null)?.after ?? 1;
  const own = useComputed(() => threads.value.filter((thread) => thread.file === file && isWithin(thread.line, hunk)));
  const lines = useComputed(() => [...new Set([commenting.value, ...own.value.map((thread) => thread.line)])].filter((number) => number > 0));
  const draw = (number: number) => (
    <>
      {own.value.filter((thread) => thread.line === number).map((thread) => <ThreadView key={thread.id} thread={thread} />)}
      {commenting.value === number && (
        <CommentForm label={`Comment on line ${number}`} placeholder="What should be different here?" onClose={() => (commenting.value = 0)} onSubmit={(text) => addThread(file, number, excerptOf(hunk, number), text)} />
      )}
    </>
  );
  return (
    <HunkView
      hunk={hunk}
      file={file}
      onLine={(number) => (commenting.value = number)}
      notes={{ lines, draw }}
      at={at}
      actions={
        <span class="hunk-actions">
          <button type="button" class="link" onClick={() => (commenting.value = commenting.value ? 0 : line)}>
            Comment
          </button>
          <EditorLink file={file} line={line} />
          {canUndo && (
            <button type="button" class="link" onClick={() => void undoHunk(hunk, file)}>
              Undo
            </button>
          )}
        </span>
      }
    />
  );
}

/** The rows of a hunk around a line, as a hunk. */
function excerptOf(hunk: Hunk, line: number): string {
  const at = Math.max(hunk.rows.findIndex((row) => row.after === line), 0);
  const around = hunk.rows.slice(Math.max(at - AROUND, 0), at + AROUND + 1);
  const range = (side: "before" | "after"): string => `${around.find((row) => row[side])?.[side] ?? 0},${around.filter((row) => row[side]).length}`;
  const rows = around.map((row) => `${{ same: " ", add: "+", del: "-" }[row.kind]}${row.text}`);
  return [`@@ -${range("before")} +${range("after")} @@`, ...rows].join("\n");
}

/** Whether a line of the file stands in a hunk, as it is after the change. */
function isWithin(line: number, hunk: Hunk): boolean {
  const lines = hunk.rows.flatMap((row) => row.after ?? []);
  return line >= (lines[0] ?? 0) && line <= (lines.at(-1) ?? 0);
}

/** Opens a file in the editor that was chosen; nothing where none was. */
function EditorLink({ file, line }: { file: string; line: number }) {
  const address = editorAddress(`${offers.value.worktree || place.value.directory}/${file}`, line);
  return address ? (
    <a class="link" href={address}>
      Open
    </a>
  ) : null;
}

function FileReview({ diff, scope }: { diff: FileDiff; scope: Scope }) {
  const file = diff.file ?? "";
  const patch = diff.patch ?? "";
  const wasViewed = isViewed(file, patch);
  const hunks = useMemo(() => readHunks(patch), [patch]);
  const loose = threads.value.filter((thread) => thread.file === file && !hunks.some((hunk) => isWithin(thread.line, hunk)));
  return (
    <section class={`review-file ${wasViewed ? "viewed" : ""}`} id={`file-${file}`} aria-label={file}>
      <header>
        <span class="review-name" title={file}>
          {file}
        </span>
        <Counts additions={diff.additions} deletions={diff.deletions} />
        <span class="spring" />
        {scope === "turn" && (
          <button type="button" class="link" onClick={() => void undoFile(file)}>
            Undo file
          </button>
        )}
        <IconButton name="copy" label={`Copy the patch of ${file}`} onClick={() => void copy(patch)} />
        <label class="viewed-mark">
          <input type="checkbox" checked={wasViewed} onChange={() => toggleViewed(file, patch)} /> Viewed
        </label>
      </header>
      {!wasViewed && loose.map((thread) => <ThreadView key={thread.id} thread={thread} />)}
      {!wasViewed && (hunks.length > 0 ? hunks.map((hunk) => <ReviewHunk key={hunk.source} hunk={hunk} file={file} canUndo={scope === "tree" && diff.status === "modified"} />) : <p class="quiet">No lines to show.</p>)}
    </section>
  );
}

export function Review() {
  const scope = useComputed<Scope>(() => reviewed.value || (place.value.sessionID ? "session" : "tree"));
  const diffs = useSignal<readonly FileDiff[] | null>(null);
  useSignalEffect(() => {
    void changes.value;
    void place.value;
    const asked = scope.value;
    if (asked === "files") return;
    readDiffs(asked).then((found) => asked === scope.peek() && (diffs.value = found), fail);
  });
  const found = scope.value === "files" ? [] : (diffs.value ?? []);
  const elsewhere = diffs.value && scope.value !== "files" ? threads.value.filter((thread) => !found.some((diff) => diff.file === thread.file)) : [];
  const seen = found.filter((diff) => isViewed(diff.file ?? "", diff.patch ?? "")).length;
  return (
    <aside class="review" aria-label="Review">
      <header class="review-top">
        <div class="tabs" role="tablist" aria-label="Changes of">
          {(Object.keys(SCOPES) as Scope[])
            .filter((each) => each === "tree" || each === "files" || current.value)
            .map((each) => (
              <button key={each} type="button" role="tab" aria-selected={scope.value === each} onClick={() => (reviewed.value = each)}>
                {SCOPES[each]}
              </button>
            ))}
        </div>
        <span class="spring" />
        <button type="button" class="ghost" onClick={() => (diffStyle.value = diffStyle.value === "split" ? "unified" : "split")}>
          {diffStyle.value === "split" ? "One column" : "Two columns"}
        </button>
        <IconButton name="copy" label="Copy all as a patch" onClick={() => void copy(found.map((diff) => diff.patch).join("\n"))} />
        <IconButton name="cross" label="Close the review" onClick={() => (panel.value = "none")} />
      </header>
      <div class="review-body" tabindex={0} role="region" aria-label="Changed files">
        {scope.value === "files" && <Files />}
        {scope.value !== "files" && diffs.value && (
          <p class="quiet">
            {found.length === 0 ? "Nothing has changed." : `${formatNumber(found.length, "file")} changed, ${seen} viewed`}
          </p>
        )}
        {found.length > 1 && <FileTree diffs={found} />}
        {found.map((diff) => (
          <FileReview key={diff.file} diff={diff} scope={scope.value} />
        ))}
        {elsewhere.length > 0 && (
          <section class="review-file" aria-label="Comments on other files">
            <header>
              <span class="review-name">Comments on files that are not among these changes</span>
            </header>
            {elsewhere.map((thread) => (
              <ThreadView key={thread.id} thread={thread} isNamed />
            ))}
          </section>
        )}
      </div>
      {unsent.value.length > 0 && (
        <footer class="review-send">
          <span>{formatNumber(unsent.value.length, "comment")} not sent yet</span>
          <span class="spring" />
          <button type="button" class="button primary" onClick={() => void sendComments()}>
            Send as a prompt
          </button>
        </footer>
      )}
    </aside>
  );
}

function FileTree({ diffs }: { diffs: readonly FileDiff[] }) {
  const show = (file: string): void => {
    isSidebarOpen.value = false;
    document.getElementById(`file-${file}`)?.scrollIntoView({ block: "start" });
  };
  return (
    <ul class="review-tree">
      {diffs.map((diff) => (
        <li key={diff.file}>
          <button type="button" onClick={() => show(diff.file ?? "")}>
            <Icon name="file" size={14} />
            <span>{diff.file}</span>
            <Counts additions={diff.additions} deletions={diff.deletions} />
          </button>
        </li>
      ))}
    </ul>
  );
}
