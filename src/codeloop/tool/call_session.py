"""A tool call's access to its session: narrow methods, so that no tool has the store itself."""

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
    message_updated,
    part_updated,
    session_updated,
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
from codeloop.tool.superseded_outputs import UNCHANGED, CacheAge, find_superseded

INSTRUCTIONS = "<system-reminder>\nInstructions for this folder, from {name}:\n{words}\n</system-reminder>"
"""How a folder's instructions are added to a file that was read there."""


class SubagentReport(Struct, frozen=True):
    """A subagent's state, its last text ("" for none) and the files that it changed."""

    session_id: str
    title: str
    state: SubagentStatus
    reason: str | None
    text: str


Judge = Callable[[str, Sequence[str]], dict[str, Action]]


def _free(_permission: str, _patterns: Sequence[str]) -> dict[str, Action]:
    return {}


class HookRunner(Protocol):
    """Calls the handlers of hooks; see `extend.hooks.hooks.Hooks`."""

    def wants(self, name: str) -> bool:
        """Return whether a hook has any handler."""
        ...

    async def run(self, name: str, given: JSON, output: JSON) -> JSON:
        """Pass `output` through the handlers. Raises HookRefused: the act is refused."""
        ...

    async def once(self, name: str, given: JSON, output: JSON) -> JSON:
        """Like `run`, but cached by its arguments until the handlers change."""
        ...


class ToolHooks:
    """The null object of a call's hooks: no extension is asked, nothing changes.

    With extensions it is an `agent.hooks.extension_hooks.ExtensionHooks`.
    """

    @property
    def runner(self) -> HookRunner | None:
        """The runner of the handlers; None: there are no extensions."""
        return None

    async def shell_variables(self, given: JSON) -> dict[str, str]:
        """Return the variables that extensions set for a command. Raises HookRefused."""
        del given
        return {}


NO_TOOL_HOOKS = ToolHooks()


