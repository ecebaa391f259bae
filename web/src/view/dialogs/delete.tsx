// Asks whether a session should be deleted: it can't be taken back.
import { archive, remove } from "../../state/actions";
import { current } from "../../state/store";
import { close, Frame } from "./frame";

export function DeleteDialog() {
  const session = current.value;
  if (!session) return <></>;
  const end = (work: typeof remove): void => {
    close();
    void work(session);
  };
  return (
    <Frame title="Delete the session">
      <p>“{session.title}” and the sessions of its subagents are deleted for good. Files stay as they are. An archived session is only taken from the lists.</p>
      <div class="ask-actions">
        <button type="button" class="button danger" onClick={() => end(remove)}>
          Delete
        </button>
        <button type="button" class="button" autofocus onClick={() => end(archive)}>
          Archive
        </button>
        <button type="button" class="button" onClick={close}>
          Cancel
        </button>
      </div>
    </Frame>
  );
}
