// The settings sheet: sections to the left, each with what it sets; the rarer ones say which file and line they come from.
import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { currentAgent, shownModel } from "../../../state/actions";
import { toggleNotifications, wantsNotifications } from "../../../state/announce";
import { editor, EDITORS } from "../../../state/editor";
import { current, offers } from "../../../state/store";
import { attempt, dialog, diffStyle, fail, hasDetails, letters, palette, section, size, tell, theme, type Section } from "../../../state/ui";
import { ask } from "../../../wire/api";
import { Frame } from "../frame";
import { KeyList } from "../info";
import { Choice, readHeld, Switch, writeOwn, type Held } from "./controls";
import { McpServers } from "./mcp";
import { Permissions } from "./permissions";
import { Providers } from "./providers";

const PROFILES: Record<string, string> = {
  ask: "reads without asking; asks before it edits or runs anything",
  auto: "edits in the project, runs in the sandbox; asks beyond both",
  "read-only": "reads and plans; changes nothing",
  yolo: "does everything without asking",
};

const set = <T extends string>(kept: Signal<T>) => (value: string): void => void (kept.value = value as T);

function Look() {
  return (
    <>
      <Choice label="Theme" value={theme.value} options={{ system: "As the system", light: "Light", dark: "Dark" }} onChange={set(theme)} />
      <Choice label="Colours" value={palette.value} options={{ paper: "Paper", slate: "Slate", contrast: "High contrast" }} onChange={set(palette)} />
      <Choice label="Letters" hint="of text and code" value={letters.value} options={{ own: "Geist", system: "Those of the system" }} onChange={set(letters)} />
      <Choice label="Size of the letters" value={size.value} options={{ "0.93": "Small", "1": "Normal", "1.1": "Large", "1.25": "Very large" }} onChange={set(size)} />
      <Choice label="Changes" value={diffStyle.value} options={{ unified: "In one column", split: "In two columns" }} onChange={set(diffStyle)} />
      <Switch label="Details of calls" hint="always open" isOn={hasDetails.value === "yes"} onChange={(isOn) => (hasDetails.value = isOn ? "yes" : "no")} />
      <Choice label="Open files with" hint="of this machine" value={editor.value} options={{ "": "Nothing", ...Object.fromEntries(Object.keys(EDITORS).map((name) => [name, name])) }} onChange={set(editor)} />
    </>
  );
}

function Notifications() {
  const change = async (isOn: boolean): Promise<void> => {
    if (isOn === wantsNotifications.value) return;
    await toggleNotifications();
    if (isOn && !wantsNotifications.value) fail(new Error("The browser does not allow this page notifications."));
  };
  return (
    <>
      <Switch key={String(wantsNotifications.value)} label="Notifications" hint="when an answer is complete or a question waits, while another page is in front" isOn={wantsNotifications.value} onChange={(isOn) => void change(isOn)} />
      <p class="quiet">They are those of this browser. The title of the page counts the sessions that wait for you in any case.</p>
    </>
  );
}

/** What the session that is shown may do without a question. */
function SessionProfile({ settings }: { settings: Record<string, unknown> }) {
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
  return <Choice label="Profile of this session" hint={PROFILES[profile]} value={profile} options={Object.fromEntries(Object.entries(PROFILES).map(([id, words]) => [id, `${id}: ${words}`]))} onChange={change} />;
}

interface OwnProps {
  held: Signal<Held | null>;
  name: string;
  label: string;
  options: Record<string, string>;
}

/** A setting of the user's own file, for every project; a project's file can say otherwise. */
function Own({ held, name, label, options }: OwnProps) {
  const { settings, origins } = held.value!;
  const value = String(settings[name] ?? "");
  const change = (next: string): void =>
    void attempt(async () => {
      await writeOwn({ [name]: next || null });
      held.value = await readHeld();
      const now = String(held.value.settings[name] ?? "");
      if (now === next) tell("Written to your own configuration");
      else fail(new Error(`It is written to your own configuration, but here ${held.value.origins[name] ?? "another file"} says ${now || "otherwise"}.`));
    });
  const known = value in options || !value ? options : { [value]: value, ...options };
  return <Choice label={label} hint={origins[name] ? `in every project, from ${origins[name]}` : "in every project: not set"} value={value} options={{ "": "Not set", ...known }} onChange={change} />;
}

