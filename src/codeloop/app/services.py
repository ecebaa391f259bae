"""The services of an open project: all but its store, its work tree and its turns."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.agent.engine import Engine, model_ref
from codeloop.app.models.open_models import Source
from codeloop.app.runs import Runs
from codeloop.app.settings import ProjectSettings
from codeloop.model.providers import Providers
from codeloop.schema.agent import Agent
from codeloop.schema.live_events import LiveEvent
from codeloop.tool.services import FanOutLimit, ToolServices
from codeloop.tool.tool import Tool
from codeloop.tool.toolbox import ServerTools
from codeloop.workspace.workspace import RunningService, Workspace

if TYPE_CHECKING:
    from codeloop.agent.goal.goal_rounds import GoalRounds
    from codeloop.agent.request.shared_budget import SharedBudget
    from codeloop.app.models.own_sign_in import OwnSignIns
    from codeloop.app.models.provider_list import ProviderList
    from codeloop.app.models.sign_in import PluginSignIns
    from codeloop.extend.client_tools import ClientTools
    from codeloop.extend.hooks.hooks import Handler
    from codeloop.extend.host.hosts import ExtensionHosts
    from codeloop.extend.mcp.cache.table import McpTable
    from codeloop.lsp.server_pool import ServerPool
    from codeloop.tool.edit_finisher import EditFinisher
    from codeloop.workspace.watch.project_watch import ProjectWatch

R = TypeVar("R", bound=RunningService)


class OpenProject(Protocol):
    """The part of `app.project.Project`, which imports this module, that its services and extensions use."""

    @property
    def settings(self) -> ProjectSettings:
        """What it was opened with."""
        ...

    @property
    def providers(self) -> Providers:
        """The provider table."""
        ...

    @property
    def models(self) -> Source:
        """Where its models come from."""
        ...

    @property
    def renew(self) -> Callable[[], Awaitable[None]] | None:
        """Has it opened again; None: nobody would."""
        ...

    @property
    def engine(self) -> Engine:
        """What its turns run on."""
        ...

    @property
    def runs(self) -> Runs:
        """Its turns."""
        ...

    @property
    def services(self) -> "Services":
        """Its services."""
        ...

    def publish_live(self, event: LiveEvent) -> None:
        """Show followers a live event."""
        ...

    def warn(self, message: str) -> None:
        """Show a warning."""
        ...

    def look_at_branch(self) -> None:
        """Report to followers if a different branch is checked out."""
        ...

    def offer(self, servers: ServerTools) -> None:
        """Offer these tools of servers."""
        ...

    def extend(self, tools: tuple[Tool, ...]) -> None:
        """Offer these tools of extensions."""
        ...

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run background work, at most until it is closed."""
        ...


class OfferedTools(Struct):
    """What a project's servers and extensions offer now."""

    servers: ServerTools = ServerTools()
    extensions: tuple[Tool, ...] = ()


class HeldWarnings(Struct):
    """Warnings of a project that was just opened, so that nobody follows it yet."""

    messages: list[str] = []
    is_over: bool = False


class ExtensionState(Struct):
    """The extensions of a project. `hosts`: the processes that run them, None where there are no extensions.

    `rows`: the handlers of the configuration's `hooks`. `replaced_tools`: the built-in tools that extensions replace.
    `asks_config`: whether extensions are still to be asked for their changes to the configuration.
    """

    hosts: "ExtensionHosts | None" = None
    rows: "tuple[Handler, ...]" = ()
    replaced_tools: set[str] = struct_field(default_factory=set[str])
    asks_config: bool = True


class Services(ToolServices):
    """The services of an open project. A costly one is imported and made at its first use; `close` ends them all.

    `goals`: each session's latest goal in this process, by session. `tree_budgets`: the budget of a session with its
    subagents, by the topmost session. `begun_sessions`: the sessions that had a turn; None: nobody has asked yet.
    """

    def __init__(self, project: OpenProject, workspace: Workspace, agents: Mapping[str, Agent]) -> None:
        config = project.settings.config.subagents

        def model_of(name: str) -> str | None:
            agent = agents.get(name)
            return model_ref(agent.model) if agent is not None and agent.model is not None else config.model

        startup = project.settings.startup
        super().__init__(startup.save_buffer, startup.run_in_editor, FanOutLimit(config.ask, model_of))
        self.offered = OfferedTools()
        self.warnings = HeldWarnings()
        self.extensions = ExtensionState()
        self.mcp: McpTable | None = None
        """The table of MCP servers; None: none is configured, and none was added."""
        self.goals: dict[str, GoalRounds] = {}
        self.tree_budgets: dict[str, SharedBudget] = {}
        self.begun_sessions: dict[str, None] | None = None
        self._project = project
        self._workspace = workspace
        self._running: list[RunningService] = []

    @cached_property
    def languages(self) -> "ServerPool | None":
        """The language servers of the project; none is started by that."""
        from codeloop.app.language.servers import make_languages

        return self.keep(make_languages(self._project.settings, self._workspace, self._project.publish_live))

    @property
    def running_languages(self) -> "ServerPool | None":
        """The language servers, once something has needed them."""
        return self.languages if "languages" in vars(self) else None

    @cached_property
    def edit_finisher(self) -> "EditFinisher | None":
        """What follows edits in the project."""
        from codeloop.app.language.after_edit import make_edit_finisher

        return make_edit_finisher(self._project.settings, self._workspace, self)

    @cached_property
    def watch(self) -> "ProjectWatch":
        """What reports changed files to followers; off at first."""
        from codeloop.workspace.watch.project_watch import ProjectWatch

        project = self._project
        ignored = project.settings.config.watcher.ignore
        return self.keep(ProjectWatch(self._workspace, ignored, project.publish_live, project.look_at_branch))

    @cached_property
    def client_tools(self) -> "ClientTools":
        """The tools that clients offer to sessions."""
        from codeloop.extend.client_tools import ClientTools

        engine, store = self._project.engine, self._project.engine.store
        tools = ClientTools(
            store.publish_live, lambda session, message: store.read_context(session).find_agent(message)
        )
        self._project.runs.toolbox_of = lambda session_id: tools.toolbox_of(session_id, engine.toolbox)
        return self.keep(tools)

    @cached_property
    def provider_list(self) -> "ProviderList":
        """The providers and models for clients."""
        from codeloop.app.models.provider_list import ProviderList

        return ProviderList(self._project.providers, self._project.models)

    @cached_property
    def plugin_sign_ins(self) -> "PluginSignIns":
        """The sign-ins of plugins, as far as those have been loaded."""
        from codeloop.app.models.sign_in import PluginSignIns

        return PluginSignIns(self._project.providers, self._project.models)

    @cached_property
    def own_sign_ins(self) -> "OwnSignIns":
        """The sign-ins without a plugin."""
        from codeloop.app.models.own_sign_in import OwnSignIns

        return OwnSignIns(self._project.providers, self._project.settings, self._project.renew)

    def open_mcp(self) -> "McpTable":
        """Return the table of MCP servers, which is made where there was none."""
        if self.mcp is None:
            from codeloop.app.extended.mcp import make_table

            project = self._project
            self.mcp = self.keep(make_table(project.settings, self._workspace, project.publish_live, project.offer))
        return self.mcp

    def keep(self, service: R) -> R:
        """End a service with the project."""
        self._running.append(service)
        return service

    @property
    def is_busy(self) -> bool:
        """Whether something other than a turn runs here."""
        return any(service.is_busy for service in self._running)

    async def close(self) -> None:
        """End what runs here."""
        for service in self._running:
            await service.close()
