"""The context of a running call: how a tool asks for permission, reports progress,
and starts subagents.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from codeloop.agent.calls.call_rules import make_call_rules
from codeloop.agent.engine import Engine
from codeloop.permission.gate import CallRules
from codeloop.permission.rules import find_tool_denial, judge_patterns, list_denied_patterns
from codeloop.schema.api.agents import Agent
from codeloop.schema.event import make_part_updated
from codeloop.schema.limits import PROGRESS_INTERVAL
from codeloop.schema.part import ToolPart, ToolStateRunning
from codeloop.schema.permission import Action, Need, PermissionRule, QuestionTool, Trait
from codeloop.schema.wire import JSON, replace
from codeloop.tool.call_session import CallSession
from codeloop.tool.services import ToolServices
from codeloop.tool.tool import Subtask, SubtaskResult
from codeloop.workspace.snapshot.step_recorder import Recorder


class FirstQuestion(Struct):
    """The first permission question of a call.

    `is_waiting`: it waits for the answer, so nothing has been done yet; None: it has not asked.
    `repeat_need`: the need of a call that repeats earlier ones,
    asked together with the first of its own needs.
    """

    is_waiting: bool | None = None
    repeat_need: Need | None = None


class CachedRules:
    """The rules for a call, cached from the store until it asks."""

    def __init__(self, engine: Engine, session_id: str, agent: Agent) -> None:
        self._read_rules = partial(make_call_rules, engine, session_id, agent)
        self._rules: CallRules | None = None

    @property
    def current(self) -> CallRules:
        """The cached rules; they are read if none are cached."""
        return self._rules or self.renew()

    def renew(self) -> CallRules:
        """Read the rules again, and cache them."""
        self._rules = self._read_rules()
        return self._rules

    def forget(self) -> None:
        """Drop the cached rules: the next access reads them again."""
        self._rules = None


class CallContext:
    """The ToolContext of one call. `recorder`: records what it is about to change;
    None: that is not recorded.
    """

    def __init__(
        self, engine: Engine, agent: Agent, part: ToolPart, recorder: Recorder | None = None
    ) -> None:
        self.session_id = part.session_id
        self.message_id = part.message_id
        self.call_id = part.call_id
        self.workspace = engine.workspace
        call = QuestionTool(message_id=part.message_id, call_id=part.call_id)
        self.session = CallSession(
            engine.store,
            part.session_id,
            call,
            self._judge,
            engine.hooks,
            self._list_denials,
            self._find_tool_denial,
        )
        self.session.is_attended = engine.turn_settings.is_attended
        self._engine = engine
        self._rules = CachedRules(engine, part.session_id, agent)
        self._part = part
        self._recorder = recorder
        if recorder is not None:
            self.session.is_kept = recorder.keeps
        self._timer: asyncio.TimerHandle | None = None
        self._has_unsent_report = False
        self.first_question = FirstQuestion()

    @property
    def services(self) -> ToolServices:
        """The services that the tools of the project share."""
        return self._engine.services

    async def ask(self, *needs: Need) -> bool:
        """Wait until all needs are allowed, with one question for all of them.
        Raises Denied, Rejected.

        Returns whether a user was asked: then the files behind the needs may
        have changed meanwhile.
        """
        if (repeat_need := self.first_question.repeat_need) is not None:
            # It comes first and shows what the call would do: one question covers all needs.
            metadata = needs[0].metadata if needs else {}
            details = {key: metadata[key] for key in ("command", "diff") if key in metadata}
            needs = (replace(repeat_need, metadata={**details, **repeat_need.metadata}), *needs)
            self.first_question.repeat_need = None
        # The user may have changed the rules since the step began.
        self._engine.refresh()
        for need in needs:
            # Raises ToolFailure here, so that no user is asked about an unknown agent.
            if need.permission == "task":
                self._engine.get_subagent(need.patterns[0])
        rules = self._rules.renew()
        tool = QuestionTool(message_id=self.message_id, call_id=self.call_id)
        # Only the first one: before a later question, the call may have done something.
        self.first_question.is_waiting = self.first_question.is_waiting is None
        decide = self._engine.hooks.permission_verdict
        was_asked = await self._engine.gate.authorize(needs, self.session_id, tool, rules, decide)
        if was_asked or decide is not None:
            # The answer may have taken days, and the rules may have changed meanwhile.
            self._rules.forget()
        self.first_question.is_waiting = False
        # A need that names no files may write any: what it changes must not be reported
        # as changed by others.
        if any(need.writes is not None and need.writes.files is None for need in needs):
            self.workspace.read_log.begin_own_change(self.session_id)
            self._record_references()
        for need in needs:
            if self._recorder is not None and need.writes is not None:
                await self._recorder.record_before(
                    need.writes.files, include_ignored=need.writes.ignored
                )
        return was_asked

    def _record_references(self) -> None:
        """Record the repository's references before the turn's first command:
        its end tells what moved.
        """
        if self.session_id not in self.services.ref_states:
            # Imported late: many turns run no command.
            from codeloop.workspace.git.ref_state import read_ref_state

            self.services.ref_states[self.session_id] = read_ref_state(self.workspace.root)

    def _judge(self, permission: str, patterns: Sequence[str]) -> dict[str, Action]:
        """Return the action of the rules on each pattern, judged alone;
        allowed patterns are left out.
        """
        rules = self._rules.current
        barred: dict[str, Action] = {
            each: "deny"
            for each in patterns
            if rules.find_barrier(Need(permission=permission, patterns=(each,)))
        }
        return judge_patterns(permission, patterns, rules.lists) | barred

    def _list_denials(self, permission: str) -> tuple[str, ...]:
        """Return the patterns of the rules that deny particular needs of a permission."""
        return list_denied_patterns(permission, self._rules.current.lists)

    def _find_tool_denial(self, tool: str, traits: Sequence[Trait]) -> PermissionRule | None:
        """Return the rule that denies a tool by its name; None: there is none."""
        return find_tool_denial(tool, self._rules.current.lists, traits)

    def report(self, *, title: str | None = None, metadata: JSON | None = None) -> None:
        """Show progress to every client, once in PROGRESS_INTERVAL: of the reports in
        between only the last one.
        """
        state = self._part.state
        if not isinstance(state, ToolStateRunning):
            return
        all_metadata = {**(state.metadata or {}), **(metadata or {})}
        self._part = replace(
            self._part, state=replace(state, title=title or state.title, metadata=all_metadata)
        )
        self._has_unsent_report = True
        # While the timer runs, `_show` sends the newest report when it fires.
        if self._timer is None:
            self._show()

    async def spawn(self, task: Subtask) -> SubtaskResult:
        """Run a subagent in a session of its own; wait for it unless it works in the background."""

        def report(metadata: JSON) -> None:
            self.report(title=task.description, metadata=metadata)

        return await self._engine.spawn(self._engine, self._part, task, report)

    def replace_arguments(self, arguments: JSON) -> None:
        """Use the arguments that an extension put in place of the model's, if they differ."""
        state = self._part.state
        if isinstance(state, ToolStateRunning) and state.input != arguments:
            self._part = replace(self._part, state=replace(state, input=arguments))
            self._engine.store.append(make_part_updated(self._part))

    @property
    def part(self) -> ToolPart:
        """The call's part with the last report."""
        return self._part

    def close(self) -> None:
        """End the call: nothing more is reported, and files that change from now
        on are changed by others.
        """
        self.workspace.read_log.end_own_change(self.session_id)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._has_unsent_report = False

    def _show(self) -> None:
        """Send the newest report, if it was not sent yet, and start the timer for the next one."""
        self._timer = None
        if not self._has_unsent_report:
            return
        self._has_unsent_report = False
        self._engine.store.publish_live(make_part_updated(self._part))
        self._timer = asyncio.get_running_loop().call_later(PROGRESS_INTERVAL.seconds, self._show)
