"""A run's cache of request parts, so that each request is the previous one with additions."""

from itertools import chain, takewhile
from operator import is_

from codeloop.agent.answer.usage import TokenEstimate
from codeloop.agent.engine import Engine
from codeloop.agent.request.image_limits import find_rejected_images, has_images, limit_images
from codeloop.agent.request.projection import UsedIds, make_model_messages
from codeloop.agent.request.system_prompt import (
    TOOLS_NOT_FOR_SMALL_MODELS,
    is_small,
    make_system_prompt,
)
from codeloop.agent.request.window import DROP_CHECK_STEPS, Window, find_last_summary, make_window
from codeloop.model.chat import ModelInfo, ModelMessage, ToolSpec
from codeloop.schema.api.agents import Agent
from codeloop.schema.message import Session
from codeloop.schema.part import ToolPart
from codeloop.schema.permission import Ruleset
from codeloop.schema.wire import replace
from codeloop.store.conversation import Conversation, Entry
from codeloop.tool.superseded_outputs import SupersededOutputs
from codeloop.tool.toolbox import Toolbox

_NO_TOOLS = frozenset[str]()
_BACKGROUND_TOOLS = frozenset({"bash_output"})


class RequestCache:
    """Caches system prompts, tools and messages of the last request;
    only changes are computed again.
    """

    def __init__(self) -> None:
        self._systems: dict[tuple[str, str], str] = {}
        self._tools_key: tuple[object, ...] = ()
        self._tool_specs: tuple[ToolSpec, ...] = ()
        self._has_background_work: bool | None = None
        """Whether the session has started anything in the background; None: not looked up yet."""
        self._info: ModelInfo | None = None
        self._entries: tuple[Entry, ...] = ()
        self._window = Window()
        self._visible_entries: tuple[Entry, ...] = ()
        self._messages: list[tuple[ModelMessage, ...]] = []
        self._used_ids: UsedIds = {}
        self._id_counts: list[int] = []
        """For each visible entry, the number of ids that the entries before it use."""
        self._has_images = False
        self._rejected_images: frozenset[str] = frozenset()
        """The ids of the messages whose images a service refused."""
        self._superseded = SupersededOutputs()
        self.token_estimate = TokenEstimate()
        """Estimates the tokens of the requests."""
        self.takes_format = True
        """Whether no service of the run has refused a response format: set and read by
        StructuredStep alone, kept here because it must outlive a step.
        """

    def get_system_prompt(
        self, engine: Engine, session: Session, agent: Agent, info: ModelInfo
    ) -> str:
        """Return the system prompt, built once for each agent and model of the run."""
        key = (agent.name, info.ref)
        if key not in self._systems:
            self._systems[key] = make_system_prompt(engine, session, agent, info)
        return self._systems[key]

    def get_tools(
        self,
        toolbox: Toolbox,
        info: ModelInfo,
        rulesets: tuple[Ruleset, ...],
        further_lists: tuple[tuple[Ruleset, ...], ...],
        needed: frozenset[str] = frozenset(),
    ) -> tuple[ToolSpec, ...]:
        """Return the tools offered under the rules; `further_lists`: other lists of
        rules that a call must pass.

        `needed`: as of `Toolbox.list_specs`.
        """
        if not info.tool_call:
            return ()
        key = (info, toolbox.tools, rulesets, further_lists, needed)
        if self._tools_key != key:
            self._tools_key = key
            tool_specs = toolbox.list_specs(info.id, *rulesets, needed=needed)
            if is_small(info):
                tool_specs = tuple(
                    spec for spec in tool_specs if spec.name not in TOOLS_NOT_FOR_SMALL_MODELS
                )
            names_by_list = [
                {spec.name for spec in toolbox.list_specs(info.id, *rules)}
                for rules in further_lists
            ]
            allowed = tuple(
                spec for spec in tool_specs if all(spec.name in names for names in names_by_list)
            )
            self._tool_specs = toolbox.fit_specs(allowed, info.limits.context)
        return self._tool_specs

    def find_needed_tools(self, engine: Engine, session_id: str) -> frozenset[str]:
        """Return the tools that the session needs by now: that for background work,
        once there has been any.
        """
        if not self._has_background_work:
            is_first_look = self._has_background_work is None
            self._has_background_work = _has_background_work(
                engine, session_id, reads_stored=is_first_look
            )
        return _BACKGROUND_TOOLS if self._has_background_work else _NO_TOOLS

    def select_outputs_to_drop(
        self, conversation: Conversation, info: ModelInfo, now: int
    ) -> list[ToolPart]:
        """Return the tool parts whose outputs requests omit from now on;
        `now` is set as their time of compaction.
        """
        # One entry is the prompt, so the turn has fewer steps than a check waits for: its
        # module is not even imported.
        if len(conversation.entries) <= DROP_CHECK_STEPS:
            return []
        from codeloop.agent.request.dropped_outputs import select_outputs_to_drop

        return select_outputs_to_drop(conversation, self._superseded.notes, info.prices, now)

    def get_messages(
        self, conversation: Conversation, info: ModelInfo, now: int
    ) -> tuple[ModelMessage, ...]:
        """Return the messages of a conversation, the same objects as before for the entries
        that are still the same.

        `now`: when the step that asks for them was created (ms since the epoch).
        """
        common = _count_common_entries(self._entries, conversation.entries)
        # Only a new summary, or a change of the entries around the last one, moves the window.
        if (
            find_last_summary(conversation.entries, common) is not None
            or (self._window.summary_index or -1) >= common
        ):
            self._window = make_window(conversation.entries)
        entries = self._window.select(conversation.entries)
        unchanged_count = (
            _count_common_entries(self._visible_entries, entries) if info is self._info else 0
        )
        start = self._window.start
        # A newly dropped output changes an old message: all messages are made again.
        if self._superseded.update(conversation.entries[start:], common - start, now):
            unchanged_count = 0
        if not unchanged_count:
            self._rejected_images = find_rejected_images(entries)
        text_only_info = replace(info, input=frozenset({"text"}))
        rejected, notes = self._rejected_images, self._superseded.notes
        while (
            self._id_counts[unchanged_count:]
            and len(self._used_ids) > self._id_counts[unchanged_count]
        ):
            self._used_ids.popitem()
        del self._id_counts[unchanged_count:]
        new: list[tuple[ModelMessage, ...]] = []
        for entry in entries[unchanged_count:]:
            self._id_counts.append(len(self._used_ids))
            entry_info = text_only_info if entry.info.id in rejected else info
            new.append(make_model_messages(entry, entry_info, notes, self._used_ids))
        self._messages[unchanged_count:] = new
        self._has_images = self._has_images or has_images(chain.from_iterable(new))
        self._info, self._entries, self._visible_entries = info, conversation.entries, entries
        messages = (*self._window.head, *chain.from_iterable(self._messages))
        return limit_images(messages) if self._has_images else messages


