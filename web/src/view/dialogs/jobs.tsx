// What runs beside the turns in this directory: commands, subagents, calls that take long; each can be watched and ended.
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { addressOf } from "../../state/route";
import { place, sessions } from "../../state/store";
import { attempt, dialog, fail, tell } from "../../state/ui";
import { formatDuration, plainOutput } from "../../text/format";
import { get, post } from "../../wire/api";
import type { Job, Session } from "../../wire/types";
import { Frame } from "./frame";

const NOUNS: Record<Job["kind"], string> = { command: "command", subagent: "subagent", call: "call" };
/** The time between two looks while the list is open, in ms. */
const LOOK_AGAIN = 1_000;

/** How many background commands the sessions of this directory have, by what the server stores with each of them. */
const countJobs = (): number => [...sessions.value.values()].filter((session: Session) => session.directory === place.value.directory).reduce((sum, session) => sum + ((session.metadata?.["jobs"] as unknown[] | undefined)?.length ?? 0), 0);

/** Opens the list; shown while a command runs in the background. */
export function JobsButton() {
  const count = countJobs();
  if (count === 0) return null;
  return (
    <button type="button" class="ghost usage" title="What runs in the background" aria-label={`${count} in background`} onClick={() => (dialog.value = "jobs")}>
      <span class="spinner" />
      <span>
        {count}
        <span class="roomy"> in background</span>
      </span>
    </button>
  );
}

/** The job whose output is shown; "" for none. */
const watched = signal("");

export function JobsDialog() {
  const jobs = useSignal<Job[] | null>(null);
  const output = useSignal("");
  const { directory } = place.value;
  const look = async (): Promise<void> => {
    const found = await get<Job[]>("/job", directory);
    jobs.value = found;
    const job = found.find((each) => each.id === watched.value);
    // It may end between the two requests; what it said last stays on the screen.
    if (job) await get<{ output: string }>(`/job/${encodeURIComponent(job.id)}/output`, directory).then((answer) => (output.value = answer.output), () => undefined);
  };
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isOpen = true;
    const again = (): void => void look().catch(fail).then(() => isOpen && (timer = setTimeout(again, LOOK_AGAIN)));
    again();
    return () => {
      isOpen = false;
      watched.value = "";
      clearTimeout(timer);
    };
  }, []);
  const watch = (job: Job): void => {
    watched.value = watched.value === job.id ? "" : job.id;
    output.value = "";
    void look().catch(fail);
  };
  const end = async (job: Job): Promise<void> => {
    const done = await attempt(async () => tell((await post<boolean>(`/job/${encodeURIComponent(job.id)}/end`, {}, directory)) ? "It was stopped" : "It had ended already"));
    if (done) void look().catch(fail);
  };
  return (
    <Frame title="What runs in the background" size="wide">
      {jobs.value?.length === 0 && <p class="quiet">Nothing runs in the background.</p>}
      <ul class="mcp-list jobs">
        {jobs.value?.map((job) => (
          <Row key={job.id} job={job} output={watched.value === job.id ? output.value : null} onWatch={() => watch(job)} onEnd={() => void end(job)} />
        ))}
      </ul>
    </Frame>
  );
}

/** A line on something that runs. `output`: what it has printed; null where that is not shown. */
function Row({ job, output, onWatch, onEnd }: { job: Job; output: string | null; onWatch: () => void; onEnd: () => void }) {
  const { directory } = place.value;
  return (
    <li class="mcp job">
      <div class="mcp-line">
        <code class="job-title">{job.title}</code>
        <span class="mcp-state">
          {NOUNS[job.kind]} · {formatDuration(Math.max(0, Date.now() - job.started))}
          {job.isOverdue && " · past its time limit"}
        </span>
        {job.addresses?.map((address) => (
          <a key={address} class="link" href={address} target="_blank" rel="noreferrer">
            {address}
          </a>
        ))}
        {job.kind === "subagent" ? (
          <a class="button" href={addressOf({ directory, sessionID: job.id })} onClick={() => (dialog.value = null)}>
            Open
          </a>
        ) : (
          <button type="button" class="button" aria-expanded={output !== null} onClick={onWatch}>
            Output
          </button>
        )}
        <button type="button" class="button" onClick={onEnd}>
          Stop
        </button>
      </div>
      {output === null ? (
        job.lastLine && <p class="mcp-state job-line">{plainOutput(job.lastLine)}</p>
      ) : (
        <pre class="command" tabindex={0} ref={(node) => void node?.scrollTo(0, node.scrollHeight)}>
          {plainOutput(output) || "It has printed nothing yet."}
        </pre>
      )}
    </li>
  );
}
