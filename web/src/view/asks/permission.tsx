// A permission that waits for the user, with the command or the change that it is about.
import { useState } from "preact/hooks";
import { answerPermission } from "../../state/actions";
import { isBroad, listScopes } from "../../state/scopes";
import { place, sessions } from "../../state/store";
import type { PermissionRequest } from "../../wire/types";
import { Diff } from "../diff";
import { AskFrame, type Choice } from "./frame";

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

type Lasting = "session" | "always";
type Step = "choose" | "deny" | Lasting;

/** Whether a lasting answer allows more than what is asked now, or much of a kind at once. */
const isWider = ({ permission, patterns }: PermissionRequest, always: readonly string[]): boolean => isBroad(permission, always) || always.some((each) => !patterns.includes(each));

const Patterns = ({ patterns }: { patterns: readonly string[] }) => (
  <ul class="ask-patterns">
    {patterns.map((pattern) => (
      <li key={pattern}>
        <code>{pattern}</code>
      </li>
    ))}
  </ul>
);

export function Permission({ request, more }: { request: PermissionRequest; more: number }) {
  const [step, setStep] = useState<Step>("choose");
  const [reason, setReason] = useState("");
  const [isSent, setSent] = useState(false);
  const [scope, setScope] = useState(0);
  const scopes = listScopes(request);
  const always = scopes[scope] ?? [];
  const answer = (reply: "once" | Lasting | "reject", message = ""): void => {
    setSent(true);
    const edited = (reply === "always" || reply === "session") && always !== request.always ? always : undefined;
    void answerPermission(request, reply, message, edited).then((isDone) => isDone || setSent(false));
  };
  const { metadata } = request;
  const command = text(metadata["command"]);
  const diff = text(metadata["diff"]);
  const isChild = request.sessionID !== place.value.sessionID;
  const back = (): void => setStep("choose");
  const allow = (reply: Lasting): void => (isWider(request, always) ? setStep(reply) : answer(reply));
  const forSession: Choice = { key: "s", label: "Allow for this session", title: always.join("\n"), act: () => allow("session") };
  const forever: Choice = { key: "a", label: <>Always allow {always.length === 1 && <code>{always[0]!}</code>}</>, title: always.join("\n"), act: () => allow("always") };
  const widen: Choice = { key: "w", label: scope + 1 < scopes.length ? "Wider" : "Narrower", act: () => setScope((scope + 1) % scopes.length) };
  const choices: Record<Step, Choice[]> = {
    choose: [{ key: "y", label: "Allow once", kind: "primary", act: () => answer("once") }, ...(always.length > 0 ? [forSession, forever] : []), ...(scopes.length > 1 ? [widen] : []), { key: "n", label: "Deny", act: () => setStep("deny") }],
    session: [
      { key: "s", label: "Allow it for this session", kind: "danger", act: () => answer("session") },
      { label: "Back", act: back },
    ],
    always: [
      { key: "a", label: "Always allow it", kind: "danger", act: () => answer("always") },
      { label: "Back", act: back },
    ],
    deny: [
      { label: "Deny", kind: "danger", act: () => answer("reject", reason) },
      { label: "Back", act: back },
    ],
  };
  return (
    <AskFrame shown={`${request.id} ${step} ${scope}`} label="Permission" choices={choices[step]} isBusy={isSent} {...(step === "choose" ? {} : { onEscape: back })} {...(step === "deny" ? { onEnter: () => answer("reject", reason) } : {})}>
      <h2>
        {TITLES[request.permission] ?? `Allow ${request.permission}?`}
        {more > 0 && <span class="quiet"> {more} more {more === 1 ? "waits" : "wait"}</span>}
      </h2>
      {isChild && <p class="quiet">Asked by the subagent “{sessions.value.get(request.sessionID)?.title ?? "of this session"}”.</p>}
      {command && (
        <pre class="ask-command" tabindex={0}>
          {command}
        </pre>
      )}
      {diff ? <Diff patch={diff} file={text(metadata["filepath"])} /> : !command && <Patterns patterns={request.patterns} />}
      {(step === "session" || step === "always") && (
        <div class="ask-wider" role="alert">
          <p>That allows more than what is asked now. {step === "session" ? "In this session" : "In this project"}, nothing will be asked any more for</p>
          <Patterns patterns={always} />
        </div>
      )}
      {step === "deny" && <input class="field" type="text" aria-label="What to do instead" placeholder="What to do instead (may be empty)" value={reason} ref={(node) => node?.focus()} onInput={(event) => setReason(event.currentTarget.value)} />}
    </AskFrame>
  );
}
