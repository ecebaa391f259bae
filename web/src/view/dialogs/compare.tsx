// Several models on one prompt: choose them, then their changes, checks, costs and times side by side.
import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { shownModel } from "../../state/actions";
import { comparison, finishEnded, keepRow, refreshComparison, removeTrees, startComparison, type Comparison, type Row } from "../../state/compare";
import { addressOf } from "../../state/route";
import { moodOf, offers, statuses } from "../../state/store";
import { attempt } from "../../state/ui";
import { formatCost, formatDuration, formatNumber } from "../../text/format";
import { Counts, Diff } from "../diff";
import { close, Frame } from "./frame";

export function CompareDialog() {
  // Which comparison there is becomes known with the directory, which a slow server tells after this dialog was opened.
  const of = comparison.value?.directory;
  const isKnown = useSignal(false);
  useEffect(() => {
    isKnown.value = false;
    if (of) void refreshComparison().then(() => (isKnown.value = true));
  }, [of]);
  useSignalEffect(() => {
    void statuses.value;
    if (isKnown.value) finishEnded();
  });
  return (
    <Frame title="Compare models" size="wide">
      {comparison.value ? <Results held={comparison.value} /> : <Form />}
    </Frame>
  );
}

function Form() {
  const prompt = useSignal("");
  const check = useSignal("");
  const query = useSignal("");
  const own = shownModel();
  const chosen = useSignal<readonly string[]>(own ? [`${own.providerID}/${own.modelID}`] : []);
  const isStarting = useSignal(false);
  const all = offers.value.providers.flatMap((provider) => Object.values(provider.models).map((model) => ({ id: `${provider.id}/${model.id}`, name: model.name, provider: provider.name })));
  const fitting = all.filter((each) => chosen.value.includes(each.id) || `${each.id} ${each.name}`.toLowerCase().includes(query.value.toLowerCase())).slice(0, 60);
  const start = async (): Promise<void> => {
    isStarting.value = true;
    await attempt(() => startComparison(prompt.value.trim(), chosen.value, check.value.trim()));
    isStarting.value = false;
  };
  return (
    <form
      class="compare-form"
      onSubmit={(event) => {
        event.preventDefault();
        void start();
      }}
    >
      <textarea class="field" rows={3} aria-label="Prompt for all models" placeholder="What should be done?" autofocus onInput={(event) => (prompt.value = event.currentTarget.value)} />
      <input class="field" aria-label="Check" placeholder="Check, a command that must exit with 0 (may be empty)" onInput={(event) => (check.value = event.currentTarget.value)} />
      {all.length > 12 && <input class="field" aria-label="Filter the models" placeholder="Filter the models" onInput={(event) => (query.value = event.currentTarget.value)} />}
      <fieldset class="compare-models">
        <legend>Models, at least two; each works in a work tree of its own</legend>
        {fitting.map((each) => (
          <label key={each.id} class="choice">
            <input type="checkbox" checked={chosen.value.includes(each.id)} onChange={(event) => (chosen.value = event.currentTarget.checked ? [...chosen.value, each.id] : chosen.value.filter((id) => id !== each.id))} />
            <span>
              {each.name} <small>{each.provider}</small>
            </span>
          </label>
        ))}
      </fieldset>
      <div class="dialog-actions">
        <button type="submit" class="button primary" disabled={isStarting.value || chosen.value.length < 2 || !prompt.value.trim()}>
          Start {formatNumber(chosen.value.length, "model")}
        </button>
        <button type="button" class="button" onClick={close}>
          Cancel
        </button>
      </div>
    </form>
  );
}

const MOODS = { waits: "waits for you", running: "running", failed: "failed", finished: "running", idle: "running" };

function stateOf(row: Row): string {
  if (row.problem) return row.problem;
  return row.state === "done" ? "done" : MOODS[moodOf(row.sessionID)];
}

function checkOf(row: Row): preact.JSX.Element {
  if (row.state === "running") return <>…</>;
  return row.check === 0 ? <span class="good">passed</span> : <span class="bad">{row.check === null || row.check === undefined ? "not run" : `failed (${row.check})`}</span>;
}

