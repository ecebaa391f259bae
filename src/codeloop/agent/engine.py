"""The engine: the record of everything that a step needs (store, tools, models, rules, hooks),
with its agents.

Made by `app/project.py`, passed to every function of the loop.
Turns with other settings get a changed copy.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.agent.request.shared_budget import SharedBudget
from codeloop.agent.subagent.supervisor import Supervisor
from codeloop.agent.turn_hooks import NO_HOOKS, TurnHooks
from codeloop.extend.rulebook import Rulebook
from codeloop.model.chat import ChatModel
from codeloop.permission.gate import Gate
from codeloop.schema.api.agents import Agent
from codeloop.schema.config import SubagentsConfig
from codeloop.schema.errors import OperationError
from codeloop.schema.part import ToolPart
from codeloop.schema.wire import JSON
from codeloop.store.store import Store
from codeloop.tool.services import ToolServices
from codeloop.tool.tool import Subtask, SubtaskResult, ToolFailure
from codeloop.tool.toolbox import Toolbox
from codeloop.workspace.snapshot.snapshots import Snapshots
from codeloop.workspace.workspace import Workspace

if TYPE_CHECKING:
    from codeloop.agent.request.configured_budget import ConfiguredBudget


class Models(Protocol):
    """The source of models. Methods raise CodeloopError, with what to do,
    when a model is unavailable.
    """

    def open(self, ref: str) -> ChatModel:
        """Return the model `provider/model`, ready to stream."""
        ...

    def find_small_model(self, ref: str) -> str | None:
        """Return the small model that goes with `ref`, for titles, if there is one."""
        ...

    def find_cheapest_model(self, ref: str) -> str | None:
        """Return the cheapest model of the provider of `ref`;
        None while answers are recorded, or played back.
        """
        ...

    def resolve_variant(self, ref: str, name: str) -> str | None:
        """Return the variant to store when `name` is chosen; None: the service's default.
        Raises for an unknown one.
        """
        ...


class TurnSettings(Struct, frozen=True):
    """What a turn may use (requests, dollars, tokens), and how its requests are made."""

    max_steps: int | None = None
    max_cost: float | None = None
    """In dollars, with the cost of its subagents. None, here and above and below: unlimited."""
    max_tokens: int | None = None
    cost_before: float = 0.0
    """The session's cost when the turn began, with its subagents'."""
    tokens_before: int = 0
    """The session's tokens when the turn began, with its subagents'."""
    configured_budget: "ConfiguredBudget | None" = None
    """The budgets of the configuration; None: it has none."""
    shared_budget: SharedBudget | None = None
    """The budget shared with other sessions, or of the session with its subagents;
    None: unlimited.
    """
    wants_hour_cache: bool = False
    """Whether services that can should cache requests for an hour."""
    compact_at_tokens: int | None = None
    """Tokens that a request may hold before the conversation is compacted; None: unknown."""
    can_compact: bool = True
    """Whether the conversation is compacted without being asked for it."""
    fallback_models: tuple[str, ...] = ()
    """Models (`provider/model`) that take over when a service fails, in this order."""
    is_attended: bool = True
    """Whether a user is there who can answer the model's questions."""
    directories: tuple[str, ...] = ()
    """Further directories that tools may use without a question;
    those of an editor's workspace, for example.
    """

    @property
    def is_spending_limited(self) -> bool:
        """Whether a turn may spend only so many dollars or tokens of its own,
        or of a budget shared with others.
        """
        return not (self.max_cost is self.max_tokens is self.shared_budget is None)


class Spawn(Protocol):
    """Runs a subagent for a call and, unless it works in the background,
    waits for its last text.
    """

    async def __call__(
        self, engine: "Engine", call: ToolPart, task: Subtask, report: Callable[[JSON], None]
    ) -> SubtaskResult:
        """Return the child session's id and its last text;
        `report` gets the id as soon as the session exists.

        Raises ToolFailure when the subagent can't be started.
        """
        ...


class Engine(Struct, frozen=True):
    """The parts of one project that a turn runs on."""

    store: Store
    workspace: Workspace
    gate: Gate
    toolbox: Toolbox
    models: Models
    agents: dict[str, Agent]
    rulebook: Rulebook
    read_instructions: Callable[[], tuple[tuple[Path, str], ...]]
    """Returns path and text of AGENTS.md and the like."""
    spawn: Spawn
    """Runs subagents: injected, since it needs the loop, which imports the calls."""
    refresh: Callable[[], object] = lambda: None
    """Reloads changed rules, and with them the content of `agents`,
    before a call is judged by them.
    """
    snapshots: Snapshots | None = None
    turn_settings: TurnSettings = TurnSettings()
    hooks: TurnHooks = NO_HOOKS
    services: ToolServices = struct_field(default_factory=ToolServices)
    stop_file: Path = Path(os.devnull)
    """When it changes, everything that runs should stop."""
    subagents: SubagentsConfig = SubagentsConfig()
    """The configuration of subagents."""
    supervisor: Supervisor = struct_field(default_factory=Supervisor)
    """The running subagents, ended when the project closes."""

    def get_agent(self, name: str) -> Agent:
        """Return an agent. Raises OperationError (NotFoundError), which lists the agents."""
        from codeloop.kit.text.suggest import find_similar, format_suggestion

        agent = self.agents.get(name)
        if agent is None:
            names = sorted(name for name, agent in self.agents.items() if not agent.hidden)
            available = (
                f"{format_suggestion(find_similar(name, names))} Available: {', '.join(names)}"
            )
            reason = f" {self.rulebook.explain_missing(name)}".rstrip()
            raise OperationError("NotFoundError", f"Agent not found: {name}.{reason}{available}")
        return agent

    def get_subagent(self, name: str) -> Agent:
        """Return an agent that can run as a subagent.
        Raises ToolFailure with the available names.
        """
        agent = self.agents.get(name)
        if agent is None or agent.mode == "primary":
            names = ", ".join(
                sorted(a.name for a in self.agents.values() if a.mode != "primary" and not a.hidden)
            )
            raise ToolFailure(f"There is no subagent named {name}. Available: {names or 'none'}.")
        return agent
