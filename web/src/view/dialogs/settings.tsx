// Settings: of this browser, of the session, of the user's own file; MCP servers; and which file each setting comes from.
import { useSignal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { currentAgent, shownModel } from "../../state/actions";
import { toggleNotifications, wantsNotifications } from "../../state/announce";
import { editor, EDITORS } from "../../state/editor";
import { current, offers, place } from "../../state/store";
import { attempt, dialog, diffStyle, fail, hasDetails, tell, theme } from "../../state/ui";
import { shortenHome } from "../../text/format";
import { ask, get } from "../../wire/api";
import { Frame } from "./frame";
import { McpServers } from "./mcp";

const PROFILES: Record<string, string> = {
  ask: "reads without asking; asks before it edits or runs anything",
  auto: "edits in the project, runs in the sandbox; asks beyond both",
  "read-only": "reads and plans; changes nothing",
  yolo: "does everything without asking",
};

interface Held {
  settings: Record<string, unknown>;
  origins: Record<string, string>;
  warnings: string[];
}

async function readHeld(): Promise<Held> {
  const { directory } = place.value;
  const [settings, origins, warnings] = await Promise.all([get<Held["settings"]>("/config/settings", directory), get<Held["origins"]>("/config/origins", directory), get<string[]>("/config/warnings", directory)]);
  const { home } = offers.value;
  return { settings, origins: Object.fromEntries(Object.entries(origins).map(([path, origin]) => [path, shortenHome(origin, home)])), warnings };
}

interface RowProps {
  label: string;
  hint?: ComponentChildren;
  value: string;
  options: Record<string, string>;
  onChange: (value: string) => void;
}

function Choice({ label, hint, value, options, onChange }: RowProps) {
  return (
    <label class="setting">
      <span class="setting-name">
        {label}
        {hint && <span class="quiet">{hint}</span>}
      </span>
      <select class="field" value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {Object.entries(options).map(([name, words]) => (
          <option key={name} value={name} selected={name === value}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}

function ThisBrowser() {
  return (
    <section>
      <h3>In this browser</h3>
      <Choice label="Theme" value={theme.value} options={{ system: "As the system", light: "Light", dark: "Dark" }} onChange={(value) => (theme.value = value as typeof theme.value)} />
      <Choice label="Changes" value={diffStyle.value} options={{ unified: "In one column", split: "In two columns" }} onChange={(value) => (diffStyle.value = value as typeof diffStyle.value)} />
      <Choice label="Details of calls" value={hasDetails.value} options={{ no: "When opened", yes: "Always" }} onChange={(value) => (hasDetails.value = value as typeof hasDetails.value)} />
      <Choice label="Notifications" hint="when an answer is complete or a question waits" value={wantsNotifications.value ? "yes" : "no"} options={{ no: "Off", yes: "On" }} onChange={(value) => void (value === (wantsNotifications.value ? "yes" : "no") || toggleNotifications().then(() => value === "yes" && !wantsNotifications.value && fail(new Error("The browser does not allow this page notifications."))))} />
      <Choice label="Open files with" hint="of this machine" value={editor.value} options={{ "": "Nothing", ...Object.fromEntries(Object.keys(EDITORS).map((name) => [name, name])) }} onChange={(value) => (editor.value = value)} />
      <p class="setting">
        <span class="setting-name">Keys</span>
        <button type="button" class="button" onClick={() => (dialog.value = "help")}>
          Show all keys
        </button>
      </p>
    </section>
  );
}

/** What the session that is shown may do without a question. */
function ThisSession({ settings }: { settings: Record<string, unknown> }) {
  const session = current.value;
  if (!session) return null;
  const name = String(session.metadata?.["profile"] ?? settings["profile"] ?? "auto");
  // Its former name, in older sessions and configurations.
  const profile = name === "plan" ? "read-only" : name;
  const change = (value: string): void =>
    void attempt(async () => {
      await ask("PATCH", `/session/${session.id}`, { body: { metadata: { ...session.metadata, profile: value } }, directory: session.directory });
      tell(`From the next call on, profile ${value} holds in this session`);
    });
  const model = shownModel();
  return (
    <section>
      <h3>In this session</h3>
      <Choice label="Permission profile" hint={PROFILES[profile]} value={profile} options={Object.fromEntries(Object.entries(PROFILES).map(([name, words]) => [name, `${name}: ${words}`]))} onChange={change} />
      <p class="setting">
        <span class="setting-name">Model and agent</span>
        <span class="setting-buttons">
          <button type="button" class="button" onClick={() => (dialog.value = "models")}>
            {model ? model.modelID : "default model"}
          </button>
          <button type="button" class="button" onClick={() => (dialog.value = "agents")}>
            {currentAgent() || "default agent"}
          </button>
        </span>
      </p>
    </section>
  );
}

/** What holds in every project, in the user's own file; a project's file can say otherwise. */
function EveryProject({ held }: { held: Signal<Held | null> }) {
  const { settings, origins } = held.value!;
  const change = (name: string, value: string): void =>
    void attempt(async () => {
      await ask("PATCH", "/global/config", { body: { [name]: value || null }, directory: place.value.directory });
      held.value = await readHeld();
      const now = String(held.value.settings[name] ?? "");
      if (now === value) tell("Written to your own configuration");
      else fail(new Error(`It is written to your own configuration, but here ${held.value.origins[name] ?? "another file"} says ${now || "otherwise"}.`));
    });
  const models = Object.fromEntries(offers.value.providers.flatMap((provider) => Object.values(provider.models).map((model) => [`${provider.id}/${model.id}`, `${model.name} · ${provider.name}`])));
  const agents = Object.fromEntries(offers.value.agents.filter((agent) => agent.mode !== "subagent" && !agent.hidden).map((agent) => [agent.name, agent.name]));
  const row = (name: string, label: string, options: Record<string, string>) => {
    const value = String(settings[name] ?? "");
    const known = value in options || !value ? options : { [value]: value, ...options };
    return <Choice label={label} hint={origins[name] ? `from ${origins[name]}` : "not set"} value={value} options={{ "": "Not set", ...known }} onChange={(next) => change(name, next)} />;
  };
  return (
    <section>
      <h3>In every project</h3>
      {row("model", "Model", models)}
      {row("small_model", "Model for titles", models)}
      {row("default_agent", "Agent", agents)}
      {row("profile", "Permission profile", Object.fromEntries(Object.keys(PROFILES).map((name) => [name, name])))}
    </section>
  );
}

/** Which file and line says what. */
function Origins({ held: { origins, warnings } }: { held: Held }) {
  const rows = Object.entries(origins).sort(([a], [b]) => a.localeCompare(b));
  return (
    <details class="origins">
      <summary>Where {rows.length === 1 ? "the one setting" : `${rows.length} settings`} of this directory {rows.length === 1 ? "is" : "are"} written</summary>
      {warnings.map((warning) => (
        <p key={warning} class="failure">
          {warning}
        </p>
      ))}
      <dl>
        {rows.map(([path, origin]) => (
          <div key={path}>
            <dt>{path}</dt>
            <dd>{origin}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

export function SettingsDialog() {
  const held = useSignal<Held | null>(null);
  useEffect(() => {
    readHeld().then((found) => (held.value = found), fail);
  }, []);
  return (
    <Frame title="Settings" wide>
      <div class="settings">
        <ThisBrowser />
        {held.value && <ThisSession settings={held.value.settings} />}
        {held.value && <EveryProject held={held} />}
        {held.value && <McpServers configured={(held.value.settings["mcp"] ?? {}) as Record<string, { type?: string }>} />}
        {held.value && <Origins held={held.value} />}
      </div>
    </Frame>
  );
}
