"""`CallSession`, through which a running tool reads and changes its session: tools
do not get the store itself.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeGuard

from msgspec import Struct

from codeloop.permission.gate import BY_USER, Rejected
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
from codeloop.schema.permission import (
    PROFILE_KEY,
    Action,
    Need,
    PermissionRule,
    QuestionTool,
    Trait,
)
from codeloop.schema.question import QuestionInfo, QuestionRequest
from codeloop.schema.wire import JSON, replace
from codeloop.store.conversation import find_context_start, make_next_prompt
from codeloop.store.store import Store
from codeloop.store.subagents import SubagentStatus, make_subagent_report, read_subagent_state
from codeloop.tool.superseded_outputs import CacheAge, find_superseded


class HookRunner(Protocol):
    """Calls the handlers of hooks; see `extend.hooks.hooks.Hooks`."""

    def has_handler(self, name: str) -> bool:
        """Return whether a hook has any handler."""
        ...

    async def run(self, name: str, payload: JSON, output: JSON) -> JSON:
        """Pass `output` through the handlers. Raises HookRefused: the act is refused."""
        ...

    async def run_cached(self, name: str, payload: JSON, output: JSON) -> JSON:
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

    async def collect_shell_variables(self, payload: JSON) -> dict[str, str]:
        """Return the variables that extensions set for a command. Raises HookRefused."""
        del payload
        return {}


NO_TOOL_HOOKS = ToolHooks()


class SubagentReport(Struct, frozen=True):
    """A subagent's state, and its last text ("" for none). `reason`: why it ended early."""

    session_id: str
    title: str
    state: SubagentStatus
    reason: str | None
    text: str


class TaskCalls(Struct, frozen=True):
    """The calls of `task` in the turn of a prompt.
    `prompt_id`: "": the session has no prompt of the user.
    """

    prompt_id: str
    calls: list[ToolPart]


class LastCallFailure(Struct, frozen=True):
    """The metadata of a tool's last failed call, and the user's prompts since then,
    oldest first.
    """

    metadata: JSON
    later_prompts: list[str]


Judge = Callable[[str, Sequence[str]], dict[str, Action]]
"""Takes a permission and patterns; returns the rules' action for each pattern,
without those that are allowed.
"""
FindToolDenial = Callable[[str, Sequence[Trait]], PermissionRule | None]
"""Takes a tool's name and the traits of all its calls;
returns the rule that denies the tool by its name, or None.
"""


def _allow_all(_permission: str, _patterns: Sequence[str]) -> dict[str, Action]:
    return {}


_NEWEST_DECISIONS = 50
"""Among these is that of a call which has just been asked about."""


