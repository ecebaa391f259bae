// The page of a shared session: the same conversation, from the data that stands in the page. It asks nobody for anything.
import "./text/hidden";
import { batch, useSignal } from "@preact/signals";
import { render, type JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { putMessages } from "./state/events";
import { addressOf } from "./state/route";
import { conversationOf, current, place, sessions, type MessageView } from "./state/store";
import { isReadOnly, notice, switchTheme } from "./state/ui";
import { formatCost, formatCount } from "./text/format";
import { IconButton } from "./view/icons";
import { MessageRow } from "./view/message";
import type { ShareableSession } from "./wire/types";

const ROWS_AT_ONCE = 20;

const shared = JSON.parse(document.querySelector("#session")!.textContent!) as ShareableSession;

/** Show the session that the address names, else the first. */
function showAddress(): void {
  const named = new URLSearchParams(location.hash.slice(1)).get("session");
  const shown = shared.sessions.find((each) => each.info.id === named) ?? shared.sessions[0]!;
  place.value = { directory: shown.info.directory, sessionID: shown.info.id };
  document.title = shown.info.title;
}

function Top() {
  const session = current.value!;
  const last = conversationOf(session.id).messages.value.findLast((view) => view.info.value.modelID)?.info.value;
  const tokens = session.tokens ? session.tokens.input + session.tokens.output + session.tokens.cache.read + session.tokens.cache.write : 0;
  const facts = [new Date(session.time.created).toLocaleDateString(undefined, { dateStyle: "long" }), last?.modelID, tokens > 0 && `${formatCount(tokens)} tokens`, session.cost ? formatCost(session.cost) : ""];
  return (
    <header class="shared-top">
      {session.parentID && (
        <a class="link" href={addressOf({ directory: session.directory, sessionID: session.parentID })}>
          ← Back to the session
        </a>
      )}
      <div class="shared-title">
        <h1>{session.title}</h1>
        <IconButton name="theme" label="Switch theme" onClick={switchTheme} />
      </div>
      <p class="quiet">{facts.filter(Boolean).join(" · ")}</p>
    </header>
  );
}

function Rows({ views, start, end }: { views: MessageView[]; start: number; end: number }) {
  return (
    <>
      {views.slice(start, end).map((view, index) => (
        <div class="shared-row" key={view.info.peek().id}>
          <MessageRow views={views} index={start + index} />
        </div>
      ))}
    </>
  );
}

/** All messages, so that the browser can find and print them; a long session is filled in while nothing else is to be done. */
function Messages() {
  const views = conversationOf(place.value.sessionID).messages.value;
  const count = useSignal(1);
  const drawn = useRef<JSX.Element[]>([]).current; // the same elements each time: what is there is not drawn again
  while (drawn.length < count.value) {
    const start = drawn.length * ROWS_AT_ONCE;
    drawn.push(<Rows key={start} views={views} start={start} end={start + ROWS_AT_ONCE} />);
  }
  useEffect(() => {
    if (count.value * ROWS_AT_ONCE >= views.length) return;
    if (!("requestIdleCallback" in window)) {
      const timer = setTimeout(() => count.value++);
      return () => clearTimeout(timer);
    }
    const idle = requestIdleCallback(() => count.value++, { timeout: 500 });
    return () => cancelIdleCallback(idle);
  }, [count.value]);
  return <>{[...drawn]}</>;
}

function SharedPage() {
  return (
    <main class="shared">
      <Top />
      <Messages key={place.value.sessionID} />
      <footer class="shared-end quiet">
        A session of codeloop, an open coding agent.
        {shared.hidden > 0 && ` Where it says [hidden], a key, token or password was left out.`}
      </footer>
      {notice.value && (
        <p class="notice" role="status">
          {notice.value.text}
        </p>
      )}
    </main>
  );
}

batch(() => {
  isReadOnly.value = true;
  sessions.value = new Map(shared.sessions.map((each) => [each.info.id, each.info]));
  for (const each of shared.sessions) putMessages(each.info.id, each.messages);
  showAddress();
});
addEventListener("hashchange", () => {
  showAddress();
  scrollTo(0, 0);
});
render(<SharedPage />, document.querySelector("#app")!);