const listAgents = () => offers.value.agents.filter((agent) => !agent.hidden);

function Models({ held }: { held: Signal<Held | null> }) {
  const models = Object.fromEntries(offers.value.providers.flatMap((provider) => Object.values(provider.models).map((model) => [`${provider.id}/${model.id}`, `${model.name} · ${provider.name}`])));
  const model = shownModel();
  return (
    <>
      <p class="setting">
        <span class="setting-name">Model of this session</span>
        <button type="button" class="button" onClick={() => (dialog.value = "models")}>
          {model ? model.modelID : "default model"}
        </button>
      </p>
      <Own held={held} name="model" label="Model" options={models} />
      <Own held={held} name="small_model" label="Model for titles" options={models} />
      <Providers />
    </>
  );
}

function Agents({ held }: { held: Signal<Held | null> }) {
  return (
    <>
      <p class="setting">
        <span class="setting-name">Agent of this session</span>
        <button type="button" class="button" onClick={() => (dialog.value = "agents")}>
          {currentAgent() || "default agent"}
        </button>
      </p>
      <Own held={held} name="default_agent" label="Agent" options={Object.fromEntries(listAgents().filter((agent) => agent.mode !== "subagent").map((agent) => [agent.name, agent.name]))} />
      <ul class="setting-list">
        {listAgents().map((agent) => (
          <li key={agent.name}>
            <code>{agent.name}</code> {agent.mode === "subagent" && <span class="quiet">subagent</span>}
            {agent.description && <p class="quiet">{agent.description}</p>}
          </li>
        ))}
      </ul>
    </>
  );
}

/** Which file and line says what. */
function Origins({ held: { origins, warnings } }: { held: Held }) {
  const rows = Object.entries(origins).sort(([a], [b]) => a.localeCompare(b));
  return (
    <div class="origins">
      {warnings.map((warning) => (
        <p key={warning} class="failure">
          {warning}
        </p>
      ))}
      {rows.length === 0 && <p class="quiet">Nothing is set in this directory.</p>}
      <dl>
        {rows.map(([path, origin]) => (
          <div key={path}>
            <dt>{path}</dt>
            <dd>{origin}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

const SECTIONS: Record<Section, { title: string; View: (props: { held: Signal<Held | null> }) => preact.JSX.Element }> = {
  look: { title: "Appearance", View: Look },
  notifications: { title: "Notifications", View: Notifications },
  models: { title: "Models", View: Models },
  agents: { title: "Agents", View: Agents },
  permissions: {
    title: "Permissions",
    View: ({ held }) => (
      <>
        <SessionProfile settings={held.value!.settings} />
        <Own held={held} name="profile" label="Profile" options={Object.fromEntries(Object.keys(PROFILES).map((name) => [name, name]))} />
        <Permissions />
      </>
    ),
  },
  mcp: { title: "MCP servers", View: McpServers },
  keys: { title: "Keys", View: KeyList },
  files: { title: "Files", View: ({ held }) => <Origins held={held.value!} /> },
};

export function SettingsDialog() {
  const held = useSignal<Held | null>(null);
  useEffect(() => {
    readHeld().then((found) => (held.value = found), fail);
  }, []);
  const { title, View } = SECTIONS[section.value];
  return (
    <Frame title="Settings" size="sheet">
      <div class="sheet">
        <nav class="sheet-sections" aria-label="Sections">
          {(Object.keys(SECTIONS) as Section[]).map((name) => (
            <button key={name} type="button" aria-current={section.value === name ? "true" : undefined} onClick={() => (section.value = name)}>
              {SECTIONS[name].title}
            </button>
          ))}
        </nav>
        <section class="settings" aria-label={title} tabindex={0}>
          <h3>{title}</h3>
          {held.value && <View key={section.value} held={held} />}
        </section>
      </div>
    </Frame>
  );
}
