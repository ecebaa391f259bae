// What an undo would do to the files, before it is done.
import { signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { previewUndo, undo } from "../../state/actions";
import { fail } from "../../state/ui";
import type { FileOutcome } from "../../wire/types";
import { close, Frame } from "./frame";

/** The prompt that is to be taken back. */
export const undoTarget = signal("");

export function UndoDialog() {
  const preview = useSignal<FileOutcome | null>(null);
  useEffect(() => {
    previewUndo(undoTarget.value).then(
      (found) => (preview.value = found),
      (error: unknown) => {
        close();
        fail(error);
      },
    );
  }, []);
  const found = preview.value;
  const main = useRef<HTMLButtonElement>(null);
  useEffect(() => main.current?.focus(), [found]);
  return (
    <Frame title="Undo">
      {!found && <p class="quiet">Looking at the files…</p>}
      {found && (
        <>
          <p>The conversation goes back to before this prompt. It can be redone until you send another one.</p>
          <FileList title="Put back" files={found.restored} />
          {found.conflicts.length > 0 && (
            <>
              <h3>Left as they are</h3>
              <ul class="files">
                {found.conflicts.map((conflict) => (
                  <li key={conflict.path}>
                    <code>{conflict.path}</code> {conflict.reason}
                  </li>
                ))}
              </ul>
            </>
          )}
          {found.restored.length + found.conflicts.length === 0 && <p class="quiet">No files change.</p>}
          <div class="dialog-actions">
            <button
              type="button"
              class="button primary"
              ref={main}
              onClick={() => {
                close();
                void undo(undoTarget.value);
              }}
            >
              Undo
            </button>
            <button type="button" class="button" onClick={close}>
              Cancel
            </button>
          </div>
        </>
      )}
    </Frame>
  );
}

function FileList({ title, files }: { title: string; files: string[] }) {
  if (files.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul class="files">
        {files.map((file) => (
          <li key={file}>
            <code>{file}</code>
          </li>
        ))}
      </ul>
    </>
  );
}
