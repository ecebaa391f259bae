// The address says what is shown: #dir=DIRECTORY&session=ID. Links, the history and reloading lead to the same place.
import { batch } from "@preact/signals";
import { findDirectory, loadPlace } from "./load";
import { outcomes, changed, place, sessions, type Place } from "./store";
import { chosenAgent, chosenEffort, chosenModel, fail, isSidebarOpen } from "./ui";

function read(): Place {
  const given = new URLSearchParams(location.hash.slice(1));
  const sessionID = given.get("session") ?? "";
  return { sessionID, directory: given.get("dir") ?? sessions.peek().get(sessionID)?.directory ?? "" };
}

/** The address of a place. */
export const addressOf = ({ directory, sessionID }: Place): string => `#${new URLSearchParams({ dir: directory, ...(sessionID ? { session: sessionID } : {}) })}`;

/** Show a place. */
export function go(to: Place): void {
  if (addressOf(to) !== location.hash) history.pushState(null, "", addressOf(to));
  void show(to);
}

/** Show what the address says; without a directory, the server's own. */
export async function showAddress(): Promise<void> {
  const to = read();
  await show({ ...to, directory: to.directory || (await findDirectory()) });
}

async function show(to: Place): Promise<void> {
  const isOther = to.sessionID !== place.value.sessionID || to.directory !== place.value.directory;
  batch(() => {
    // A choice is for the session that it was made in.
    if (isOther) {
      chosenAgent.value = chosenModel.value = "";
      chosenEffort.value = null;
    }
    place.value = to;
    isSidebarOpen.value = false;
    if (outcomes.value.get(to.sessionID) === "finished") outcomes.value = changed(outcomes.value, to.sessionID, undefined);
  });
  try {
    await loadPlace();
  } catch (error) {
    fail(error);
  }
}
