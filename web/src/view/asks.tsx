// What waits for the user: permissions with the command and the change that they are about, and questions.
import { useEffect, useRef, useState } from "preact/hooks";
import { answerPermission, answerQuestion, rejectQuestion } from "../state/actions";
import { permissions, place, questions, rootOf, sessions } from "../state/store";
import { isBroad, listScopes } from "../state/scopes";
import { panel } from "../state/ui";
import type { PermissionRequest, Question, QuestionRequest } from "../wire/types";
import { showHidden } from "../text/format";
import { Diff } from "./diff";
import { Markdown } from "./markdown";

const TITLES: Record<string, string> = {
  bash: "Run this command?",
  edit: "Make this change?",
  read: "Read this file?",
  external_directory: "Use files outside of the project?",
  webfetch: "Fetch this page?",
  websearch: "Search the web?",
  task: "Start this subagent?",
  doom_loop: "The same call again?",
};

const text = (value: unknown): string => (typeof value === "string" ? value : "");

function Permission({ request }: { request: PermissionRequest }) {
  const [isRejecting, setRejecting] = useState(false);
  const [reason, setReason] = useState("");
  const [scope, setScope] = useState(0);
  const [sureOf, setSureOf] = useState("");
  const box = useRef<HTMLDivElement>(null);
  const scopes = listScopes(request);
  const always = scopes[scope] ?? [];
  const allow = (reply: "session" | "always"): void => {
    if (isBroad(request.permission, always) && sureOf !== reply) return setSureOf(reply);
    void answerPermission(request, reply, "", always === request.always ? undefined : always);
  };
  const allowAlways = (): void => allow("always");
  const allowForSession = (): void => allow("session");
  const widen = (): void => {
    setScope((scope + 1) % scopes.length);
    setSureOf("");
  };
  useEffect(() => {
    if (document.activeElement === document.body || (document.activeElement as HTMLTextAreaElement | null)?.value === "") box.current?.focus({ preventScroll: true });
  }, [request.id]);
  const { metadata } = request;
  const command = text(metadata["command"]);
  const diff = text(metadata["diff"]);
  const isChild = request.sessionID !== place.value.sessionID;
  const keys: Record<string, () => void> = { y: () => void answerPermission(request, "once"), ...(always.length > 0 ? { s: allowForSession, a: allowAlways } : {}), ...(scopes.length > 1 ? { w: widen } : {}), n: () => setRejecting(true) };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.target !== box.current || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };
  return (
    <div class="ask" ref={box} tabindex={-1} role="group" aria-label="Permission" onKeyDown={onKeyDown}>
      <h2>{TITLES[request.permission] ?? `Allow ${request.permission}?`}</h2>
      {isChild && <p class="quiet">Asked by the subagent “{sessions.value.get(request.sessionID)?.title ?? "of this session"}”.</p>}
      {command && (
        <pre class="ask-command" tabindex={0}>
          {showHidden(command)}
        </pre>
      )}
      {diff ? <Diff patch={diff} file={text(metadata["filepath"])} /> : !command && <ul class="ask-patterns">{request.patterns.map((pattern) => <li key={pattern}><code>{showHidden(pattern)}</code></li>)}</ul>}
      {isRejecting ? (
        <form
          class="ask-actions"
          onSubmit={(event) => {
            event.preventDefault();
            void answerPermission(request, "reject", reason);
          }}
        >
          <input class="field" aria-label="What to do instead" placeholder="What to do instead (may be empty)" value={reason} ref={(node) => node?.focus()} onInput={(event) => setReason(event.currentTarget.value)} onKeyDown={(event) => event.key === "Escape" && setRejecting(false)} />
          <button type="submit" class="button danger">
            Deny
          </button>
          <button type="button" class="button" onClick={() => setRejecting(false)}>
            Back
          </button>
        </form>
      ) : (
        <div class="ask-actions">
          <button type="button" class="button primary" onClick={keys["y"]}>
            Allow once <kbd>y</kbd>
          </button>
          {always.length > 0 && (
            <button type="button" class={`button ${sureOf === "session" ? "danger" : ""}`} title={always.join("\n")} onClick={allowForSession}>
              {sureOf === "session" ? "That is broad. Allow it for this session" : "Allow for this session"} <kbd>s</kbd>
            </button>
          )}
          {always.length > 0 && (
            <button type="button" class={`button ${sureOf === "always" ? "danger" : ""}`} title={always.join("\n")} onClick={allowAlways}>
              {sureOf === "always" ? "That is broad. Allow it always" : "Always allow"} {always.length === 1 && <code>{showHidden(always[0]!)}</code>} <kbd>a</kbd>
            </button>
          )}
          {scopes.length > 1 && (
            <button type="button" class="button" onClick={widen}>
              {scope + 1 < scopes.length ? "Wider" : "Narrower"} <kbd>w</kbd>
            </button>
          )}
          <button type="button" class="button" onClick={keys["n"]}>
            Deny <kbd>n</kbd>
          </button>
        </div>
      )}
    </div>
  );
}

