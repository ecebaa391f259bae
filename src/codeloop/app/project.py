"""An open project: the configuration, store, engine and turns of one directory.
Everything else works on it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

from codeloop.agent.calls.call_rules import ProjectRules
from codeloop.agent.engine import Engine, TurnSettings
from codeloop.agent.turn_hooks import NO_HOOKS
from codeloop.app.models.open_models import (
    ModelSource,
    find_newest_model,
    make_providers,
    open_model_source,
    refresh_catalog_later,
)
from codeloop.app.runs import Runs
from codeloop.app.services import Services, make_budget
from codeloop.app.settings import (
    ProjectSettings,
    SettingsWatch,
    Startup,
    find_settings,
    settle_place,
)
from codeloop.app.toolbox import make_project_toolbox
from codeloop.config.instructions import TurnInstructions
from codeloop.config.project_root import record_root
from codeloop.extend.rulebook import Rulebook
from codeloop.model.providers import Providers
from codeloop.permission.gate import Gate
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import SCRATCH_DELAY
from codeloop.schema.live_events import Branch, BranchUpdated, LiveEvent, Toast, ToastShown
from codeloop.schema.part import ToolPart
from codeloop.schema.wire import JSON
from codeloop.store.store import SharedStores, Store
from codeloop.tool.search_providers import SEARCH_KEY_VARIABLES
from codeloop.tool.tool import Subtask, SubtaskResult, Tool
from codeloop.tool.toolbox import ServerTools
from codeloop.workspace.files.temp_files import remove_leftovers
from codeloop.workspace.git.head import Head
from codeloop.workspace.snapshot.snapshots import Snapshots
from codeloop.workspace.tool_bounds import make_tool_bounds
from codeloop.workspace.workspace import Workspace

_LOG = logging.getLogger("codeloop.app")
Reload = Callable[[], Awaitable[None]]
"""Has the project opened again at the next request, with its new configuration."""


async def open_project(
    startup_or_settings: Startup | ProjectSettings,
    models: ModelSource | None = None,
    *,
    stores: SharedStores | None = None,
    reload: Reload | None = None,
) -> "Project":
    """Open the project of a directory; with ProjectSettings, the configuration is not read again.

    `models` replaces the provider table. `stores`: the stores of the process,
    if it opens several projects.
    `reload` is called to have the project opened again after its configuration was changed.
    Raises CodeloopError: bad configuration, or a data directory that can't be written.
    """
    settings = startup_or_settings
    if isinstance(settings, Startup):
        settings = find_settings(settings)
    providers = make_providers(settings)
    models = models or open_model_source(settings, providers)
    stores = stores or SharedStores()
    store = stores.open(settings.home / "codeloop.db")
    with ExitStack() as on_failure:
        on_failure.callback(stores.release, store)
        record_root(settings.home, settings.project_root)
        place = settle_place(settings, store)
        on_failure.callback(place.release)
        project = Project(
            settings,
            store,
            providers,
            models,
            reload,
            lambda: (place.release(), stores.release(store)),
        )
        on_failure.pop_all()
    for notice in place.notices:
        project.warn(notice)
    # Processes note their temporary files there; those of killed ones are removed.
    for folder in (project.workspace.write_records_folder, project.snapshots.records_folder):
        remove_leftovers(folder)
    project.run_in_background(_prune_scratch(project.workspace.scratch))
    if settings.extensions:
        from codeloop.app.extensions.start_extensions import start_extensions

        start_extensions(project)
    if (hooks := project.engine.hooks.runner) is not None and hooks.has_handler("notification"):
        from codeloop.extend.hooks.directory_events import send_notifications

        project.run_in_background(
            send_notifications(hooks, project.store, settings.project_root.directory)
        )
    return project


async def _run_subagent(
    engine: Engine, call: ToolPart, task: Subtask, report: Callable[[JSON], None]
) -> SubtaskResult:
    """Run a subagent. The modules for that are imported with the first one."""
    from codeloop.agent.subagent.spawn import run_subagent

    return await run_subagent(engine, call, task, report)


async def _prune_scratch(scratch: Path) -> None:
    """Remove old tool outputs, and old or large files of sandboxed commands,
    once the start is over.
    """
    await asyncio.sleep(SCRATCH_DELAY.seconds)
    from codeloop.workspace.files.saved_outputs import prune_all_outputs
    from codeloop.workspace.sandbox.private_folders import prune_private_folders

    await prune_all_outputs(scratch)
    await asyncio.to_thread(prune_private_folders, scratch)


class Project:
    """An open project; see `open_project`. Closing it stops its turns and child processes.

    `release_store`: gives the store back when everything that uses it has ended.
    """

    def __init__(
        self,
        settings: ProjectSettings,
        store: Store,
        providers: Providers,
        models: ModelSource,
        reload: Reload | None = None,
        release_store: Callable[[], object] = lambda: None,
    ) -> None:
        project_root, paths = settings.project_root, settings.paths
        self.settings = settings
        self.providers = providers
        self.models = models
        self.reload = reload
        self.snapshots = Snapshots(
            project_root.root,
            settings.home / "snapshot",
            settings.environment,
            (paths.data, paths.state, paths.cache),
        )
        self.engine = self._make_engine(store)
        self.workspace.rules = ProjectRules(self.engine, settings.config.default_agent or "build")
        self._head = Head(project_root.root)
        self.runs = Runs(self.engine, self.report_branch_change)
        self._settings_watch = SettingsWatch(settings)
        self._running_requests = 0
        # The stack closes the last entry first: turns end before what they use,
        # and the store last of all.
        self._exit_stack = AsyncExitStack()
        self._exit_stack.callback(release_store)
        for close in (
            self.snapshots.close,
            self.workspace.close,
            self.services.close,
            self.engine.supervisor.close,
            self.runs.close,
        ):
            self._exit_stack.push_async_callback(close)

    def _make_engine(self, store: Store) -> Engine:
        """Make the engine, and `services`, which its tools and hooks need."""
        settings, project_root = self.settings, self.settings.project_root
        scratch = project_root.get_scratch_folder(settings.home)
        # Programs that the agent runs get no key of a provider or of a search service.
        variables = self.providers.make_child_environment()
        # Test runners print less where they know that an agent reads it: vitest a
        # tenth of a run that passes.
        environment = {"AI_AGENT": "codeloop"} | {
            name: value for name, value in variables.items() if name not in SEARCH_KEY_VARIABLES
        }
        if settings.config.shell:
            environment["SHELL"] = settings.config.shell
        rulebook = Rulebook(settings.loaded, scratch, settings.skills.readable)
        agents = rulebook.build_agents(partial(find_newest_model, settings, self.providers))
        workspace = Workspace(
            project_root.root,
            project_root.directory,
            scratch,
            environment,
            settings.config.sandbox,
            settings.paths.private_folders,
            self.warn,
        )
        workspace.bounds = make_tool_bounds(settings.config.tool_output, settings.config.commands)
        self.services = Services(self, workspace, agents)
        servers = None
        if settings.config.mcp:
            from codeloop.app.extensions.mcp import make_server_tools

            servers = self.services.offered_tools.servers = make_server_tools(
                settings, self.services.open_mcp_table()
            )
        hooks = NO_HOOKS
        if settings.config.hooks or settings.extensions:
            from codeloop.app.extensions.hooks import make_hooks

            hooks = make_hooks(self, store, workspace)
        return Engine(
            store=store,
            workspace=workspace,
            gate=Gate(store),
            toolbox=make_project_toolbox(settings, agents, servers),
            models=self.models,
            agents=agents,
            rulebook=rulebook,
            read_instructions=TurnInstructions(
                project_root, settings.paths, settings.config, settings.trusted, self.warn
            ).read,
            spawn=_run_subagent,
            refresh=self.refresh,
            snapshots=self.snapshots if settings.config.snapshot else None,
            turn_settings=TurnSettings(configured_budget=make_budget(settings, store)),
            hooks=hooks,
            services=self.services,
            subagents=settings.config.subagents,
            stop_file=settings.paths.stop_file,
        )

    def offer_server_tools(self, servers: ServerTools) -> None:
        """Replace the tools of MCP servers by these, from the next request on."""
        self.services.offered_tools.servers = servers
        self._rebuild_toolbox()

    def offer_extension_tools(self, tools: tuple[Tool, ...]) -> None:
        """Replace the tools of extensions by these, from the next request on."""
        self.services.offered_tools.extensions = tools
        self._rebuild_toolbox()

    def _rebuild_toolbox(self) -> None:
        offered = self.services.offered_tools
        toolbox = make_project_toolbox(
            self.settings, self.engine.agents, offered.servers, offered.extensions
        )
        self.engine.toolbox.replace_with(toolbox)

    @property
    def store(self) -> Store:
        """The store with its sessions."""
        return self.engine.store

    @property
    def workspace(self) -> Workspace:
        """Its files, and the programs that run on them."""
        return self.engine.workspace

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in the background; it is cancelled when the project is closed."""
        task = asyncio.create_task(work)

        async def stop() -> None:
            task.cancel()
            # Its `finally` blocks may still use the store, which is closed after this.
            await asyncio.wait([task])

        self._exit_stack.push_async_callback(stop)

    def refresh_catalog(self) -> None:
        """Update the catalog of models in the background,
        if the process still runs after CATALOG_DELAY.
        """
        self.run_in_background(refresh_catalog_later(self.settings))

    @property
    def is_busy(self) -> bool:
        """Whether anything runs: a request, a turn, a subagent, a background shell, a terminal,
        a service.
        """
        turns = self.runs.is_any_running or self.engine.supervisor.is_any_running
        return bool(
            self._running_requests or turns or self.workspace.is_busy or self.services.is_busy
        )

    async def rest(self) -> None:
        """End the processes that an idle project keeps for its next command or call,
        which starts them again.
        """
        if self.services.mcp is not None:
            await self.services.mcp.rest()
        await self.workspace.rest()

    def refresh(self) -> bool:
        """Check for a changed configuration; return whether the project must be opened again.

        Changed permission rules apply at once, even to a running turn; everything else when the
        project is opened again. If a file can't be used, everything stays as it is,
        and followers get an error message.
        """
        try:
            changed_settings = self._settings_watch.read_changes()
        except CodeloopError as error:
            self.notify(
                f"The configuration has changed and can't be used, so the one before holds: {error}",
                "error",
            )
            return self._settings_watch.is_outdated
        if changed_settings is not None:
            # Imported late: few configurations change while their project is open.
            from codeloop.app.changed_settings import apply_changes

            apply_changes(self, changed_settings)
        return self._settings_watch.is_outdated

    def notify(self, message: str, variant: Literal["info", "error"] = "info") -> None:
        """Write a message to the log, and show it to all followers."""
        level = logging.ERROR if variant == "error" else logging.INFO
        _LOG.log(level, "%s: %s", self.settings.project_root.directory, message)
        self.publish_live(ToastShown(properties=Toast(message=message, variant=variant)))

    def warn(self, message: str) -> None:
        """Write a warning to the log, and show it to all followers.

        It is held back until the first `wait_for_extensions`,
        as for a prompt: nobody follows the project before.
        """
        # As information: a warning would be printed on stderr as well.
        _LOG.info("%s: %s", self.settings.project_root.directory, message)
        held_warnings = self.services.warnings
        if message not in held_warnings.messages:
            held_warnings.messages.append(message)
        if held_warnings.is_released:
            self.show_warnings()

    def show_warnings(self) -> None:
        """Show the warnings that were held back; later ones are shown at once."""
        held_warnings = self.services.warnings
        held_warnings.is_released = True
        while held_warnings.messages:
            self.publish_live(
                ToastShown(
                    properties=Toast(message=held_warnings.messages.pop(0), variant="warning")
                )
            )

    async def wait_for_extensions(self) -> None:
        """Wait until extensions have started and reported their tools and hooks;
        show the warnings held back so far.

        Before that, see whether this machine has a full sandbox.
        """
        await _examine_sandbox(self)
        hosts = self.services.extensions.hosts
        if hosts is not None:
            await hosts.wait_for_offers()
        self.show_warnings()

    def watch_files(self, *, on: bool) -> None:
        """Start or stop reporting changed files of the work tree to followers."""
        self.services.watch.switch(on=on)

    def report_branch_change(self) -> None:
        """Report to followers if another branch is checked out than at the last call."""
        if self._head.refresh():
            self.publish_live(BranchUpdated(properties=Branch(branch=self._head.branch)))

    @contextmanager
    def track_request(self) -> Generator[None]:
        """Count the project as busy while a request is answered."""
        self._running_requests += 1
        try:
            yield
        finally:
            self._running_requests -= 1

    def publish_live(self, event: LiveEvent) -> None:
        """Publish a live event of this directory to followers; it is not stored."""
        self.store.publish_live(event, self.settings.project_root.directory_name)

    async def close(self) -> None:
        """Stop every turn and child process, and close the store."""
        await self._exit_stack.aclose()


async def _examine_sandbox(project: Project) -> None:
    """Where something hints at a weak sandbox, see what it can't do;
    warn the user, and note it for the model.
    """
    workspace = project.workspace
    if workspace.sandbox_note is not None or workspace.sandbox.mode == "off":
        return
    from codeloop.workspace.sandbox.machine_hints import may_lack_sandbox

    if not may_lack_sandbox():
        workspace.sandbox_note = ""
        return
    from codeloop.workspace.process.work_tree_policies import examine_sandbox

    if notice := await examine_sandbox(workspace):
        project.warn(notice)