class CallSession:
    """The session of one call, as far as tools may read and change it."""

    def __init__(
        self,
        store: Store,
        session_id: str,
        call: QuestionTool,
        judge: Judge = _allow_all,
        hooks: ToolHooks = NO_TOOL_HOOKS,
        list_denials: Callable[[str], tuple[str, ...]] = lambda _: (),
        find_tool_denial: FindToolDenial = lambda _name, _traits: None,
    ) -> None:
        self._store = store
        self._id = session_id
        self._call = call
        self.hooks = hooks
        self.judge = judge
        """Applies the session's rules to patterns, without asking the user.
        By default everything is allowed.
        """
        self.list_denials = list_denials
        """Returns the patterns of the rules that deny parts of a permission,
        such as `edit` of certain files.
        """
        self.find_tool_denial = find_tool_denial
        self.is_kept: Callable[[Path], bool] = lambda _: False
        """Returns whether undo could bring a file back that git ignores,
        if a command changed it now.
        """
        self.is_attended = True
        """Whether somebody is there who can be asked while the turn runs."""
        self.private_home = ""
        """The name of a private home that only the session's checks see;
        "": its commands share that of all.
        """
        """Returns the rule that denies a tool by its name."""

    def was_allowed_by_person(self, permission: str) -> bool:
        """Return whether a person allowed a permission of this call that was asked for, and not a
        rule, a profile, an extension or `--auto`.
        """
        newest = self._store.permissions.list_decisions(self._id, limit=_NEWEST_DECISIONS)
        return any(
            each.call == self._call
            and (each.permission, each.action) == (permission, "allow")
            and each.by.startswith(BY_USER)
            for each in newest
        )

    @property
    def variables(self) -> dict[str, str]:
        """The variables that a client has set for the commands of the session."""
        session = self._store.find_session(self._id)
        return {} if session is None else session.variables

    def list_todos(self) -> list[Todo]:
        """Return the session's task list."""
        return self._store.list_todos(self._id)

    def set_todos(self, todos: list[Todo]) -> None:
        """Replace the session's task list."""
        self._store.append(TodoUpdated(properties=Todos(session_id=self._id, todos=todos)))

    def list_results_in_next_request(self) -> Iterator[tuple[str, ToolStateCompleted]]:
        """Yield the results of earlier steps that the next request contains in full,
        each with its tool's name.

        `tool/files/shown_files.py` finds in them what the model has read already.
        """
        entries = self._store.read_context(self._id).entries
        entries = entries[find_context_start(entries) :]
        omitted = find_superseded(entries[: CacheAge().advance(entries).cold_entries])
        for entry in entries:
            # Calls of one step run at the same time: the model has not seen the
            # results of the others yet.
            if entry.info.id == self._call.message_id:
                break
            for part in entry.parts:
                if not isinstance(part, ToolPart) or part.id in omitted:
                    continue
                if isinstance(part.state, ToolStateCompleted) and part.state.time.compacted is None:
                    yield part.tool, part.state

    def publish_edit(self, path: Path, directory: Path) -> None:
        """Report to every client that a call, which works in `directory`, has changed a file."""
        self._store.publish_live(FileEdited(properties=FilePath(file=str(path))), str(directory))

    def warn(self, note: str) -> None:
        """Show the user a note in every client; the model does not read it."""
        self._store.publish_live(ToastShown(properties=Toast(message=note, variant="warning")))

    def includes_session(self, session_id: str) -> bool:
        """Return whether a session is this one, or that of a subagent of it at any depth."""
        return any(session.id == self._id for session in self._store.walk_ancestors(session_id))

    def list_subagents(self) -> list[Session]:
        """Return the sessions of the subagents, newest first."""
        return self._store.list_sessions(parent=self._id)

    def find_task_calls(self) -> TaskCalls:
        """Return the calls of `task` since the user's latest prompt that start a subagent,
        oldest first.
        """
        calls: list[ToolPart] = []
        for entry in reversed(self._store.read_context(self._id).entries):
            # A message with synthetic parts only is codeloop's own,
            # such as that of `continue_as_agent`.
            if isinstance(entry.info, UserMessage) and not all(
                _is_synthetic(part) for part in entry.parts
            ):
                return TaskCalls(entry.info.id, calls[::-1])
            calls += [part for part in reversed(entry.parts) if _starts_subagent(part)]
        return TaskCalls("", calls[::-1])

    @property
    def model_name(self) -> str:
        """The model that made this call, as `provider/model`; empty: none did."""
        for entry in reversed(self._store.read_context(self._id).entries):
            if entry.info.id == self._call.message_id and isinstance(entry.info, AssistantMessage):
                return f"{entry.info.provider_id}/{entry.info.model_id}"
        return ""

    def find_last_failure(self, tool: str) -> LastCallFailure:
        """Return the last failure of a tool, with the user's prompts since then.

        Failures before a call that succeeded, and those without metadata, do not count. Without a
        failure the metadata is empty, and the prompts are those since the successful call, or all.
        """
        this_call = (self._call.message_id, self._call.call_id)
        prompts: list[str] = []
        for entry in reversed(self._store.read_context(self._id).entries):
            if isinstance(entry.info, UserMessage):
                prompts += [
                    part.text
                    for part in entry.parts
                    if isinstance(part, TextPart) and not part.synthetic
                ]
                continue
            for part in reversed(entry.parts):
                if (
                    not isinstance(part, ToolPart)
                    or part.tool != tool
                    or (part.message_id, part.call_id) == this_call
                ):
                    continue
                if isinstance(part.state, ToolStateCompleted):
                    return LastCallFailure({}, prompts[::-1])
                if isinstance(part.state, ToolStateError) and part.state.metadata:
                    return LastCallFailure(part.state.metadata, prompts[::-1])
        return LastCallFailure({}, prompts[::-1])

    def compute_mean_subagent_cost(self) -> float | None:
        """Return the average cost of this session's subagents so far, in dollars;
        None: none has cost anything yet.
        """
        costs = [session.cost for session in self.list_subagents() if session.cost]
        return sum(costs) / len(costs) if costs else None

    def report_on_subagent(self, session_id: str) -> SubagentReport | None:
        """Return the state and last text of a subagent of this session;
        None: it has no such subagent.
        """
        session = self._store.find_session(session_id)
        if session is None or session.parent_id != self._id:
            return None
        stored_state = read_subagent_state(self._store, session)
        text = make_subagent_report(self._store, session.id)
        state, reason = (
            (stored_state.state, stored_state.reason) if stored_state else ("done", None)
        )
        return SubagentReport(session.id, session.title, state, reason, text)

    def iterate_call_inputs(self) -> Iterator[JSON]:
        """Yield the arguments of the session's earlier calls, the newest first."""
        for entry in reversed(self._store.read_context(self._id).entries):
            yield from (
                part.state.input for part in reversed(entry.parts) if isinstance(part, ToolPart)
            )

    def continue_as_agent(self, agent: str, text: str, *, asks_before_edits: bool = False) -> None:
        """Switch the session to another agent, which goes on with `text` as its prompt.

        `asks_before_edits`: the session's permission profile is `ask` from now on.
        """
        view = self._store.read_context(self._id)
        message = make_next_prompt(view, agent=agent)
        part = TextPart(
            id=new_id("prt"), session_id=self._id, message_id=message.id, text=text, synthetic=True
        )
        session = replace(view.session, agent=agent)
        if asks_before_edits:
            session = replace(session, metadata={**(session.metadata or {}), PROFILE_KEY: "ask"})
        self._store.append(
            make_session_updated(session),
            make_message_updated(message),
            make_part_updated(part),
        )

    async def ask_questions(self, questions: list[QuestionInfo], need: Need) -> list[list[str]]:
        """Ask the user, in any client, and wait without a deadline;
        return the chosen labels or free texts of each.

        Raises Rejected if the user refuses to answer.
        If the call is cancelled, the questions are withdrawn.
        """
        request = QuestionRequest(
            id=new_id("que"), session_id=self._id, questions=questions, tool=self._call
        )
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
            if any(
                waiting.id == request.id for waiting in self._store.list_pending_questions(self._id)
            ):
                refusal = QuestionRefusal(session_id=self._id, request_id=request.id)
                self._store.append(QuestionRejected(properties=refusal))
        raise AssertionError("a follower ends only by being closed")


def _is_synthetic(part: object) -> bool:
    return isinstance(part, TextPart) and bool(part.synthetic)


def _starts_subagent(part: object) -> TypeGuard[ToolPart]:
    return (
        isinstance(part, ToolPart) and part.tool == "task" and not part.state.input.get("task_id")
    )
