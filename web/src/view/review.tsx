// Review of changed files: of the whole session, of the last turn, or of the work tree; hunks can be commented on.
import { useSignal, useSignalEffect, type Signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { lastPrompt } from "../state/actions";
import { changes, current, place } from "../state/store";
import { attempt, copy, diffStyle, fail, insertion, isSidebarOpen, panel, tell } from "../state/ui";
import { baseName, formatNumber, showHidden } from "../text/format";
import { readHunks, reverseHunk, type Hunk } from "../text/patch";
import { get, post } from "../wire/api";
import type { FileDiff, FileOutcome } from "../wire/types";
import { Counts, HunkView } from "./diff";
import { Icon, IconButton } from "./icons";

type Scope = "session" | "turn" | "tree";

const SCOPES: Record<Scope, string> = { session: "Session", turn: "Last turn", tree: "Work tree" };

function readDiffs(scope: Scope): Promise<FileDiff[]> {
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

function Comment({ file, hunk, onClose }: { file: string; hunk: Hunk; onClose: () => void }) {
  const text = useSignal("");
  const line = hunk.rows.find((row) => row.after !== null)?.after ?? 1;
  return (
    <form
      class="comment"
      onSubmit={(event) => {
        event.preventDefault();
        if (!text.value.trim()) return;
        insertion.value = `About @${file} line ${line}:\n\`\`\`diff\n${hunk.source.split("\n").slice(0, 40).join("\n")}\n\`\`\`\n${text.value.trim()}`;
        tell("The comment is in the prompt box");
        onClose();
      }}
    >
      <textarea class="field" rows={2} aria-label="Comment" placeholder="What should be different here?" ref={(node) => node?.focus()} onInput={(event) => (text.value = event.currentTarget.value)} />
      <div class="ask-actions">
        <button type="submit" class="button primary">
          Add to the prompt
        </button>
        <button type="button" class="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </form>
  );
}

function ReviewHunk({ hunk, file, canUndo }: { hunk: Hunk; file: string; canUndo: boolean }) {
  const isCommenting = useSignal(false);
  return (
    <>
      <HunkView
        hunk={hunk}
        file={file}
        actions={
          <span class="hunk-actions">
            <button type="button" class="link" onClick={() => (isCommenting.value = !isCommenting.value)}>
              Comment
            </button>
            {canUndo && (
              <button type="button" class="link" onClick={() => void undoHunk(hunk, file)}>
                Undo
              </button>
            )}
          </span>
        }
      />
      {isCommenting.value && <Comment file={file} hunk={hunk} onClose={() => (isCommenting.value = false)} />}
    </>
  );
}

function FileReview({ diff, scope, viewed }: { diff: FileDiff; scope: Scope; viewed: Signal<ReadonlyMap<string, string>> }) {
  const file = diff.file ?? "";
  const patch = diff.patch ?? "";
  const isViewed = viewed.value.get(file) === patch;
  const hunks = useMemo(() => readHunks(patch), [patch]);
  const toggle = (): void => {
    const next = new Map(viewed.value);
    if (isViewed) next.delete(file);
    else next.set(file, patch);
    viewed.value = next;
  };
  return (
    <section class={`review-file ${isViewed ? "viewed" : ""}`} id={`file-${file}`} aria-label={file}>
      <header>
        <span class="review-name" title={file}>
          {showHidden(file)}
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
          <input type="checkbox" checked={isViewed} onChange={toggle} /> Viewed
        </label>
      </header>
      {!isViewed && (hunks.length > 0 ? hunks.map((hunk) => <ReviewHunk key={hunk.source} hunk={hunk} file={file} canUndo={scope === "tree" && diff.status === "modified"} />) : <p class="quiet">No lines to show.</p>)}
    </section>
  );
}

export function Review() {
  const scope = useSignal<Scope>(place.value.sessionID ? "session" : "tree");
  const diffs = useSignal<readonly FileDiff[] | null>(null);
  const viewed = useSignal<ReadonlyMap<string, string>>(new Map());
  useSignalEffect(() => {
    void changes.value;
    void place.value;
    const asked = scope.value;
    readDiffs(asked).then((found) => asked === scope.peek() && (diffs.value = found), fail);
  });
  const found = diffs.value ?? [];
  const seen = found.filter((diff) => viewed.value.get(diff.file ?? "") === (diff.patch ?? "")).length;
  return (
    <aside class="review" aria-label="Review">
      <header class="review-top">
        <div class="tabs" role="tablist" aria-label="Changes of">
          {(Object.keys(SCOPES) as Scope[])
            .filter((each) => each === "tree" || current.value)
            .map((each) => (
              <button key={each} type="button" role="tab" aria-selected={scope.value === each} onClick={() => (scope.value = each)}>
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
        {diffs.value && (
          <p class="quiet">
            {found.length === 0 ? "Nothing has changed." : `${formatNumber(found.length, "file")} changed, ${seen} viewed`}
          </p>
        )}
        {found.length > 1 && <FileTree diffs={found} />}
        {found.map((diff) => (
          <FileReview key={diff.file} diff={diff} scope={scope.value} viewed={viewed} />
        ))}
      </div>
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
