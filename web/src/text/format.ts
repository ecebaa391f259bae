// Figures, times and paths as people read them.

/** 1,234 tokens as "1.2k". */
export function formatCount(count: number): string {
  if (count < 1_000) return String(count);
  return count < 1_000_000 ? `${(count / 1_000).toFixed(count < 10_000 ? 1 : 0)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

/** Dollars as every user interface of codeloop has them: four decimals below a dollar, else two. */
export const formatCost = (dollars: number): string => `$${dollars.toFixed(dollars < 1 ? 4 : 2)}`;

/** Milliseconds as "4.2 s" or "3 min". */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  return ms < 3_600_000 ? `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s` : `${(ms / 3_600_000).toFixed(1)} h`;
}

/** How long ago a time (ms since the epoch) is, as short as can be. */
export function formatAge(time: number): string {
  const minutes = Math.max(0, (Date.now() - time) / 60_000);
  if (minutes < 1) return "now";
  if (minutes < 60) return `${Math.floor(minutes)}m`;
  if (minutes < 1_440) return `${Math.floor(minutes / 60)}h`;
  return minutes < 10_080 ? `${Math.floor(minutes / 1_440)}d` : new Date(time).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

export const baseName = (path: string): string => path.replace(/\/+$/, "").slice(path.replace(/\/+$/, "").lastIndexOf("/") + 1) || path;

/** A path as seen from a directory, if it is below it. */
export function shortenPath(path: string, directory: string): string {
  return directory && path.startsWith(`${directory}/`) ? path.slice(directory.length + 1) : path;
}

/** A path with "~" for the user's home. */
export const shortenHome = (path: string, home: string): string => (home && (path === home || path.startsWith(`${home}/`)) ? `~${path.slice(home.length)}` : path);

/** "1 file", "2 files". */
export const formatNumber = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Text in which nothing is hidden or turned around: control and bidirectional characters are shown by their codes. */
export const showHidden = (text: string): string => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Colours and movements of the cursor are no use in a page: text without the terminal's escapes. */
export const plainOutput = (text: string): string => showHidden(withoutEscapes(text));

const withoutEscapes = (text: string): string => text.replaceAll("\r\n", "\n").replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g, "").replaceAll("\r", "\n");
