// The page: sessions to the left, the conversation in the middle, a review to the right when it is open.
import { useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { announcement } from "../state/announce";
import { conversationOf, current, place, waiting } from "../state/store";
import { dialog, isSidebarOpen, isTerminalOpen, notice, panel, type Dialog } from "../state/ui";
import { baseName, showHidden } from "../text/format";
import { isSignedOut } from "../wire/api";
import { Asks } from "./asks/asks";
import { ConversationView } from "./conversation";
import { AgentDialog, CommandDialog, EffortDialog, FindDialog, ModelDialog, SessionDialog, TimelineDialog } from "./dialogs/choosers";
import { DeleteDialog } from "./dialogs/delete";
import { GoalBar, GoalDialog } from "./dialogs/goal";
import { ContextDialog, HelpDialog, PairDialog } from "./dialogs/info";
import { JobsDialog } from "./dialogs/jobs";
import { ShareDialog } from "./dialogs/share";
import { UndoDialog } from "./dialogs/undo";
import { Header } from "./header";
import { handleKey, isLeading } from "./keys";
import { makeLazy } from "./lazy";
import { Prompt } from "./prompt";
import { Review } from "./review";
import { Sidebar } from "./sidebar";
import { SignIn } from "./sign_in";
import { Outgoing, StandingLine } from "./standing";
import { TerminalPanel } from "./terminal_panel";
import { Todos } from "./tool";

const DIALOGS: Record<Dialog, () => preact.JSX.Element> = {
  help: HelpDialog,
  models: ModelDialog,
  agents: AgentDialog,
  sessions: SessionDialog,
  commands: CommandDialog,
  context: ContextDialog,
  pair: PairDialog,
  undo: UndoDialog,
  share: ShareDialog,
  settings: makeLazy(() => import("./dialogs/settings/sheet").then((module) => module.SettingsDialog)),
  find: FindDialog,
  timeline: TimelineDialog,
  goal: GoalDialog,
  compare: makeLazy(() => import("./dialogs/compare").then((module) => module.CompareDialog)),
  delete: DeleteDialog,
  jobs: JobsDialog,
  efforts: EffortDialog,
  open: makeLazy(() => import("./dialogs/open").then((module) => module.OpenDialog)),
};

/** The todo list, while any of it is open. */
function OpenTodos() {
  const todos = conversationOf(place.value.sessionID).todos.value;
  const open = todos.filter((todo) => todo.status === "pending" || todo.status === "in_progress");
  if (open.length === 0) return null;
  const now = todos.find((todo) => todo.status === "in_progress") ?? open[0]!;
  return (
    <details class="open-todos">
      <summary>
        <span class="count">
          {todos.length - open.length}/{todos.length}
        </span>
        {now.content}
      </summary>
      <Todos todos={todos} />
    </details>
  );
}

function Start() {
  return (
    <div class="start">
      <h2>What should be done in {baseName(place.value.directory)}?</h2>
      <p class="quiet">
        Type a prompt below. <kbd>/</kbd> for commands, <kbd>@</kbd> for files, <kbd>?</kbd> for keys.
      </p>
    </div>
  );
}

function Dialogs() {
  const name = dialog.value;
  const Shown = name && DIALOGS[name];
  return Shown ? <Shown key={name} /> : null;
}

function Notices() {
  return (
    <>
      {isLeading.value && <p class="leading">Ctrl+X …</p>}
      {notice.value && (
        <p class={`notice ${notice.value.isError ? "error" : ""}`} role={notice.value.isError ? "alert" : "status"}>
          {notice.value.text}
        </p>
      )}
      <p class="unseen" aria-live="polite">
        {announcement.value}
      </p>
    </>
  );
}

export function App({ onSignedIn }: { onSignedIn: () => void }) {
  useSignalEffect(() => {
    const waits = waiting.value.size > 0 ? `(${waiting.value.size}) ` : "";
    document.title = `${waits}${showHidden(current.value?.title ?? "codeloop")}`;
  });
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (!event.defaultPrevented && handleKey(event)) event.preventDefault();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
  const { sessionID, directory } = place.value;
  return (
    <div class={`page ${panel.value === "review" ? "reviewing" : ""}`}>
      <Sidebar />
      {isSidebarOpen.value && <div class="scrim" onClick={() => (isSidebarOpen.value = false)} />}
      <main>
        <Header />
        {sessionID ? <ConversationView key={sessionID} /> : <Start />}
        <div class="dock">
          <Asks />
          <Outgoing />
          {!isSignedOut.value && <StandingLine />}
          {sessionID && <OpenTodos />}
          {sessionID && <GoalBar />}
          <Prompt />
        </div>
        {isTerminalOpen.value && <TerminalPanel key={directory} />}
      </main>
      {panel.value === "review" && <Review key={sessionID || directory} />}
      <Notices />
      <Dialogs />
      <SignIn onSignedIn={onSignedIn} />
    </div>
  );
}
