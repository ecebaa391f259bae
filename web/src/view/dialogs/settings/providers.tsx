// Providers: which can be used, and signing in at others: a key, fields, or a page of the provider.
import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { loadOffers } from "../../../state/load";
import { place } from "../../../state/store";
import { attempt, fail, tell } from "../../../state/ui";
import { formatNumber } from "../../../text/format";
import { ask, get, post } from "../../../wire/api";

interface Known {
  id: string;
  name: string;
  source: "env" | "config" | "custom" | "api";
  models: Record<string, unknown>;
}

interface Condition {
  key: string;
  op?: "eq" | "neq";
  value: string;
}

interface Field {
  type: "text" | "select";
  key: string;
  message: string;
  placeholder?: string;
  options?: { label?: string; value: string }[];
  hidden?: boolean;
  optional?: boolean;
  when?: Condition;
}

interface Method {
  type: "oauth" | "api";
  label: string;
  prompts?: Field[];
}

const SOURCES: Record<Known["source"], string> = { env: "key from the environment", config: "from the configuration", custom: "needs no key", api: "key stored here" };
/** The method that takes a key and nothing else. */
const KEY_LABEL = "API key";
const MOST = 30;

interface Started {
  url: string;
  method: "auto" | "code";
  instructions: string;
}

const isAsked = ({ when }: Field, answers: Readonly<Record<string, string>>): boolean => !when || ((answers[when.key] ?? "") === when.value) !== (when.op === "neq");

function Fields({ fields, answers }: { fields: readonly Field[]; answers: Signal<Readonly<Record<string, string>>> }) {
  const set = (key: string, value: string): void => void (answers.value = { ...answers.value, [key]: value });
  return (
    <>
      {fields.filter((field) => isAsked(field, answers.value)).map((field) => (
        <label key={field.key} class="sign-in-field">
          {field.message}
          {field.options ? (
            <select class="field" onChange={(event) => set(field.key, event.currentTarget.value)}>
              {field.options.map((option) => (
                <option key={option.value} value={option.value}>
                  {option.label ?? option.value}
                </option>
              ))}
            </select>
          ) : (
            <input class="field" type={(field.hidden ? "password" : "text") as "text"} autocomplete="off" placeholder={field.placeholder} required={!field.optional} onInput={(event) => set(field.key, event.currentTarget.value.trim())} />
          )}
        </label>
      ))}
    </>
  );
}

const firstAnswers = (fields: readonly Field[]): Record<string, string> => Object.fromEntries(fields.flatMap((field) => (field.options?.[0] ? [[field.key, field.options[0].value]] : [])));

function SignIn({ provider, methods, onDone }: { provider: Known; methods: readonly Method[]; onDone: () => void }) {
  const chosen = useSignal(0);
  const method = methods[chosen.value]!;
  const isKey = method.type === "api" && method.label === KEY_LABEL && !method.prompts?.length;
  const fields: readonly Field[] = isKey ? [{ type: "text", key: "key", message: "API key", hidden: true }] : (method.prompts ?? []);
  const answers = useSignal<Readonly<Record<string, string>>>(firstAnswers(fields));
  const started = useSignal<Started | null>(null);
  const code = useSignal("");
  const isWorking = useSignal(false);
  const { directory } = place.value;
  const path = `/provider/${encodeURIComponent(provider.id)}/oauth`;
  const work = async (step: () => Promise<unknown>): Promise<void> => {
    isWorking.value = true;
    await attempt(step);
    isWorking.value = false;
  };
  const finish = async (): Promise<void> => {
    await post(`${path}/callback`, { method: chosen.value, ...(code.value ? { code: code.value.trim() } : {}) }, directory);
    onDone();
  };
  const begin = async (): Promise<void> => {
    if (isKey) {
      await ask("PUT", `/auth/${encodeURIComponent(provider.id)}`, { body: { type: "api", key: answers.value["key"] ?? "" }, directory });
      return onDone();
    }
    const found = await post<Started>(`${path}/authorize`, { method: chosen.value, inputs: answers.value }, directory);
    if (!found.url) return onDone();
    if (!/^https?:/i.test(found.url)) throw new Error("The provider's address for signing in is none of the web.");
    started.value = found;
    if (found.method === "auto") await finish();
  };
  return (
    <form
      class="provider-sign-in"
      aria-label={`Sign in at ${provider.name}`}
      onSubmit={(event) => {
        event.preventDefault();
        void work(started.value ? finish : begin);
      }}
    >
      {methods.length > 1 && !started.value && (
        <select
          class="field"
          aria-label="How to sign in"
          onChange={(event) => {
            chosen.value = Number(event.currentTarget.value);
            answers.value = firstAnswers(methods[chosen.value]!.prompts ?? []);
          }}
        >
          {methods.map(({ label }, index) => (
            <option key={label} value={index}>
              {label}
            </option>
          ))}
        </select>
      )}
      {!started.value && <Fields key={chosen.value} fields={fields} answers={answers} />}
      {started.value && (
        <p>
          <a href={started.value.url} target="_blank" rel="noopener noreferrer">
            Open the sign-in page
          </a>
          . {started.value.instructions}
        </p>
      )}
      {started.value?.method === "code" && <input class="field" aria-label="Code" placeholder="The code that the page shows" onInput={(event) => (code.value = event.currentTarget.value)} />}
      <div class="dialog-actions">
        {started.value?.method !== "auto" && (
          <button type="submit" class="button primary" disabled={isWorking.value}>
            {isKey ? "Store the key" : started.value ? "Finish" : "Sign in"}
          </button>
        )}
        {started.value?.method === "auto" && <span class="quiet">Waits until you have signed in there…</span>}
      </div>
    </form>
  );
}