function Results({ held }: { held: Comparison }) {
  const taken = useSignal<Readonly<Record<string, string>>>({});
  const shown = useSignal("");
  const conflicts = useSignal<{ file: string; text?: string }[]>([]);
  const said = useSignal("");
  const forget = (): void => {
    conflicts.value = [];
    said.value = "";
  };
  const { rows, check } = held;
  const files = [...new Set(rows.flatMap((row) => row.files.map((each) => each.file ?? "")))].sort();
  const isRunning = rows.some((row) => row.state === "running");
  const keep = async (row: Row, some?: string[]): Promise<void> => {
    const done = await keepRow(row, some);
    conflicts.value = [...conflicts.value, ...done.conflicts];
    said.value = `${said.value} ${done.said}`.trim();
  };
  const keepTaken = async (): Promise<void> => {
    forget();
    for (const row of rows) {
      const some = files.filter((file) => taken.value[file] === row.name);
      if (some.length > 0) await keep(row, some);
    }
    if (conflicts.value.length === 0) taken.value = {};
  };
  const [shownFile, shownName] = shown.value.split("\0");
  const diff = rows.find((row) => row.name === shownName)?.files.find((each) => each.file === shownFile);
  return (
    <>
      <p class="compare-prompt">{held.prompt}</p>
      <div class="compare-scroll" tabindex={0} role="region" aria-label="Results">
        <table class="compare">
          <thead>
            <tr>
              <td />
              {rows.map((row) => (
                <th key={row.name} scope="col">
                  <a class="link" href={addressOf({ directory: row.directory, sessionID: row.sessionID })} onClick={close}>
                    {row.model.slice(row.model.indexOf("/") + 1)}
                  </a>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <Line title="State" rows={rows} cell={(row) => <span class={row.problem ? "bad" : ""}>{stateOf(row)}</span>} />
            {check && <Line title="Check" rows={rows} cell={checkOf} />}
            <Line title="Cost" rows={rows} cell={(row) => (row.state === "done" ? formatCost(row.cost ?? 0) : "…")} />
            <Line title="Time" rows={rows} cell={(row) => (row.state === "done" ? formatDuration((row.seconds ?? 0) * 1000) : "…")} />
            <Line title="Lines" rows={rows} cell={(row) => <Counts additions={sum(row, "additions")} deletions={sum(row, "deletions")} />} />
            {files.map((file) => (
              <Line
                key={file}
                title={file}
                rows={rows}
                cell={(row) => {
                  const found = row.files.find((each) => each.file === file);
                  if (!found) return <span class="quiet">–</span>;
                  const id = `${file}\0${row.name}`;
                  return (
                    <span class="compare-file">
                      <input type="radio" name={`take-${file}`} aria-label={`Take ${file} of ${row.model}`} checked={taken.value[file] === row.name} onClick={() => (taken.value = { ...taken.value, [file]: taken.value[file] === row.name ? "" : row.name })} />
                      <button type="button" class="link" aria-expanded={shown.value === id} onClick={() => (shown.value = shown.value === id ? "" : id)}>
                        <Counts additions={found.additions} deletions={found.deletions} />
                        {found.additions + found.deletions === 0 && "changed"}
                      </button>
                    </span>
                  );
                }}
              />
            ))}
            {!isRunning && (
              <Line
                title="All of it"
                rows={rows}
                cell={(row) => (
                  <button type="button" class="button" disabled={row.files.length === 0} onClick={() => (forget(), void keep(row))}>
                    Keep it
                  </button>
                )}
              />
            )}
          </tbody>
        </table>
      </div>
      {diff && (
        <section aria-label={`Changes of ${shownFile} by ${shownName}`}>
          <Diff patch={diff.patch ?? ""} file={shownFile!} />
        </section>
      )}
      {said.value && <p role="status">{said.value}</p>}
      {conflicts.value.map((each) => (
        <section key={each.file} role="alert">
          <h3>Conflict in {each.file}: nothing was changed</h3>
          {each.text && (
            <pre class="output" tabindex={0}>
              {each.text}
            </pre>
          )}
        </section>
      ))}
      <div class="dialog-actions">
        <button type="button" class="button primary" disabled={isRunning || !Object.values(taken.value).some(Boolean)} onClick={() => void keepTaken()}>
          Keep the chosen files
        </button>
        <button type="button" class="button" disabled={isRunning} onClick={() => void removeTrees()}>
          Remove the work trees
        </button>
      </div>
    </>
  );
}

const sum = (row: Row, what: "additions" | "deletions"): number => row.files.reduce((all, each) => all + each[what], 0);

function Line({ title, rows, cell }: { title: string; rows: readonly Row[]; cell: (row: Row) => preact.ComponentChildren }) {
  return (
    <tr>
      <th scope="row">{title}</th>
      {rows.map((row) => (
        <td key={row.name}>{cell(row)}</td>
      ))}
    </tr>
  );
}
