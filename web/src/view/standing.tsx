// One line above the prompt box that tells what the session is doing.
import { useEffect, useReducer } from "preact/hooks";
import { send } from "../state/actions";
import { details, standing, unread } from "../state/now";
import { wordsFor, type Standing } from "../state/standing";
import { attempt, outgoing } from "../state/ui";
import { formatNumber } from "../text/format";

const LIVE: ReadonlySet<Standing> = new Set<Standing>(["compacting", "subagents", "working", "elsewhere"]);

/** Draws again each second while a retry is waited for. */
function useSeconds(until: number): number {
  const [, tick] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    if (!until) return;
    const timer = setInterval(() => tick(0), 1_000);
    return () => clearInterval(timer);
  }, [until]);
  return Math.max(0, Math.ceil((until - Date.now()) / 1_000));
}

/** Prompts that the server has not taken yet; seen only where that takes a while. */
export function Outgoing() {
  return (
    <>
      {outgoing.value.map(({ id, text }) => (
        <p key={id} class="outgoing">
          <span class="quiet">Being sent:</span> {text}
        </p>
      ))}
    </>
  );
}

export function StandingLine() {
  const now = standing.value;
  const { status, subagents } = details.value;
  const seconds = useSeconds(status.type === "retry" ? status.next : 0);
  const words = wordsFor(now, { status, subagents, seconds });
  const waiting = LIVE.has(now) || now === "waits" || now === "retry" ? unread.value.length : 0;
  if (!words) return null;
  return (
    <p class={`standing ${now} ${now === "lost" ? "connection" : ""}`} role="status">
      {LIVE.has(now) ? (
        <span class="dots" aria-hidden="true">
          <i />
          <i />
          <i />
        </span>
      ) : (
        <span class="standing-mark" aria-hidden="true" />
      )}
      <span class="standing-words" title={words}>
        {words}
      </span>
      {waiting > 0 && <span>· {formatNumber(waiting, "prompt")} {waiting === 1 ? "waits" : "wait"}</span>}
      {(now === "interrupted" || now === "unread") && (
        <button type="button" class="link" onClick={() => void attempt(() => send("go on", [], new Set()))}>
          Go on
        </button>
      )}
    </p>
  );
}
