"""`CallSession`, through which a running tool reads and changes its session: tools do not get the store itself."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeGuard

from msgspec import Struct

from codeloop.permission.gate import Rejected
from codeloop.schema.event import (
    QuestionAsked,
    QuestionRefusal,
    QuestionRejected,
    QuestionReplied,
    Todos,
    TodoUpdated,
    make_message_updated,
    make_part_updated,
    make_session_updated,
)
from codeloop.schema.ids import new_id
from codeloop.schema.live_events import FileEdited, FilePath, Toast, ToastShown
from codeloop.schema.message import AssistantMessage, Session, Todo, UserMessage
from codeloop.schema.part import TextPart, ToolPart, ToolStateCompleted, ToolStateError
from codeloop.schema.permission import Action, Need, QuestionTool
from codeloop.schema.question import QuestionInfo, QuestionRequest
from codeloop.schema.wire import JSON, replace
from codeloop.store.conversation import find_context_start, make_next_prompt
from codeloop.store.store import Store
from codeloop.store.subagent_state import SubagentStatus, make_subagent_report, read_subagent_state, walk_ancestors
from codeloop.tool.superseded_outputs import UNCHANGED_KEY, CacheAge, find_superseded

INSTRUCTIONS_TEMPLATE = "<system-reminder>\nInstructions for this folder, from {name}:\n{words}\n</system-reminder>"
"""The text by which a folder's instructions are added to the result of `read`."""


class SubagentReport(Struct, frozen=True):
    """A subagent's state, and its last text ("" for none). `reason`: why it ended early."""

    session_id: str
    title: str
    state: SubagentStatus
    reason: str | None
    text: str


Judge = Callable[[str, Sequence[str]], dict[str, Action]]
"""Takes a permission and patterns; returns the rules' action for each pattern, without those that are allowed."""


def _judge_all_free(_permission: str, _patterns: Sequence[str]) -> dict[str, Action]:
    return {}


class HookRunner(Protocol):
    """Calls the handlers of hooks; see `extend.hooks.hooks.Hooks`."""

    def has_handler(self, name: str) -> bool:
        """Return whether a hook has any handler."""
        ...

    async def run(self, name: str, given: JSON, output: JSON) -> JSON:
        """Pass `output` through the handlers. Raises HookRefused: the act is refused."""
        ...

    async def run_cached(self, name: str, given: JSON, output: JSON) -> JSON:
        """Call `run`, and cache its result by the arguments until the handlers change."""
        ...


class ToolHooks:
    """The hooks of a call when there are no extensions: no handler runs, nothing changes.

    With extensions its subclass `agent.hooks.extension_hooks.ExtensionHooks` is used.
    """

    @property
    def runner(self) -> HookRunner | None:
        """The runner of the handlers; None: there are no extensions."""
        return None

    async def collect_shell_variables(self, given: JSON) -> dict[str, str]:
        """Return the variables that extensions set for a command. Raises HookRefused."""
        del given
        return {}


NO_TOOL_HOOKS = ToolHooks()


