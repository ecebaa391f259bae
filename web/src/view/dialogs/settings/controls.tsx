// What settings are set with: a choice from a list, and a switch; and the user's own file, which holds for every project.
import type { ComponentChildren } from "preact";
import { offers, place } from "../../../state/store";
import { shortenHome } from "../../../text/format";
import { ask, get } from "../../../wire/api";

interface LabelProps {
  label: string;
  hint?: ComponentChildren;
}

const Name = ({ label, hint }: LabelProps) => (
  <span class="setting-name">
    {label}
    {hint && <span class="quiet">{hint}</span>}
  </span>
);

interface ChoiceProps extends LabelProps {
  value: string;
  options: Record<string, string>;
  onChange: (value: string) => void;
}

export function Choice({ label, hint, value, options, onChange }: ChoiceProps) {
  return (
    <label class="setting">
      <Name label={label} hint={hint} />
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

export function Switch({ label, hint, isOn, onChange }: LabelProps & { isOn: boolean; onChange: (isOn: boolean) => void }) {
  return (
    <label class="setting">
      <Name label={label} hint={hint} />
      <input type="checkbox" role="switch" class="switch" checked={isOn} onChange={(event) => onChange(event.currentTarget.checked)} />
    </label>
  );
}

/** The settings in force in a directory, the file and line of each, and what is wrong with them. */
export interface Held {
  settings: Record<string, unknown>;
  origins: Record<string, string>;
  warnings: string[];
}

export async function readHeld(): Promise<Held> {
  const { directory } = place.value;
  const [settings, origins, warnings] = await Promise.all([get<Held["settings"]>("/config/settings", directory), get<Held["origins"]>("/config/origins", directory), get<string[]>("/config/warnings", directory)]);
  const { home } = offers.value;
  return { settings, origins: Object.fromEntries(Object.entries(origins).map(([path, origin]) => [path, shortenHome(origin, home)])), warnings };
}

/** Write settings to the user's own file; null takes one out. Throws Refused. */
export const writeOwn = (change: Record<string, unknown>): Promise<unknown> => ask("PATCH", "/global/config", { body: change, directory: place.value.directory });