function QuestionField({ question, index, chosen, onChange }: { question: Question; index: number; chosen: string[]; onChange: (labels: string[]) => void }) {
  const own = chosen.find((label) => question.options.every((option) => option.label !== label)) ?? "";
  const toggle = (label: string, isOn: boolean): void => {
    if (!question.multiple) return onChange(isOn ? [label] : []);
    onChange(isOn ? [...chosen, label] : chosen.filter((each) => each !== label));
  };
  const setOwn = (value: string): void => onChange([...(question.multiple ? chosen.filter((each) => each !== own) : []), ...(value ? [value] : [])]);
  return (
    <fieldset class="question">
      <legend>{question.question}</legend>
      {question.document && (
        <div class="ask-document" tabindex={0} role="document" aria-label={question.document.path}>
          <Markdown text={question.document.text} />
        </div>
      )}
      {question.options.map((option) => (
        <label key={option.label} class="choice">
          <input type={question.multiple ? "checkbox" : "radio"} name={`question-${index}`} checked={chosen.includes(option.label)} onChange={(event) => toggle(option.label, event.currentTarget.checked)} />
          <span>
            {option.label}
            {option.description && <small>{option.description}</small>}
          </span>
        </label>
      ))}
      {question.custom !== false && <input class="field" aria-label={`Another answer to: ${question.question}`} placeholder="Another answer" value={own} onInput={(event) => setOwn(event.currentTarget.value)} />}
    </fieldset>
  );
}

function QuestionView({ request }: { request: QuestionRequest }) {
  const [answers, setAnswers] = useState<string[][]>(request.questions.map(() => []));
  return (
    <form
      class="ask"
      aria-label="Question"
      onSubmit={(event) => {
        event.preventDefault();
        void answerQuestion(request, answers);
      }}
    >
      {request.questions.map((question, index) => (
        <QuestionField key={index} question={question} index={index} chosen={answers[index]!} onChange={(labels) => setAnswers(answers.map((old, at) => (at === index ? labels : old)))} />
      ))}
      <div class="ask-actions">
        <button type="submit" class="button primary" disabled={answers.some((labels) => labels.length === 0)}>
          Answer
        </button>
        <button type="button" class="button" onClick={() => void rejectQuestion(request)}>
          Dismiss
        </button>
        {request.questions[0]?.header === "Plan" && (
          <button type="button" class="link" onClick={() => (panel.value = "review")}>
            Comment on its lines
          </button>
        )}
      </div>
    </form>
  );
}

/** The requests of the session on the screen and of its subagents: the first one, and how many follow. */
export function Asks() {
  const root = rootOf(place.value.sessionID);
  const isHere = (request: { sessionID: string }): boolean => !!root && rootOf(request.sessionID) === root;
  const asked = permissions.value.filter(isHere);
  const questioned = questions.value.filter(isHere);
  const more = asked.length + questioned.length - 1;
  if (more < 0) return null;
  return (
    <div class="asks">
      {asked[0] ? <Permission key={asked[0].id} request={asked[0]} /> : <QuestionView key={questioned[0]!.id} request={questioned[0]!} />}
      {more > 0 && <p class="quiet">{more} more {more === 1 ? "waits" : "wait"}.</p>}
    </div>
  );
}