def _has_background_work(engine: Engine, session_id: str, *, reads_stored: bool) -> bool:
    """Return whether a command or subagent was started in the background by a session,
    or a command by its subagents.

    `reads_stored`: also find those that an earlier process started.
    """
    if session_id in engine.supervisor.background_parents:
        return True
    jobs = engine.workspace.shells.jobs.list_jobs() if engine.workspace.has_jobs else ()
    if any(
        ancestor.id == session_id
        for job in jobs
        for ancestor in engine.store.walk_ancestors(job.session)
    ):
        return True
    if not reads_stored or not (children := engine.store.list_sessions(parent=session_id)):
        return False
    from codeloop.store.subagents import read_subagent_state

    states = (read_subagent_state(engine.store, child) for child in children)
    return any(state is not None and state.background for state in states)


def _count_common_entries(before: tuple[Entry, ...], now: tuple[Entry, ...]) -> int:
    """Return how many entries at the start of two conversations are the same."""
    # Usually only the last entries have changed, so the longest common starts are tried first.
    for count in range(len(before), max(len(before) - 4, 0), -1):
        if before[:count] == now[:count]:
            return count
    shorter_length = min(len(before), len(now))
    # The same for a conversation that became shorter.
    # Comparing tuples is fast: equal objects are identical.
    for count in range(shorter_length, max(shorter_length - 4, 0), -1):
        if before[:count] == now[:count]:
            return count
    return sum(1 for _ in takewhile(bool, map(is_, before, now)))
