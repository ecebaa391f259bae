// The form of an MCP server: its name, and the address or the command with its variables.
import { useSignal } from "@preact/signals";

/** What the server tells of an entry of the section `mcp`: never arguments, variables and headers, which may hold keys. */
export interface Entry {
  type?: "local" | "remote";
  url?: string;
  command?: string[];
}

/** What becomes other in an entry. */
export type EntryChange = Record<string, unknown>;

interface FormProps {
  /** "" for a new one. */
  name: string;
  entry: Entry | undefined;
  onSave: (name: string, change: EntryChange) => Promise<boolean>;
  onCancel: () => void;
}

/** What only a server of one kind has; null takes it out of one that becomes of the other kind. */
const NOT_LOCAL = { url: null, headers: null, oauth: null };
const NOT_REMOTE = { command: null, environment: null, cwd: null };

/** The words of a command line; quotes hold words together. */
const splitWords = (line: string): string[] => [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, double, single, bare]) => double ?? single ?? bare ?? "");

/** Lines of names and values, as `NAME=value` or `Name: value`. */
const readPairs = (text: string, sign: string): Record<string, string> =>
  Object.fromEntries(
    text
      .split("\n")
      .filter((line) => line.includes(sign))
      .map((line) => [line.slice(0, line.indexOf(sign)).trim(), line.slice(line.indexOf(sign) + 1).trim()]),
  );

export function McpForm({ name: first, entry, onSave, onCancel }: FormProps) {
  const name = useSignal(first);
  // Of a command only the program is told, so a line that began with it would lose the arguments.
  const known = entry?.url ?? "";
  const target = useSignal(known);
  const pairs = useSignal("");
  const isWorking = useSignal(false);
  const isLocal = !!entry && !entry.url;
  const isKept = target.value.trim() === known && !!entry;
  const isRemote = isKept ? !isLocal : /^https?:\/\//i.test(target.value.trim());
  const save = async (): Promise<void> => {
    const added = readPairs(pairs.value, isRemote ? ":" : "=");
    const more = Object.keys(added).length > 0 ? { [isRemote ? "headers" : "environment"]: added } : {};
    const others = !entry || isRemote !== isLocal ? {} : isRemote ? NOT_REMOTE : NOT_LOCAL;
    const made = isRemote ? { type: "remote", url: target.value.trim() } : { type: "local", command: splitWords(target.value) };
    isWorking.value = true;
    await onSave(name.value.trim(), { ...(isKept ? {} : made), ...others, ...more });
    isWorking.value = false;
  };
  return (
    <form
      class="mcp-form"
      aria-label={first ? `Edit ${first}` : "Add a server"}
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      {!first && <input class="field" aria-label="Name of the server" placeholder="Name" required pattern="[\w.\-]+" ref={(node) => void (node && !name.peek() && node.focus())} onInput={(event) => (name.value = event.currentTarget.value)} />}
      <input class="field" aria-label="Address or command" placeholder={isLocal ? `As it is: ${entry.command?.[0] ?? ""} … To change it, write the whole command, or https://…` : "https://… or the command that starts it"} required={!isLocal} value={target.value} onInput={(event) => (target.value = event.currentTarget.value)} />
      <textarea class="field" rows={2} aria-label={isRemote ? "Headers" : "Variables"} placeholder={isRemote ? "Headers, one a line: Name: value" : "Variables, one a line: NAME=value"} value={pairs.value} onInput={(event) => (pairs.value = event.currentTarget.value)} />
      <p class="quiet">
        It is written to your own configuration, and is there in every project.
        {entry && " Arguments, variables and headers are not shown, as they may hold keys: what you leave as it is stays."}
        {isLocal && " A command that you write replaces the whole one, with its arguments."}
      </p>
      <div class="dialog-actions">
        <button type="submit" class="button primary" disabled={isWorking.value}>
          Save
        </button>
        <button type="button" class="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  );
}
