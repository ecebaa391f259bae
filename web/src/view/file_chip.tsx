// A file of a message or of a call: pictures are shown.
import type { Part } from "../wire/types";
import { Icon } from "./icons";

/** Whether a file is a picture that stands in the message itself. */
export const isPicture = ({ mime, url }: Part): boolean => !!mime?.startsWith("image/") && !!url?.startsWith("data:image/") && !url.startsWith("data:image/svg");

/** A file that goes with a message. Pictures are shown only when the message holds them. */
export function FileChip({ part }: { part: Part }) {
  if (isPicture(part)) return <img class="picture" src={part.url} alt={part.filename ?? "Attached picture"} loading="lazy" />;
  return (
    <span class="chip">
      <Icon name="file" size={14} />
      {part.filename ?? part.url?.slice(0, 80)}
    </span>
  );
}
