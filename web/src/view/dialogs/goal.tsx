// A goal: what the model works for until checks that the server runs itself pass; and how far it is.
import { useSignal } from "@preact/signals";
import { sendGoal } from "../../state/actions";
import { current, isBusy } from "../../state/store";
import { attempt } from "../../state/ui";
import { formatNumber } from "../../text/format";
import { close, Frame } from "./frame";

export function GoalDialog() {
  const text = useSignal("");
  const checks = useSignal("");
  const rounds = useSignal("");
  const start = async (): Promise<void> => {
    const commands = checks.value.split("\n").map((line) => line.trim()).filter(Boolean);
    if (await attempt(() => sendGoal(text.value.trim(), { checks: commands, ...(Number(rounds.value) > 0 ? { rounds: Number(rounds.value) } : {}) }))) close();
  };
  return (
    <Frame title="Work for a goal">
      <form
        class="compare-form"
        onSubmit={(event) => {
          event.preventDefault();
          void start();
        }}
      >
        <textarea class="field" rows={3} aria-label="Goal" placeholder="What is to be reached, such as: the tests pass" autofocus onInput={(event) => (text.value = event.currentTarget.value)} />
        <textarea class="field" rows={2} aria-label="Checks" placeholder={"Checks, a command a line, such as: make test"} onInput={(event) => (checks.value = event.currentTarget.value)} />
        <input class="field" type="number" min={1} aria-label="Rounds" placeholder="Rounds at most (10)" onInput={(event) => (rounds.value = event.currentTarget.value)} />
        <p class="quiet">The checks run whenever the model stops; it is sent on until all pass. Without a check a small model judges by what was run.</p>
        <div class="dialog-actions">
          <button type="submit" class="button primary" disabled={!text.value.trim() || isBusy.value}>
            Start
          </button>
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
        </div>
      </form>
    </Frame>
  );
}

interface GoalState {
  text: string;
  checks: string[];
  status: "working" | "done" | "not_done";
  rounds: number;
  left: string[];
  reason: string;
}

/** The latest goal of the session on the screen, above the prompt. */
export function GoalBar() {
  const goal = current.value?.metadata?.["goal"] as GoalState | undefined;
  if (!goal) return null;
  const state = goal.status === "done" ? "Reached" : goal.status === "not_done" ? "Not reached" : isBusy.value ? "Working" : "Interrupted";
  return (
    <details class="open-todos goal">
      <summary>
        <span class={`count ${goal.status === "done" ? "good" : isBusy.value ? "" : "bad"}`}>{state}</span>
        Goal: {goal.text}
      </summary>
      <div class="goal-body">
        {goal.checks.map((check) => (
          <p key={check}>
            <code>{check}</code>
          </p>
        ))}
        {goal.rounds > 0 && <p class="quiet">{formatNumber(goal.rounds, "round")}</p>}
        {goal.left.length > 0 && (
          <ul class="files">
            {goal.left.map((each) => (
              <li key={each}>{each}</li>
            ))}
          </ul>
        )}
        {goal.reason && <p>{goal.reason}</p>}
      </div>
    </details>
  );
}
