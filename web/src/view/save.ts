// Files that the browser saves.
import { get } from "../wire/api";
import type { MessageWithParts, Session } from "../wire/types";

/** Have the browser save a file named after a title. */
export function saveFile(title: string, ending: string, parts: BlobPart[], type: string): void {
  const name = title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60);
  const url = URL.createObjectURL(new Blob(parts, { type }));
  Object.assign(document.createElement("a"), { href: url, download: `${name || "session"}.${ending}` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Save a session whole, secrets included, in the form that `codeloop import` reads. Throws Refused. */
export async function exportSession({ id, directory }: Session): Promise<void> {
  const [info, messages] = await Promise.all([get<Session>(`/session/${id}`, directory), get<MessageWithParts[]>(`/session/${id}/message`, directory)]);
  saveFile(info.title, "json", [JSON.stringify({ info, messages }, null, 2)], "application/json");
}