class CallSession:
    """The session of one call, as far as tools may read and change it."""

    def __init__(
        self,
        store: Store,
        session_id: str,
        call: QuestionTool,
        judge: Judge = _judge_all_free,
        hooks: ToolHooks = NO_TOOL_HOOKS,
        denials: Callable[[str], tuple[str, ...]] = lambda _: (),
    ) -> None:
        self._store = store
        self._id = session_id
        self._call = call
        self.hooks = hooks
        self.judge = judge
        """Applies the session's rules to patterns, without asking the user. By default everything is allowed."""
        self.list_denials = denials
        """Returns the patterns of the rules that deny parts of a permission, such as `edit` of certain files."""

    def list_todos(self) -> list[Todo]:
        """Return the session's task list."""
        return self._store.list_todos(self._id)

    def set_todos(self, todos: list[Todo]) -> None:
        """Replace the session's task list."""
        self._store.append(TodoUpdated(properties=Todos(session_id=self._id, todos=todos)))

    def find_lines_read(self, *paths: str) -> dict[str, dict[int, str]]:
        """Return the lines of files, by number, that earlier calls of `read` returned and the next request contains.

        They are derived from the stored messages, so they are right after a restart, after an undo and in a fork, and
        a subagent begins without any. Results that were cut, compacted or superseded, and those that only refer to an
        earlier one, do not count.
        """
        lines: dict[str, dict[int, str]] = {path: {} for path in paths}
        for tool, state in self._list_carried():
            shown: JSON = (state.metadata.get("display") or {}) if tool == "read" else {}
            if (path := shown.get("path")) in lines:
                lines[path].update(_get_shown_lines(state, path))
        return lines

    def find_instructions(self, name: str, file: Path) -> str | None:
        """Return the text of an instruction file that the next request contains, the latest one; None: none.

        `name`: the path by which the model knows the file. Derived from the stored messages, as `find_lines_read` is.
        """
        latest: str | None = None
        # A NUL character, which no text has, marks the place of the text in the template.
        start, end = INSTRUCTIONS_TEMPLATE.format(name=name, words="\0").split("\0")
        for tool, state in self._list_carried():
            single_call = {"tool": tool, "metadata": state.metadata}
            calls: list[JSON] = state.metadata.get("details", []) if tool == "batch" else [single_call]
            texts = [_get_whole_text(each["metadata"], file) for each in calls if each["tool"] == "read"]
            if "outputPath" not in state.metadata:
                latest = next((text for text in reversed(texts) if text is not None), latest)
            if start in state.output:
                latest = state.output.rpartition(start)[2].partition(end)[0]
        return latest

    def _list_carried(self) -> Iterator[tuple[str, ToolStateCompleted]]:
        """Yield the results of earlier steps that the next request contains in full, each with its tool's name."""
        entries = self._store.read_context(self._id).entries
        entries = entries[find_context_start(entries) :]
        omitted = find_superseded(entries[: CacheAge().advance(entries).cold_entries])
        for entry in entries:
            # Calls of one step run at the same time: the model has not seen the results of the others yet.
            if entry.info.id == self._call.message_id:
                break
            for part in entry.parts:
                if not isinstance(part, ToolPart) or part.id in omitted:
                    continue
                if isinstance(part.state, ToolStateCompleted) and part.state.time.compacted is None:
                    yield part.tool, part.state

    def publish_edit(self, path: Path, directory: Path) -> None:
        """Tell every client that a call, which works in `directory`, has changed a file."""
        self._store.publish_live(FileEdited(properties=FilePath(file=str(path))), str(directory))

    def warn(self, note: str) -> None:
        """Show the user a note in every client; the model does not read it."""
        self._store.publish_live(ToastShown(properties=Toast(message=note, variant="warning")))

    def includes_session(self, session_id: str) -> bool:
        """Return whether a session is this one, or that of a subagent of it at any depth."""
        return any(session.id == self._id for session in walk_ancestors(self._store, session_id))

    def list_subagents(self) -> list[Session]:
        """Return the sessions of the subagents, newest first."""
        return self._store.list_sessions(parent=self._id)

    def list_task_calls(self) -> tuple[str, list[ToolPart]]:
        """Return the id of the user's latest prompt, and the calls of `task` since then that start a subagent."""
        calls: list[ToolPart] = []
        for entry in reversed(self._store.read_context(self._id).entries):
            # A message with synthetic parts only is codeloop's own, such as that of `continue_as_agent`.
            if isinstance(entry.info, UserMessage) and not all(_is_synthetic(part) for part in entry.parts):
                return entry.info.id, calls[::-1]
            calls += [part for part in reversed(entry.parts) if _starts_subagent(part)]
        return "", calls[::-1]

    @property
    def model_name(self) -> str:
        """The model that made this call, as `provider/model`; empty: none did."""
        for entry in reversed(self._store.read_context(self._id).entries):
            if entry.info.id == self._call.message_id and isinstance(entry.info, AssistantMessage):
                return f"{entry.info.provider_id}/{entry.info.model_id}"
        return ""

    def find_failed_call(self, tool: str) -> tuple[JSON, list[str]]:
        """Return the metadata of the last failed call of a tool, and the user's prompts since then.

        Calls before one that succeeded do not count. Without a failed call the metadata is empty, and the prompts are
        those since the successful call, or all.
        """
        prompts, this_call = list[str](), (self._call.message_id, self._call.call_id)
        for entry in reversed(self._store.read_context(self._id).entries):
            if isinstance(entry.info, UserMessage):
                prompts += [part.text for part in entry.parts if isinstance(part, TextPart) and not part.synthetic]
                continue
            for part in reversed(entry.parts):
                if not isinstance(part, ToolPart) or part.tool != tool or (part.message_id, part.call_id) == this_call:
                    continue
                if isinstance(part.state, ToolStateCompleted):
                    return {}, prompts[::-1]
                if isinstance(part.state, ToolStateError) and part.state.metadata:
                    return part.state.metadata, prompts[::-1]
        return {}, prompts[::-1]

    def compute_mean_subagent_cost(self) -> float | None:
        """Return the average cost of this session's subagents so far, in dollars; None: none has cost anything yet."""
        costs = [session.cost for session in self.list_subagents() if session.cost]
        return sum(costs) / len(costs) if costs else None

    def find_subagent(self, session_id: str) -> SubagentReport | None:
        """Return the state of a subagent of this session; None: it has no such subagent."""
        session = self._store.find_session(session_id)
        if session is None or session.parent_id != self._id:
            return None
        standing = read_subagent_state(self._store, session)
        text = make_subagent_report(self._store, session.id)
        state, reason = (standing.state, standing.reason) if standing else ("done", None)
        return SubagentReport(session.id, session.title, state, reason, text)

    def continue_as_agent(self, agent: str, text: str) -> None:
        """Switch the session to another agent, which goes on with `text` as its prompt."""
        view = self._store.read_context(self._id)
        message = make_next_prompt(view, agent=agent)
        part = TextPart(id=new_id("prt"), session_id=self._id, message_id=message.id, text=text, synthetic=True)
        session = replace(view.session, agent=agent)
        self._store.append(
            make_session_updated(session),
            make_message_updated(message),
            make_part_updated(part),
        )

    async def ask_questions(self, questions: list[QuestionInfo], need: Need) -> list[list[str]]:
        """Ask the user, in any client, and wait without a deadline; return the chosen labels or free texts of each.

        Raises Rejected if the user refuses to answer. If the call is cancelled, the questions are withdrawn.
        """
        request = QuestionRequest(id=new_id("que"), session_id=self._id, questions=questions, tool=self._call)
        seq = self._store.append(QuestionAsked(properties=request))
        try:
            # Following from the question's own number misses no answer, however soon it comes.
            async for stamped in self._store.follow(seq, session=self._id):
                match stamped.event:
                    case QuestionReplied(properties=p) if p.request_id == request.id:
                        return p.answers
                    case QuestionRejected(properties=p) if p.request_id == request.id:
                        raise Rejected(need, p.message)
                    case _:
                        pass
        finally:
            # The call was cancelled: clients drop the questions.
            if any(waiting.id == request.id for waiting in self._store.list_pending_questions(self._id)):
                refusal = QuestionRefusal(session_id=self._id, request_id=request.id)
                self._store.append(QuestionRejected(properties=refusal))
        raise AssertionError("a follower ends only by being closed")


def _is_synthetic(part: object) -> bool:
    return isinstance(part, TextPart) and bool(part.synthetic)


def _starts_subagent(part: object) -> TypeGuard[ToolPart]:
    return isinstance(part, ToolPart) and part.tool == "task" and not part.state.input.get("task_id")


def _get_shown_lines(state: ToolStateCompleted, path: str) -> dict[int, str]:
    """Return the lines of a file in the result of a `read`, by number; none if the result was cut."""
    display: JSON = state.metadata.get("display") or {}
    is_whole = "outputPath" not in state.metadata and UNCHANGED_KEY not in state.metadata
    if display.get("path") != path or not display.get("lineEnd") or not is_whole:
        return {}
    return dict(enumerate(str(display["text"]).split("\n"), int(display["lineStart"])))


def _get_whole_text(metadata: JSON, file: Path) -> str | None:
    """Return a file's text if the metadata is that of a `read` of all its lines, else None."""
    display: JSON = metadata.get("display") or {}
    is_whole = display.get("lineStart") == 1 and display.get("lineEnd") == display.get("totalLines")
    is_file = is_whole and UNCHANGED_KEY not in metadata and Path(os.path.realpath(display["path"])) == file
    return str(display["text"]).strip() if is_file else None
