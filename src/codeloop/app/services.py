"""The services of an open project, made when first needed: language servers, MCP servers,
sign-ins, budgets and others.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.agent.engine import Engine
from codeloop.app.models.open_models import ModelSource
from codeloop.app.runs import Runs
from codeloop.app.settings import ProjectSettings
from codeloop.model.providers import Providers
from codeloop.schema.api.agents import Agent
from codeloop.schema.config import SpendingConfig
from codeloop.schema.live_events import LiveEvent
from codeloop.schema.message import format_model_ref
from codeloop.store.store import Store
from codeloop.tool.services import FanOutLimit, ToolServices
from codeloop.tool.tool import Tool
from codeloop.tool.toolbox import ServerTools
from codeloop.workspace.workspace import RunningService, Workspace

if TYPE_CHECKING:
    from codeloop.agent.goal.goal_rounds import GoalRounds
    from codeloop.agent.request.configured_budget import ConfiguredBudget
    from codeloop.agent.request.shared_budget import SharedBudget
    from codeloop.app.models.builtin_sign_in import BuiltinSignIns
    from codeloop.app.models.plugin_sign_in import PluginSignIns
    from codeloop.app.models.provider_list import ProviderList
    from codeloop.extend.client_tools import ClientTools
    from codeloop.extend.hooks.hooks import HookHandler
    from codeloop.extend.host.hosts import ExtensionHosts
    from codeloop.extend.mcp.cache.table import McpTable
    from codeloop.lsp.server_pool import ServerPool
    from codeloop.tool.files.edit_finisher import EditFinisher
    from codeloop.workspace.process.background_jobs import Jobs
    from codeloop.workspace.watch.project_watch import ProjectWatch

ServiceT = TypeVar("ServiceT", bound=RunningService)


class OpenProject(Protocol):
    """The part of `app.project.Project` that its services and extensions use.

    They can't import the class itself, since its module imports them.
    """

    @property
    def settings(self) -> ProjectSettings:
        """The settings that it was opened with."""
        ...

    @property
    def providers(self) -> Providers:
        """The provider table."""
        ...

    @property
    def models(self) -> ModelSource:
        """The source of its models."""
        ...

    @property
    def reload(self) -> Callable[[], Awaitable[None]] | None:
        """Has the project opened again; None: it is opened only once."""
        ...

    @property
    def engine(self) -> Engine:
        """The engine of its turns."""
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
        """Publish a live event to followers."""
        ...

    def notify(self, message: str) -> None:
        """Write a message to the log, and show it to followers."""
        ...

    def warn(self, message: str) -> None:
        """Show a warning to followers, and write it to the log."""
        ...

    def report_branch_change(self) -> None:
        """Report to followers if another branch is checked out."""
        ...

    def offer_server_tools(self, servers: ServerTools) -> None:
        """Replace the tools of MCP servers."""
        ...

    def offer_extension_tools(self, tools: tuple[Tool, ...]) -> None:
        """Replace the tools of extensions."""
        ...

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in the background, at most until the project is closed."""
        ...


class OfferedTools(Struct):
    """The tools that MCP servers and extensions of a project offer now."""

    servers: ServerTools = ServerTools()
    extensions: tuple[Tool, ...] = ()


class HeldWarnings(Struct):
    """Warnings that are held back, since nobody follows a project that was just opened."""

    messages: list[str] = []
    is_released: bool = False
    """Whether warnings are shown at once from now on."""


class ExtensionState(Struct):
    """The extensions of a project. `hosts`: the processes that run them,
    None where there are no extensions.

    `configured_handlers`: the handlers of the configuration's `hooks`. `replaced_tools`: the
    built-in tools that extensions replace. `has_asked_about_config`: whether they have been asked
    for their changes to the configuration.
    """

    hosts: "ExtensionHosts | None" = None
    configured_handlers: "tuple[HookHandler, ...]" = ()
    replaced_tools: set[str] = struct_field(default_factory=set[str])
    has_asked_about_config: bool = False


def make_budget(settings: ProjectSettings, store: Store) -> "ConfiguredBudget | None":
    """Return the budgets of the configuration; None: it has none."""
    budget = settings.config.budget
    if budget == SpendingConfig():
        return None
    # Imported late: most configurations have no budget.
    from codeloop.agent.request.configured_budget import ConfiguredBudget

    return ConfiguredBudget(
        budget, settings.paths, store.path, settings.project_root.directory_filter
    )


def _takes_long(line: str) -> bool:
    # Imported late: few commands reach their timeout.
    from codeloop.agent.checks.long_commands import takes_long

    return takes_long(line)


