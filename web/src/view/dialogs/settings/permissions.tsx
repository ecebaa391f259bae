// What was allowed for always, each with what takes it back.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { current, offers, place } from "../../../state/store";
import { attempt, fail, tell } from "../../../state/ui";
import { formatAge, shortenHome } from "../../../text/format";
import { ask, get } from "../../../wire/api";

/** An "always": `directory` "" counts for its session alone; `time` in ms. */
interface Grant {
  id: string;
  directory: string;
  time: number;
  permission: string;
  patterns: string[];
}

export function Permissions() {
  const grants = useSignal<readonly Grant[] | null>(null);
  const session = current.value?.id;
  const load = (): Promise<void> => get<{ grants: Grant[] }>("/permission/rules", place.value.directory, { sessionID: session }).then((found) => void (grants.value = found.grants), fail);
  useEffect(() => void load(), [session]);
  const revoke = async (grant: Grant): Promise<void> => {
    const isDone = await attempt(() => ask("DELETE", `/permission/grant/${grant.id}`, { directory: place.value.directory }));
    if (isDone) tell("It will be asked again");
    await load();
  };
  if (!grants.value) return null;
  return (
    <section class="setting-list" aria-label="Always allowed">
      <h4>Always allowed</h4>
      {grants.value.length === 0 && <p class="quiet">Nothing: what you answer with "always" is listed here.</p>}
      <ul>
        {grants.value.map((grant) => (
          <li key={grant.id} class="grant">
            <div>
              <code>{`${grant.permission} ${grant.patterns.join(", ")}`}</code>
              <p class="quiet">
                {grant.directory ? `in ${shortenHome(grant.directory, offers.value.home)}` : "in this session"}, since {formatAge(grant.time)}
              </p>
            </div>
            <button type="button" class="button" aria-label={`Ask again about ${grant.permission} ${grant.patterns.join(", ")}`} onClick={() => void revoke(grant)}>
              Ask again
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
