// A session as one page to give to others: the server leaves secrets out, the page's template is filled in here.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { place } from "../../state/store";
import { attempt, fail, tell } from "../../state/ui";
import { formatNumber } from "../../text/format";
import { get } from "../../wire/api";
import type { ShareableSession } from "../../wire/types";
import { saveFile } from "../save";
import { close, Frame } from "./frame";

const MARK = "__SESSION__";

/** Have the browser save the page of a session. */
async function savePage(shared: ShareableSession): Promise<void> {
  const response = await fetch("/web/share.html");
  if (!response.ok) throw new Error("The page for sharing can't be loaded.");
  const [before, after] = (await response.text()).split(MARK);
  saveFile(shared.sessions[0]!.info.title, "html", [before!, JSON.stringify(shared).replaceAll("<", "\\u003c"), after!], "text/html");
}

export function ShareDialog() {
  const shared = useSignal<ShareableSession | null>(null);
  useEffect(() => {
    const { sessionID, directory } = place.value;
    get<ShareableSession>(`/session/${sessionID}/shareable`, directory).then(
      (found) => (shared.value = found),
      (error: unknown) => {
        close();
        fail(error);
      },
    );
  }, []);
  const found = shared.value;
  const count = found?.sessions.reduce((sum, each) => sum + each.messages.length, 0) ?? 0;
  return (
    <Frame title="Share as a file">
      {!found && <p class="quiet">Looking for secrets…</p>}
      {found && (
        <>
          <p>
            One page with {formatNumber(count, "message")}, that opens in any browser and asks no server.{" "}
            {found.hidden > 0 ? `${formatNumber(found.hidden, "secret")} ${found.hidden === 1 ? "is" : "are"} hidden.` : "No keys, tokens or passwords of known forms were found in it."}
          </p>
          <p class="quiet">What has no known form, such as names and addresses, is still there: look through the page before you give it away.</p>
          <div class="dialog-actions">
            <button
              type="button"
              class="button primary"
              autofocus
              onClick={() =>
                void attempt(async () => {
                  await savePage(found);
                  close();
                  tell("The page is saved with your downloads");
                })
              }
            >
              Save the page
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
