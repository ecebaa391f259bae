// What can stand behind / and @ in the prompt box.
import { offers } from "../state/store";
import { ACTIONS, type ActionName } from "./keys";

export interface Item {
  value: string;
  label: string;
  hint: string;
  action?: ActionName;
}

/** What is being completed: the text between `start` and `end`, its sign included. */
export interface Completion {
  kind: "command" | "file";
  query: string;
  start: number;
  end: number;
  items: Item[];
}

/** Find what the cursor stands behind; null: nothing that is completed. */
export function completionAt(text: string, cursor: number): Completion | null {
  const before = text.slice(0, cursor);
  const command = /^\/(\S*)$/.exec(before);
  if (command) return { kind: "command", query: command[1]!, start: 0, end: cursor, items: [] };
  const file = /(?:^|\s)@(\S*)$/.exec(before);
  if (file) return { kind: "file", query: file[1]!, start: cursor - file[1]!.length - 1, end: cursor, items: [] };
  return null;
}

/** The page's own commands and the project's, those that begin as typed first. */
export function commandsFor(query: string): Item[] {
  const own = Object.entries(ACTIONS).flatMap(([name, action]): Item[] => (action.slash ? [{ value: action.slash, label: `/${action.slash}`, hint: action.title, action: name as ActionName }] : []));
  const others = offers.value.commands.map((command): Item => ({ value: command.name, label: `/${command.name}`, hint: command.description ?? "" }));
  const fitting = [...own, ...others].filter((item) => item.value.includes(query));
  return fitting.sort((a, b) => Number(b.value.startsWith(query)) - Number(a.value.startsWith(query))).slice(0, 50);
}
