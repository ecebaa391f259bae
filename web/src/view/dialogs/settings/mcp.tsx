// MCP servers: what each is doing, connecting, signing in and out; adding, changing and removing them.
import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { offers, place } from "../../../state/store";
import { attempt, fail, tell } from "../../../state/ui";
import { shortenHome } from "../../../text/format";
import { ask, get, post } from "../../../wire/api";
import { readHeld, writeOwn, type Held } from "./controls";
import { McpForm, type Entry, type EntryChange } from "./mcp_form";

interface Status {
  status: "connected" | "disabled" | "failed" | "needs_auth" | "needs_client_registration";
  error?: string;
  state?: "configured" | "known" | "starting";
}

const WORDS: Record<Status["status"], string> = { connected: "connected", disabled: "not connected", failed: "failed", needs_auth: "asks you to sign in", needs_client_registration: "asks for a client id" };
const STATES: Record<NonNullable<Status["state"]>, string> = { configured: "not started yet", known: "starts with its first call", starting: "starting…" };

const wordsOf = ({ status, state }: Status): string => (state && status !== "failed" ? STATES[state] : WORDS[status]);

/** Return where another file than the user's own has a server's entry or a part of it; "" where none has. */
function findElsewhere(name: string, origins: Held["origins"]): string {
  const { config, home } = offers.value;
  const key = /^[\w\-]+$/.test(name) ? `mcp.${name}` : `mcp['${name}']`;
  const mine = shortenHome(`${config}/codeloop.json`, home);
  return Object.entries(origins).find(([path, origin]) => (path === key || path.startsWith(`${key}.`) || path.startsWith(`${key}[`)) && !origin.startsWith(mine))?.[1] ?? "";
}

interface ServerProps {
  name: string;
  status: Status;
  entry: Entry | undefined;
  /** Where the entry stands if it can't be edited here. */
  elsewhere: string;
  onChange: () => void;
  onEdit: () => void;
  onRemove: () => void;
}

function Server({ name, status, entry, elsewhere, onChange, onEdit, onRemove }: ServerProps) {
  const isRemote = entry?.type === "remote";
  const isWorking = useSignal(false);
  const signIn = useSignal("");
  const code = useSignal("");
  const { directory } = place.value;
  const path = `/mcp/${encodeURIComponent(name)}`;
  const work = (step: () => Promise<unknown>): void => {
    isWorking.value = true;
    void attempt(step).then(() => {
      isWorking.value = false;
      onChange();
    });
  };
  const begin = async (): Promise<void> => {
    const { authorizationUrl } = await post<{ authorizationUrl: string }>(`${path}/auth`, {}, directory);
    if (!/^https?:/i.test(authorizationUrl)) throw new Error("The server's address for signing in is none of the web.");
    signIn.value = authorizationUrl;
  };
  const finish = async (): Promise<void> => {
    const now = await post<Status>(`${path}/auth/callback`, { code: code.value.trim() }, directory);
    if (now.status === "connected") signIn.value = "";
    else throw new Error(now.error ?? `${name} is ${WORDS[now.status]}`);
  };
  const isConnected = status.status === "connected" && status.state === undefined;
  return (
    <li class={`mcp ${status.status}`}>
      <div class="mcp-line">
        <code>{name}</code>
        <span class="mcp-state">{isWorking.value ? "working…" : wordsOf(status)}</span>
        <span class="spring" />
        {status.status === "needs_auth" && !signIn.value && (
          <button type="button" class="button primary" disabled={isWorking.value} onClick={() => work(begin)}>
            Sign in
          </button>
        )}
        {isConnected ? (
          <button type="button" class="button" disabled={isWorking.value} onClick={() => work(() => post(`${path}/disconnect`, {}, directory))}>
            Disconnect
          </button>
        ) : (
          <button type="button" class="button" disabled={isWorking.value} onClick={() => work(() => post(`${path}/connect`, {}, directory))}>
            Connect
          </button>
        )}
        {isRemote && status.status !== "needs_auth" && (
          <button type="button" class="button" disabled={isWorking.value} title="Forget the sign-in at this server" onClick={() => work(() => ask("DELETE", `${path}/auth`, { directory }).then(() => tell(`You are signed out of ${name}`)))}>
            Sign out
          </button>
        )}
        {entry && !elsewhere && (
          <>
            <button type="button" class="button" aria-label={`Edit ${name}`} onClick={onEdit}>
              Edit
            </button>
            <button type="button" class="button" aria-label={`Remove ${name}`} onClick={onRemove}>
              Remove
            </button>
          </>
        )}
      </div>
      {elsewhere && <p class="quiet">Change it in {elsewhere}.</p>}
      {status.error && <p class="mcp-error">{status.error}</p>}
      {signIn.value && (
        <form
          class="mcp-sign-in"
          onSubmit={(event) => {
            event.preventDefault();
            work(finish);
          }}
        >
          <p>
            <a href={signIn.value} target="_blank" rel="noopener noreferrer">
              Open the sign-in page
            </a>
            . Where this browser runs on the server's machine, that is all. Else copy the address at which it ends, with its code, here:
          </p>
          <div class="setting-buttons">
            <input class="field" aria-label="Code or address" value={code.value} onInput={(event) => (code.value = event.currentTarget.value)} />
            <button type="submit" class="button" disabled={!code.value.trim()}>
              Finish
            </button>
          </div>
        </form>
      )}
    </li>
  );
}

export function McpServers({ held }: { held: Signal<Held | null> }) {
  const list = useSignal<Record<string, Status> | null>(null);
  /** The server that is edited; "" for a new one, null for none. */
  const edited = useSignal<string | null>(null);
  const load = (): Promise<void> => get<Record<string, Status>>("/mcp", place.value.directory).then((found) => void (list.value = found), fail);
  useEffect(() => {
    void load();
    const timer = setInterval(() => void load(), 3_000);
    return () => clearInterval(timer);
  }, []);
  const configured = (held.value?.settings["mcp"] ?? {}) as Record<string, Entry>;
  const write = async (name: string, change: EntryChange | null): Promise<void> => {
    await writeOwn({ mcp: { [name]: change } });
    held.value = await readHeld();
    edited.value = null;
    await load();
    tell(change ? `${name} is written to your own configuration` : `${name} is removed from your own configuration`);
  };
  const rows = Object.entries(list.value ?? {});
  const formOf = (name: string) => <McpForm key={name} name={name} entry={configured[name]} onCancel={() => (edited.value = null)} onSave={(...given) => attempt(() => write(...given))} />;
  return (
    <>
      {list.value && rows.length === 0 && <p class="quiet">None is configured.</p>}
      <ul class="mcp-list">
        {rows.map(([name, status]) =>
          edited.value === name ? (
            <li key={name} class="mcp">
              {formOf(name)}
            </li>
          ) : (
            <Server key={name} name={name} status={status} entry={configured[name]} elsewhere={findElsewhere(name, held.value?.origins ?? {})} onChange={() => void load()} onEdit={() => (edited.value = name)} onRemove={() => void attempt(() => write(name, null))} />
          ),
        )}
      </ul>
      {edited.value === "" ? (
        formOf("")
      ) : (
        <div>
          <button type="button" class="button" onClick={() => (edited.value = "")}>
            Add a server
          </button>
        </div>
      )}
    </>
  );
}
