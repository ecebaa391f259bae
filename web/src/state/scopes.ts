// What "always" can allow, from narrow to wide, and which of it is so wide that it takes two presses; as in terminals.
import type { PermissionRequest } from "../wire/types";

/** The permissions for files of the project, of which "always" begins with the file that is asked about. */
const NARROWED = new Set(["edit", "read"]);
/** At most the first word is fixed, such as `git *`: it allows a whole program. */
const FIRST_WORD_ONLY = /^[^ *?]*( )?[*?]/;
/** Somebody's whole home, or more. */
const HOLDS_HOME = /^(?:~|\/root|\/(?:home|Users)(?:\/[^/*]+)?)?\/?\*?$/;

/** The choices for "always": of files those, their folders, and all that is offered; else only that. */
export function listScopes(request: PermissionRequest): string[][] {
  const { always, patterns } = request;
  if (always.length === 0) return [];
  if (request.permission === "external_directory" && !patterns.some((name) => /[*?]/.test(name))) return [patterns, always];
  const isNarrowed = NARROWED.has(request.permission) && always.length === 1 && always[0] === "*" && patterns.length > 0;
  if (!isNarrowed || patterns.some((name) => /[*?]/.test(name))) return [always];
  const isFoldered = patterns.every((name) => name.includes("/"));
  const folders = [...new Set(patterns.map((name) => `${name.slice(0, name.lastIndexOf("/"))}/*`))];
  return [patterns, ...(isFoldered ? [folders] : []), always];
}

/** Whether patterns allow everything of a kind, all that a program can do, or a whole home. */
export function isBroad(permission: string, always: readonly string[]): boolean {
  if (permission === "external_directory") return always.some((pattern) => HOLDS_HOME.test(pattern));
  const isCommand = permission === "bash" || permission === "sandbox";
  return always.some((pattern) => pattern === "*" || (isCommand && FIRST_WORD_ONLY.test(pattern)));
}
