"""The engine: the record of everything that a step needs (store, tools, models, rules, hooks), and its lookups.

Made by `app/project.py`, passed to every function of the loop. Runs with other limits get a changed copy.
"""

import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.agent.request.shared_budget import SharedBudget
from codeloop.agent.subagent.ceilings import DENY_ALL, Ceiling, collect_ceilings
from codeloop.agent.subagent.supervisor import Supervisor
from codeloop.extend.rulebook import Rulebook
from codeloop.kit.suggest import find_similar, format_suggestion
from codeloop.model.chat import ChatModel, ModelInfo, ModelRequest
from codeloop.permission.defaults import make_guard_rules
from codeloop.permission.gate import CallRules, Gate
from codeloop.permission.rules import RuleLayer, RuleLayers
from codeloop.schema.agent import Agent
from codeloop.schema.api.session_requests import BudgetUse
from codeloop.schema.config import SubagentsConfig
from codeloop.schema.errors import OperationError, SessionNotFound
from codeloop.schema.limits import TOOL_OUTPUT_BYTES, TOOL_OUTPUT_LINES
from codeloop.schema.message import AssistantMessage, ModelRef, Session, UserMessage
from codeloop.schema.part import Part, ToolPart
from codeloop.schema.permission import PROFILE_KEY, PROFILES, Action, PermissionRequest, Profile, Ruleset
from codeloop.schema.wire import JSON
from codeloop.store.conversation import Entry
from codeloop.store.store import Store
from codeloop.store.subagent_state import walk_ancestors
from codeloop.tool.call_session import ToolHooks
from codeloop.tool.services import ToolServices
from codeloop.tool.tool import Subtask, SubtaskResult, ToolFailure
from codeloop.tool.toolbox import Toolbox
from codeloop.workspace.snapshot.snapshots import Snapshots
from codeloop.workspace.workspace import Workspace


class Models(Protocol):
    """The source of models. Methods raise CodeloopError, with what to do, when a model is unavailable."""

    def open(self, ref: str) -> ChatModel:
        """Return the model `provider/model`, ready to stream."""
        ...

    def small_model(self, ref: str) -> str | None:
        """Return the small model that goes with `ref`, for titles, if there is one."""
        ...

    def cheapest(self, ref: str) -> str | None:
        """Return the cheapest model of the provider of `ref`, else `ref`; None where background requests are off."""
        ...

    def variant(self, ref: str, name: str) -> str | None:
        """Return the variant to store for the chosen one, or None. Raises also for an unknown one."""
        ...


class Policy(Struct, frozen=True):
    """The limits of one run: requests, dollars and tokens.

    `cost_before`, `tokens_before`: the session's sums when the run began; they include its subagents'.
    """

    steps: int | None = None
    cost: float | None = None
    cost_before: float = 0.0
    spending: BudgetUse | None = None
    """The configured budget with the least left when the run began, without this run's costs."""
    tokens: int | None = None
    tokens_before: int = 0
    budget: SharedBudget | None = None
    """The budget shared with other sessions, or of the session with its subagents; None: unlimited."""
    keep_hour: bool = False
    """Whether services that can should cache requests for an hour."""
    room: int | None = None
    """Tokens that a request may hold before the conversation is compacted; None: unknown."""
    compact: bool = True
    fallback: tuple[str, ...] = ()
    """Fallback models (`provider/model`), tried in order when a service fails."""
    attended: bool = True
    """Whether a user is there who can answer the model's questions."""


class OutputLimits(Struct, frozen=True):
    """The limits at which a tool's output is cut."""

    lines: int = TOOL_OUTPUT_LINES.value
    bytes: int = TOOL_OUTPUT_BYTES.value


class Spawn(Protocol):
    """Runs a subagent for a call and waits for its last text."""

    async def __call__(
        self, engine: "Engine", call: ToolPart, task: Subtask, report: Callable[[JSON], None]
    ) -> SubtaskResult:
        """Return the child session's id and its last text; `report` gets the id as soon as the session exists.

        Raises ToolFailure when the subagent can't be started.
        """
        ...


class HasStopReason(Protocol):
    """A type with a reason, as the end of a turn has: `agent.moves.Stop`, which imports this module, is one."""

    @property
    def reason(self) -> str:
        """The reason why it ended; "done": the model had nothing more to do."""
        ...