class Services(ToolServices):
    """The services of an open project. A costly one is imported and made at its first use;
    `close` ends them all.

    `goals`: each session's latest goal in this process, by session. `tree_budgets`: the budget of a
    session with its subagents, by the topmost session. `begun_sessions`: the sessions that had a
    prompt, as keys, in the order of their first ones; None: hooks have not needed them yet.
    """

    def __init__(
        self, project: OpenProject, workspace: Workspace, agents: Mapping[str, Agent]
    ) -> None:
        config = project.settings.config.subagents

        def find_model(agent_name: str) -> str | None:
            agent = agents.get(agent_name)
            return (
                format_model_ref(agent.model)
                if agent is not None and agent.model is not None
                else config.model
            )

        startup = project.settings.startup
        super().__init__(
            startup.save_buffer, startup.run_in_editor, FanOutLimit(config.ask, find_model)
        )
        self.takes_long = _takes_long
        self.expand_prompt = self._expand_prompt
        self.offered_tools = OfferedTools()
        self.warnings = HeldWarnings()
        self.extensions = ExtensionState()
        self.mcp: McpTable | None = None
        """The table of MCP servers; None: none is configured, and none was added."""
        self.goals: dict[str, GoalRounds] = {}
        self.tree_budgets: dict[str, SharedBudget] = {}
        self.begun_sessions: dict[str, None] | None = None
        self._project = project
        self._workspace = workspace
        self._closables: list[RunningService] = []
        workspace.follow_jobs = self._follow_jobs

    def _expand_prompt(self, prompt: str) -> str:
        if not prompt.lstrip().startswith("/"):
            return prompt
        # Imported late: few prompts of subagents call a command.
        from codeloop.app.subagent_prompts import expand_subagent_prompt

        return expand_subagent_prompt(self._project.settings, prompt)

    def _follow_jobs(self, jobs: "Jobs") -> None:
        """Have what happens to background commands shown, stored, and told to the model."""
        # Imported late: few processes run commands in the background.
        from codeloop.app.job_followers import follow_jobs

        follow_jobs(self._project.engine, self._project.runs, jobs, self._project.notify)

    @cached_property
    def languages(self) -> "ServerPool | None":
        """The language servers of the project. Each is started when a file needs it."""
        from codeloop.app.language.servers import make_languages

        return self.close_with_project(
            make_languages(self._project.settings, self._workspace, self._project.publish_live)
        )

    @property
    def running_languages(self) -> "ServerPool | None":
        """The language servers; None if nothing has needed them yet."""
        # A cached property is stored in the instance at its first use;
        # asking for it would make the servers.
        return self.languages if "languages" in vars(self) else None

    @cached_property
    def edit_finisher(self) -> "EditFinisher | None":
        """The formatters and diagnostics that run after each edit."""
        from codeloop.app.language.edit_finisher import make_edit_finisher

        return make_edit_finisher(self._project.settings, self._workspace, self)

    @cached_property
    def watch(self) -> "ProjectWatch":
        """The watch that reports changed files to followers; it is off at first."""
        from codeloop.workspace.watch.project_watch import ProjectWatch

        project = self._project
        ignored = project.settings.config.watcher.ignore
        return self.close_with_project(
            ProjectWatch(
                self._workspace, ignored, project.publish_live, project.report_branch_change
            )
        )

    @cached_property
    def client_tools(self) -> "ClientTools":
        """The tools that clients offer to sessions."""
        from codeloop.extend.client_tools import ClientTools

        engine, store = self._project.engine, self._project.engine.store
        tools = ClientTools(
            store.publish_live,
            lambda session, message: store.read_context(session).find_agent(message),
        )
        self._project.runs.choose_toolbox = lambda session_id: tools.build_toolbox(
            session_id, engine.toolbox
        )
        return self.close_with_project(tools)

    @cached_property
    def provider_list(self) -> "ProviderList":
        """The list of providers and models that clients get."""
        from codeloop.app.models.provider_list import ProviderList

        return ProviderList(self._project.providers, self._project.models)

    @cached_property
    def plugin_sign_ins(self) -> "PluginSignIns":
        """The sign-ins of those plugins that have been loaded."""
        from codeloop.app.models.plugin_sign_in import PluginSignIns

        return PluginSignIns(self._project.providers, self._project.models)

    @cached_property
    def builtin_sign_ins(self) -> "BuiltinSignIns":
        """The sign-ins that need no plugin."""
        from codeloop.app.models.builtin_sign_in import BuiltinSignIns

        return BuiltinSignIns(self._project.providers, self._project.settings, self._project.reload)

    def open_mcp_table(self) -> "McpTable":
        """Return the table of MCP servers; make one if there is none."""
        if self.mcp is None:
            from codeloop.app.extensions.mcp import make_mcp_table

            project = self._project
            self.mcp = self.close_with_project(
                make_mcp_table(
                    project.settings,
                    self._workspace,
                    project.publish_live,
                    project.offer_server_tools,
                )
            )
        return self.mcp

    def close_with_project(self, service: ServiceT) -> ServiceT:
        """Have a service closed when the project is closed; return the service."""
        self._closables.append(service)
        return service

    @property
    def is_busy(self) -> bool:
        """Whether one of the services is at work."""
        return any(service.is_busy for service in self._closables)

    async def close(self) -> None:
        """Close the services that were made."""
        for service in self._closables:
            await service.close()
