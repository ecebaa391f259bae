// The line above the conversation: its title, where it is, what it costs, and what can be opened beside it.
import { useSignal } from "@preact/signals";
import { rename } from "../state/actions";
import { addressOf } from "../state/route";
import { conversationOf, current, offers, place } from "../state/store";
import { dialog, isSidebarOpen, isTerminalOpen, panel } from "../state/ui";
import { baseName, formatCost, formatCount } from "../text/format";
import type { Session } from "../wire/types";
import { JobsButton } from "./dialogs/jobs";
import { IconButton } from "./icons";

function Title({ session }: { session: Session }) {
  const isEditing = useSignal(false);
  if (!isEditing.value) {
    return (
      <h1>
        <button type="button" class="title" title="Rename" onClick={() => (isEditing.value = true)}>
          {session.title}
        </button>
      </h1>
    );
  }
  const save = (title: string): void => {
    isEditing.value = false;
    if (title.trim() && title !== session.title) void rename(session, title.trim());
  };
  return <input class="field title-field" aria-label="Title" value={session.title} ref={(node) => node?.focus()} onBlur={(event) => save(event.currentTarget.value)} onKeyDown={(event) => event.key === "Enter" && save(event.currentTarget.value)} />;
}

/** How full the model's window is after the last answer, and what the session has cost. */
function Usage() {
  const last = conversationOf(place.value.sessionID).messages.value.findLast((view) => (view.info.value.tokens?.output ?? 0) > 0)?.info.value;
  const session = current.value;
  if (!last?.tokens || !session) return null;
  const used = last.tokens.input + last.tokens.output + last.tokens.cache.read + last.tokens.cache.write;
  const window = offers.value.providers.find((provider) => provider.id === last.providerID)?.models[last.modelID ?? ""]?.limit.context ?? 0;
  const share = window > 0 ? Math.round((100 * used) / window) : 0;
  return (
    <button type="button" class="ghost usage" title="What fills the context" onClick={() => (dialog.value = "context")}>
      {window > 0 && (
        <span class="ring" style={{ "--share": `${share}%` }} role="img" aria-label={`${share}% of the context`} />
      )}
      <span>{formatCount(used)}</span>
      {session.cost ? <span>{formatCost(session.cost)}</span> : null}
    </button>
  );
}

/** "+12 −3" beside a word: it is drawn, so that the button is called by the word alone. */
const Lines = ({ additions, deletions }: { additions: number; deletions: number }) => (
  <>
    {additions > 0 && <span class="plus" data-count={`+${additions}`} />}
    {deletions > 0 && <span class="minus" data-count={`−${deletions}`} />}
  </>
);

export function Header() {
  const session = current.value;
  const { directory } = place.value;
  return (
    <header class="top">
      <IconButton name="menu" label="Sessions" class="menu" onClick={() => (isSidebarOpen.value = !isSidebarOpen.value)} />
      <div class="top-text">
        {session?.parentID && (
          <a class="link" href={addressOf({ directory, sessionID: session.parentID })}>
            ← Back
          </a>
        )}
        {session ? <Title key={session.id} session={session} /> : <h1>New session</h1>}
        <span class="where" title={directory}>
          {baseName(directory)}
          {offers.value.branch && ` · ${offers.value.branch}`}
        </span>
      </div>
      <JobsButton />
      <Usage />
      {session && (
        <IconButton name="share" label="Share as a file" class="roomy" onClick={() => (dialog.value = "share")}>
          Share
        </IconButton>
      )}
      <IconButton name="terminal" label="Terminals" pressed={isTerminalOpen.value} onClick={() => (isTerminalOpen.value = !isTerminalOpen.value)}>
        Terminals
      </IconButton>
      <IconButton name="diff" label="Review changes" pressed={panel.value === "review"} onClick={() => (panel.value = panel.value === "review" ? "none" : "review")}>
        Review
        {session?.summary && <Lines additions={session.summary.additions} deletions={session.summary.deletions} />}
      </IconButton>
      <IconButton name="more" label="All commands (Ctrl+K)" onClick={() => (dialog.value = "commands")} />
    </header>
  );
}