T = TypeVar("T", bound=HasStopReason)


class TurnHooks(ToolHooks):
    """The null object of a project's hooks: no extension is asked, and everything stays as it is.

    With extensions it is an `agent.hooks.extension_hooks.ExtensionHooks`, whose methods raise HookRefused when one of
    them refuses what is about to happen.
    """

    @property
    def permission_verdict(self) -> Callable[[PermissionRequest], Awaitable[Action]] | None:
        """Decides a permission question before the user is asked; None: nobody does."""
        return None

    async def run_turn(self, run: "Callable[[Engine, str], Awaitable[T]]", engine: "Engine", session_id: str) -> T:
        """Run a turn, and continue it when an extension asks for more."""
        return await run(engine, session_id)

    async def change_prompt(
        self, message: UserMessage, parts: Sequence[Part], parent: str | None = None
    ) -> tuple[UserMessage, list[Part]]:
        """Change a prompt before it is stored. `parent`: the session whose call sends it to a subagent."""
        del parent
        return message, list(parts)

    async def change_request(
        self, engine: "Engine", user: UserMessage, info: ModelInfo, request: ModelRequest
    ) -> ModelRequest:
        """Return a step's request; `user` is the prompt that it answers."""
        del engine, user, info
        return request

    async def complete_texts(self, engine: "Engine", info: AssistantMessage) -> None:
        """Store each text of an answer with the extensions' changes."""

    async def change_title_request(
        self, engine: "Engine", session_id: str, info: ModelInfo, request: ModelRequest, prompt: str, max_chars: int
    ) -> ModelRequest:
        """Return the request for a title, which holds at most `max_chars` characters of `prompt`."""
        del engine, session_id, info, prompt, max_chars
        return request

    async def change_history(self, session_id: str, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        """Change the messages that a compaction summarises."""
        del session_id
        return entries

    async def change_summary_request(
        self, user: UserMessage, info: ModelInfo, request: ModelRequest, *, auto: bool
    ) -> ModelRequest:
        """Return the request for the summary of a compaction."""
        del user, info, auto
        return request

    async def texts_after_summary(self, user: UserMessage, info: ModelInfo, *, overflow: bool) -> list[str] | None:
        """Return the texts to add after a summary; None: the turn ends there."""
        del user, info, overflow
        return []


NO_HOOKS = TurnHooks()


class Engine(Struct, frozen=True):
    """The parts of one project that a turn runs on. `instructions`: returns path and text of AGENTS.md and the like."""

    store: Store
    workspace: Workspace
    gate: Gate
    toolbox: Toolbox
    models: Models
    agents: dict[str, Agent]
    rulebook: Rulebook
    instructions: Callable[[], tuple[tuple[Path, str], ...]]
    spawn: Spawn
    """Runs subagents: injected, since it needs the loop, which imports the calls."""
    refresh: Callable[[], object] = lambda: None
    """Reloads changed rules, before a call is judged by them."""
    snapshots: Snapshots | None = None
    policy: Policy = Policy()
    output: OutputLimits = OutputLimits()
    hooks: TurnHooks = NO_HOOKS
    services: ToolServices = struct_field(default_factory=ToolServices)
    subagents: SubagentsConfig = SubagentsConfig()
    stop_file: Path = Path(os.devnull)
    """When it changes, everything that runs should stop."""
    tasks: Supervisor = struct_field(default_factory=Supervisor)
    """The running subagents, ended when the project closes."""

    def get_agent(self, name: str) -> Agent:
        """Return an agent. Raises OperationError (NotFoundError), which lists the agents."""
        agent = self.agents.get(name)
        if agent is None:
            names = sorted(name for name, agent in self.agents.items() if not agent.hidden)
            available = f"{format_suggestion(find_similar(name, names))} Available: {', '.join(names)}"
            raise OperationError("NotFoundError", f"Agent not found: {name}.{available}")
        return agent

    def get_subagent(self, name: str) -> Agent:
        """Return an agent that can run as a subagent. Raises ToolFailure with the available names."""
        agent = self.agents.get(name)
        if agent is None or agent.mode == "primary":
            names = ", ".join(sorted(a.name for a in self.agents.values() if a.mode != "primary" and not a.hidden))
            raise ToolFailure(f"There is no subagent named {name}. Available: {names or 'none'}.")
        return agent

    def list_ceilings(self, session_id: str) -> tuple[Ceiling, ...]:
        """Return the ceilings of a session: those stored with it, and its parents with theirs."""
        return tuple(collect_ceilings(tuple(walk_ancestors(self.store, session_id)), self._find_profile))

    def find_profile(self, session_id: str) -> Profile:
        """Return the profile of a session: its own, a parent's, or the configured one."""
        return self._find_profile(walk_ancestors(self.store, session_id))

    def _find_profile(self, lineage: Iterable[Session]) -> Profile:
        """Return the profile of the first session with one in `lineage`: a session, then its parents, nearest first."""
        for session in lineage:
            profile = (session.metadata or {}).get(PROFILE_KEY)
            if profile is not None and profile in PROFILES:
                return profile
        return self.rulebook.profile

    def make_call_rules(self, session_id: str, agent: Agent) -> CallRules:
        """Make the rules that decide a call of a session, with the further lists that it must pass.

        The lists are the firm rules of the profile and the agent, the guards that no blanket permission covers, and
        the rules of its parents, so that a child is never allowed more than they are.
        The agent's rules are the current ones, even if they changed during the step. Raises SessionNotFound.
        """
        lineage = tuple(walk_ancestors(self.store, session_id))
        if not lineage:
            raise SessionNotFound(session_id)
        profile = self._find_profile(lineage)
        lists = self._make_lists(_make_session_layer(lineage[0]), agent, profile)
        ceilings = tuple(collect_ceilings(lineage, self._find_profile))
        for ceiling in ceilings:
            lists += self._make_ceiling_lists(ceiling, profile)
        rule_layers = tuple(layers for layers in lists if any(layer.rules for layer in layers))
        # The profile `yolo` answers every question, but a child of a stricter session still asks.
        approves_questions = profile == "yolo" and all(each.profile in {None, "yolo"} for each in ceilings)
        return CallRules(rule_layers, approves_questions=approves_questions)

    def _make_ceiling_lists(self, ceiling: Ceiling, profile: Profile) -> list[RuleLayers]:
        """Return the lists of a ceiling. An agent that no longer exists allows nothing."""
        profile = ceiling.profile or profile
        ceiling_layer = RuleLayer(f"above, agent {ceiling.agent or 'none'}", ceiling.permission)
        if ceiling.agent is None:
            return [(*self.rulebook.layers("", profile), ceiling_layer)]
        agent = self.agents.get(ceiling.agent)
        if agent is None:
            return [(RuleLayer(f"agent {ceiling.agent}, which does not exist", DENY_ALL.permission),)]
        return self._make_lists(ceiling_layer, agent, profile)

    def _make_lists(self, session: RuleLayer, agent: Agent, profile: Profile) -> list[RuleLayers]:
        """Return the lists that a call must pass: the agent's and session's rules, the guards, the firm rules."""
        rule_layers = self._make_layers(session, agent, profile)
        # A profile's rules can't lift a guard; those of the user, the agent and the session can.
        guards = RuleLayer("built-in", make_guard_rules(*(layer.rules for layer in rule_layers[1:])))
        return [rule_layers, (guards,), *self.rulebook.ceilings(agent.name, profile)]

    def _make_layers(self, session: RuleLayer, agent: Agent, profile: Profile) -> RuleLayers:
        rule_layers = self.rulebook.layers(agent.name, profile)
        # The configuration names no such agent (any more): the rules that it came with apply.
        if agent.name not in self.agents:
            rule_layers = (rule_layers[0], RuleLayer(f"agent {agent.name}", tuple(agent.permission)))
        return (*rule_layers, session)

    def list_rulesets(self, session_id: str, agent: Agent) -> tuple[tuple[Ruleset, ...], ...]:
        """Return the lists of `make_call_rules`, each as its rulesets."""
        return tuple(tuple(layer.rules for layer in layers) for layers in self.make_call_rules(session_id, agent).lists)


def _make_session_layer(session: Session) -> RuleLayer:
    return RuleLayer(f"session {session.id}", tuple(session.permission or ()))


def model_ref(model: ModelRef) -> str:
    """Format a model as `provider/model`."""
    return f"{model.provider_id}/{model.model_id}"
