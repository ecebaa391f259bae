// The files that a turn has changed: a card at its end, each file with its lines, which open below it.
import { useState } from "preact/hooks";
import type { MessageView } from "../state/store";
import { conversationOf, place } from "../state/store";
import { isReadOnly, panel } from "../state/ui";
import { formatNumber, shortenPath } from "../text/format";
import { get } from "../wire/api";
import type { FileDiff } from "../wire/types";
import { Counts, Diff } from "./diff";
import { Icon } from "./icons";

const FIRST = 5;

/** The changes that the server has stored with the prompt of a step. */
export function changesOf(view: MessageView): readonly FileDiff[] {
  const prompt = conversationOf(view.info.value.sessionID).byId.get(view.info.value.parentID ?? "")?.info.value;
  return typeof prompt?.summary === "object" ? (prompt.summary.diffs ?? []) : [];
}

async function readPatch(messageID: string, file: string): Promise<string> {
  const { sessionID, directory } = place.value;
  const found = await get<FileDiff[]>(`/session/${sessionID}/diff`, directory, { messageID });
  return found.find((each) => each.file === file)?.patch ?? "";
}

function ChangedFile({ diff, messageID }: { diff: FileDiff; messageID: string }) {
  const [isOpen, setOpen] = useState(false);
  const [patch, setPatch] = useState(diff.patch);
  const file = diff.file ?? "";
  const name = shortenPath(file, place.value.directory);
  const toggle = (): void => {
    setOpen(!isOpen);
    if (patch === undefined && !isReadOnly.value) readPatch(messageID, file).then(setPatch, () => setPatch(""));
  };
  return (
    <li>
      <button type="button" class="changed-file" aria-expanded={isOpen} onClick={toggle}>
        <Icon name="chevron" size={14} />
        <span class="changed-name" title={name}>
          {name}
        </span>
        {diff.status && diff.status !== "modified" && <span class="quiet">{diff.status}</span>}
        <span class="spring" />
        <Counts additions={diff.additions} deletions={diff.deletions} />
      </button>
      {isOpen && patch !== undefined && <Diff patch={patch} file={file} />}
    </li>
  );
}

export function ChangedFiles({ diffs, messageID }: { diffs: readonly FileDiff[]; messageID: string }) {
  const [count, setCount] = useState(FIRST);
  const sum = (what: "additions" | "deletions"): number => diffs.reduce((all, each) => all + each[what], 0);
  return (
    <div class="changed-card" role="group" aria-label="Files that this turn has changed">
      <header>
        <Icon name="diff" />
        <span>{formatNumber(diffs.length, "changed file")}</span>
        <Counts additions={sum("additions")} deletions={sum("deletions")} />
        <span class="spring" />
        {!isReadOnly.value && (
          <button type="button" class="link" onClick={() => (panel.value = "review")}>
            Review
          </button>
        )}
      </header>
      <ul>
        {diffs.slice(0, count).map((diff) => (
          <ChangedFile key={diff.file} diff={diff} messageID={messageID} />
        ))}
      </ul>
      {diffs.length > count && (
        <button type="button" class="show-more" onClick={() => setCount(diffs.length)}>
          Show {diffs.length - count} more
        </button>
      )}
    </div>
  );
}