class CallSession:
    """The session of one call."""

    def __init__(
        self,
        store: Store,
        session_id: str,
        call: QuestionTool,
        judge: Judge = _free,
        hooks: ToolHooks = NO_TOOL_HOOKS,
        denials: Callable[[str], tuple[str, ...]] = lambda _: (),
    ) -> None:
        self._store = store
        self._id = session_id
        self._call = call
        self.hooks = hooks
        self.judge = judge
        """Returns the rules' action on each pattern of one permission, without `allow`. Asks nobody."""
        self.denials = denials
        """Returns the patterns of the rules that deny particular needs of one permission."""

    def todos(self) -> list[Todo]:
        """Return the session's task list."""
        return self._store.list_todos(self._id)

    def set_todos(self, todos: list[Todo]) -> None:
        """Replace the session's task list."""
        self._store.append(TodoUpdated(properties=Todos(session_id=self._id, todos=todos)))

    def lines_read(self, *paths: str) -> dict[str, dict[int, str]]:
        """Return the lines of files, by number, that earlier calls of `read` gave and the next request still carries.

        Derived from what is stored, so it holds after a restart, an undo and in a fork, and a subagent begins with
        nothing. A result that was cut, compacted, superseded or only a reference to an earlier one does not count.
        """
        lines: dict[str, dict[int, str]] = {path: {} for path in paths}
        for tool, state in self._list_carried():
            shown: JSON = (state.metadata.get("display") or {}) if tool == "read" else {}
            if (path := shown.get("path")) in lines:
                lines[path].update(_lines_of(state, path))
        return lines

    def find_instructions(self, name: str, file: Path) -> str | None:
        """Return an instruction file's text in the next request, as it was given last; None: it is not there.

        `name`: what the model knows the file by. Derived from what is stored, as `lines_read` is.
        """
        latest: str | None = None
        start, end = INSTRUCTIONS.format(name=name, words="\0").split("\0")
        for tool, state in self._list_carried():
            own = {"tool": tool, "metadata": state.metadata}
            calls: list[JSON] = state.metadata.get("details", []) if tool == "batch" else [own]
            texts = [_whole(each["metadata"], file) for each in calls if each["tool"] == "read"]
            if "outputPath" not in state.metadata:
                latest = next((text for text in reversed(texts) if text is not None), latest)
            if start in state.output:
                latest = state.output.rpartition(start)[2].partition(end)[0]
        return latest

    def _list_carried(self) -> Iterator[tuple[str, ToolStateCompleted]]:
        """Yield the results of earlier steps that the next request carries, each with the name of its tool."""
        entries = self._store.read_context(self._id).entries
        entries = entries[find_context_start(entries) :]
        omitted = find_superseded(entries[: CacheAge().after(entries).cold])
        for entry in entries:
            if entry.info.id == self._call.message_id:
                break
            for part in entry.parts:
                if not isinstance(part, ToolPart) or part.id in omitted:
                    continue
                if isinstance(part.state, ToolStateCompleted) and part.state.time.compacted is None:
                    yield part.tool, part.state

    def publish_edit(self, path: Path, directory: Path) -> None:
        """Show every client that a file was changed by a call in `directory`."""
        self._store.publish_live(FileEdited(properties=FilePath(file=str(path))), str(directory))

    def warn(self, note: str) -> None:
        """Show every client a note for the user, which the model does not read."""
        self._store.publish_live(ToastShown(properties=Toast(message=note, variant="warning")))

    def includes(self, session_id: str) -> bool:
        """Return whether a session is this one or of a subagent below it, at any depth."""
        return any(session.id == self._id for session in walk_ancestors(self._store, session_id))

    def subagents(self) -> list[Session]:
        """Return the sessions of the subagents, newest first."""
        return self._store.list_sessions(parent=self._id)

    def list_task_calls(self) -> tuple[str, list[ToolPart]]:
        """Return the user's latest prompt by its id, and the calls of `task` since then that start a subagent."""
        calls: list[ToolPart] = []
        for entry in reversed(self._store.read_context(self._id).entries):
            if isinstance(entry.info, UserMessage) and not all(_is_synthetic(part) for part in entry.parts):
                return entry.info.id, calls[::-1]
            calls += [part for part in reversed(entry.parts) if _starts_subagent(part)]
        return "", calls[::-1]

    @property
    def model(self) -> str:
        """The model that made this call, as `provider/model`; empty: none did."""
        for entry in reversed(self._store.read_context(self._id).entries):
            if entry.info.id == self._call.message_id and isinstance(entry.info, AssistantMessage):
                return f"{entry.info.provider_id}/{entry.info.model_id}"
        return ""

    def calls_before(self, tool: str) -> tuple[JSON, list[str]]:
        """Return the metadata of the latest call of a tool before this one that failed, and the prompts since then.

        After a call that succeeded nothing of what was before it counts. Empty without a call.
        """
        prompts, own = list[str](), (self._call.message_id, self._call.call_id)
        for entry in reversed(self._store.read_context(self._id).entries):
            if isinstance(entry.info, UserMessage):
                prompts += [part.text for part in entry.parts if isinstance(part, TextPart) and not part.synthetic]
                continue
            for part in reversed(entry.parts):
                if not isinstance(part, ToolPart) or part.tool != tool or (part.message_id, part.call_id) == own:
                    continue
                if isinstance(part.state, ToolStateCompleted):
                    return {}, prompts[::-1]
                if isinstance(part.state, ToolStateError) and part.state.metadata:
                    return part.state.metadata, prompts[::-1]
        return {}, prompts[::-1]

    def mean_subagent_cost(self) -> float | None:
        """Return the dollars that a subagent of this session has cost so far, on average; None: none has ended yet."""
        costs = [session.cost for session in self.subagents() if session.cost]
        return sum(costs) / len(costs) if costs else None

    def subagent(self, session_id: str) -> SubagentReport | None:
        """Return a subagent's state; None when this session has no such subagent."""
        session = self._store.find_session(session_id)
        if session is None or session.parent_id != self._id:
            return None
        standing = read_subagent_state(self._store, session)
        text = make_subagent_report(self._store, session.id)
        state, reason = (standing.state, standing.reason) if standing else ("done", None)
        return SubagentReport(session.id, session.title, state, reason, text)

    def continue_as(self, agent: str, text: str) -> None:
        """Switch the session to an agent, which continues with this text as prompt."""
        view = self._store.read_context(self._id)
        message = make_next_prompt(view, agent=agent)
        part = TextPart(id=new_id("prt"), session_id=self._id, message_id=message.id, text=text, synthetic=True)
        session = replace(view.session, agent=agent)
        self._store.append(
            session_updated(session),
            message_updated(message),
            part_updated(part),
        )

    async def answers(self, questions: list[QuestionInfo], need: Need) -> list[list[str]]:
        """Ask any client and wait without a deadline; returns the chosen labels or free texts.

        Raises Rejected when they are refused; a question whose call is cancelled is withdrawn.
        """
        request = QuestionRequest(id=new_id("que"), session_id=self._id, questions=questions, tool=self._call)
        seq = self._store.append(QuestionAsked(properties=request))
        try:
            async for stamped in self._store.follow(seq, session=self._id):
                match stamped.event:
                    case QuestionReplied(properties=p) if p.request_id == request.id:
                        return p.answers
                    case QuestionRejected(properties=p) if p.request_id == request.id:
                        raise Rejected(need, p.message)
                    case _:
                        pass
        finally:
            if any(waiting.id == request.id for waiting in self._store.list_pending_questions(self._id)):
                refusal = QuestionRefusal(session_id=self._id, request_id=request.id)
                self._store.append(QuestionRejected(properties=refusal))
        raise AssertionError("a follower ends only by being closed")


def _is_synthetic(part: object) -> bool:
    return isinstance(part, TextPart) and bool(part.synthetic)


def _starts_subagent(part: object) -> TypeGuard[ToolPart]:
    return isinstance(part, ToolPart) and part.tool == "task" and not part.state.input.get("task_id")


def _lines_of(state: ToolStateCompleted, path: str) -> dict[int, str]:
    """Return the uncut lines of a file in the result of a `read`, by number."""
    display: JSON = state.metadata.get("display") or {}
    is_whole = "outputPath" not in state.metadata and UNCHANGED not in state.metadata
    if display.get("path") != path or not display.get("lineEnd") or not is_whole:
        return {}
    return dict(enumerate(str(display["text"]).split("\n"), int(display["lineStart"])))


def _whole(metadata: JSON, file: Path) -> str | None:
    """Return a file's text when a `read` gave all lines of it."""
    display: JSON = metadata.get("display") or {}
    is_whole = display.get("lineStart") == 1 and display.get("lineEnd") == display.get("totalLines")
    is_file = is_whole and UNCHANGED not in metadata and Path(os.path.realpath(display["path"])) == file
    return str(display["text"]).strip() if is_file else None