export function Providers() {
  const known = useSignal<{ all: readonly Known[]; connected: readonly string[]; methods: Readonly<Record<string, Method[]>> } | null>(null);
  const query = useSignal("");
  const open = useSignal("");
  const { directory } = place.value;
  const load = async (): Promise<void> => {
    const [{ all, connected }, methods] = await Promise.all([get<{ all: Known[]; connected: string[] }>("/provider", directory), get<Record<string, Method[]>>("/provider/auth", directory)]);
    known.value = { all, connected, methods };
  };
  useEffect(() => void load().catch(fail), []);
  if (!known.value) return <p class="quiet">Reading the providers…</p>;
  const { all, connected, methods } = known.value;
  const changed = async (words: string): Promise<void> => {
    open.value = "";
    tell(words);
    await attempt(() => Promise.all([load(), loadOffers(directory)]));
  };
  const forget = async (provider: Known): Promise<void> => {
    if (await attempt(() => ask("DELETE", `/auth/${encodeURIComponent(provider.id)}`, { directory }))) await changed(`The key of ${provider.name} is removed`);
  };
  const others = all.filter((each) => !connected.includes(each.id) && methods[each.id] && `${each.id} ${each.name}`.toLowerCase().includes(query.value.toLowerCase()));
  const row = (provider: Known, isConnected: boolean) => (
    <li key={provider.id} class="provider">
      <div class="provider-line">
        <span>{provider.name}</span>
        <span class="quiet">{isConnected ? `${SOURCES[provider.source]} · ` : ""}{formatNumber(Object.keys(provider.models).length, "model")}</span>
        <span class="spring" />
        {isConnected && provider.source === "api" && (
          <button type="button" class="button" aria-label={`Remove the key of ${provider.name}`} onClick={() => void forget(provider)}>
            Remove the key
          </button>
        )}
        {methods[provider.id] && (
          <button type="button" class="button" aria-label={`Sign in at ${provider.name}`} aria-expanded={open.value === provider.id} onClick={() => (open.value = open.value === provider.id ? "" : provider.id)}>
            {isConnected ? "Another key" : "Sign in"}
          </button>
        )}
      </div>
      {open.value === provider.id && <SignIn provider={provider} methods={methods[provider.id]!} onDone={() => void changed(`${provider.name} can be used now`)} />}
    </li>
  );
  return (
    <section class="setting-list" aria-label="Providers">
      <h4>Providers</h4>
      <ul>{all.filter((each) => connected.includes(each.id)).map((each) => row(each, true))}</ul>
      <h4>Sign in at another provider</h4>
      <input class="field" type="search" aria-label="Search providers" placeholder="Search" onInput={(event) => (query.value = event.currentTarget.value)} />
      <ul>{others.slice(0, MOST).map((each) => row(each, false))}</ul>
      {others.length === 0 && <p class="quiet">No provider has this name.</p>}
      {others.length > MOST && <p class="quiet">{others.length - MOST} more: search for a name.</p>}
    </section>
  );
}
