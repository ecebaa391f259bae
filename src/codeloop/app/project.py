"""An open project: the configuration, store, tools and turns of one directory."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

from codeloop.agent.engine import NO_HOOKS, Engine, OutputLimits
from codeloop.app.models.open_models import Source, source_of
from codeloop.app.runs import Runs
from codeloop.app.services import Services
from codeloop.app.settings import ProjectSettings, SettingsWatch, Startup, find_settings, newest_model, providers_of
from codeloop.app.toolbox import has_language_server, search_tools, toolbox_of
from codeloop.config.instructions import list_instruction_files
from codeloop.config.project_root import record_root
from codeloop.extend.rulebook import Rulebook
from codeloop.extend.skills import skill_tool
from codeloop.model.catalog.catalog import Catalog
from codeloop.model.providers import Providers
from codeloop.permission.gate import Gate
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CATALOG_DELAY, SCRATCH_DELAY, TOOL_OUTPUT_BYTES, TOOL_OUTPUT_LINES
from codeloop.schema.live_events import Branch, BranchUpdated, LiveEvent, Toast, ToastShown
from codeloop.schema.part import ToolPart
from codeloop.schema.wire import JSON
from codeloop.store.shared_stores import SharedStores
from codeloop.store.store import Store
from codeloop.tool.tool import Subtask, SubtaskResult, Tool
from codeloop.tool.toolbox import ServerTools
from codeloop.tool.web.providers import SEARCH_KEY_VARIABLES
from codeloop.workspace.files.temp_files import remove_leftovers
from codeloop.workspace.git.head import Head
from codeloop.workspace.snapshot.snapshots import Snapshots
from codeloop.workspace.workspace import Workspace

_LOG = logging.getLogger("codeloop.app")
Renew = Callable[[], Awaitable[None]]


async def open_project(
    what: Startup | ProjectSettings,
    models: Source | None = None,
    *,
    stores: SharedStores | None = None,
    renew: Renew | None = None,
) -> "Project":
    """Open a directory's project, from its settings if they were read before.

    `models` replaces the provider table. `stores`: those of the process, when it opens more than one project.
    `renew` has the project opened again when its configuration changes.
    Raises CodeloopError: bad configuration, a data directory that can't be written.
    """
    settings = find_settings(what) if isinstance(what, Startup) else what
    providers = providers_of(settings)
    models = models or source_of(settings, providers)
    stores = stores or SharedStores()
    store = stores.open(settings.home / "codeloop.db")
    with ExitStack() as on_failure:
        on_failure.callback(stores.release, store)
        record_root(settings.home, settings.project_root)
        project = Project(settings, store, providers, models, renew, lambda: stores.release(store))
        on_failure.pop_all()
    for notes in (project.workspace.notes, project.snapshots.undo_folder):
        remove_leftovers(notes)
    project.in_background(_prune_scratch(project.workspace.scratch))
    if settings.extensions:
        from codeloop.app.extended.extensions import begin

        begin(project)
    if (hooks := project.engine.hooks.runner) is not None and hooks.has_handler("notification"):
        from codeloop.extend.hooks.follow import notify

        project.in_background(notify(hooks, project.store, settings.project_root.directory))
    return project


async def _spawn(engine: Engine, call: ToolPart, task: Subtask, report: Callable[[JSON], None]) -> SubtaskResult:
    """Run a subagent; the modules for that are imported with the first."""
    from codeloop.agent.subagent.spawn import run_subagent

    return await run_subagent(engine, call, task, report)


async def _prune_scratch(scratch: Path) -> None:
    """Remove old outputs, and files of sandboxed commands that are old or large, some time after the start."""
    await asyncio.sleep(SCRATCH_DELAY.seconds)
    from codeloop.workspace.files.saved_outputs import prune_outputs_later
    from codeloop.workspace.sandbox.private_folders import prune_private

    await prune_outputs_later(scratch, 0)
    await asyncio.to_thread(prune_private, scratch)


class Project:
    """An open project; see `open_project`. Close it: that stops its turns and child processes."""

    def __init__(
        self,
        settings: ProjectSettings,
        store: Store,
        providers: Providers,
        models: Source,
        renew: Renew | None = None,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        project_root, paths = settings.project_root, settings.paths
        self.settings = settings
        self.providers = providers
        self.models = models
        self.renew = renew
        self.snapshots = Snapshots(
            project_root.root, settings.home / "snapshot", settings.environment, (paths.data, paths.state, paths.cache)
        )
        self.engine = self._make_engine(store)
        self._head = Head(project_root.root)
        self.runs = Runs(self.engine, self.look_at_branch)
        self._watch = SettingsWatch(settings)
        self._requests = 0
        self._closing = AsyncExitStack()
        self._closing.callback(release)
        for close in (
            self.snapshots.close,
            self.workspace.close,
            self.services.close,
            self.engine.tasks.close,
            self.runs.close,
        ):
            self._closing.push_async_callback(close)

    def _make_engine(self, store: Store) -> Engine:
        settings, project_root = self.settings, self.settings.project_root
        scratch = project_root.get_scratch_folder(settings.home)
        environment = {
            name: value
            for name, value in self.providers.make_child_environment().items()
            if name not in SEARCH_KEY_VARIABLES
        }
        if settings.config.shell:
            environment["SHELL"] = settings.config.shell
        rulebook = Rulebook(settings.loaded, scratch, settings.skills.readable)
        agents = rulebook.agents(partial(newest_model, settings, self.providers))
        cut = settings.config.tool_output
        workspace = Workspace(
            project_root.root,
            project_root.directory,
            scratch,
            environment,
            settings.config.sandbox,
            settings.paths.private_folders,
        )
        self.services = Services(self, workspace, agents)
        more, servers = _list_own_tools(settings), None
        if settings.config.mcp:
            from codeloop.app.extended.mcp import find_server_tools

            servers = self.services.offered.servers = find_server_tools(settings, self.services.open_mcp())
            more = (*more, *servers.tools)
        hooks = NO_HOOKS
        if settings.config.hooks or settings.extensions:
            from codeloop.app.extended.hooks import make_hooks

            hooks = make_hooks(self, store, workspace)
        return Engine(
            store=store,
            workspace=workspace,
            gate=Gate(store),
            toolbox=toolbox_of(more, agents, servers, _find_useless_tools(settings)),
            models=self.models,
            agents=agents,
            rulebook=rulebook,
            instructions=partial(_read_instructions, settings),
            spawn=_spawn,
            refresh=self.refresh,
            snapshots=self.snapshots if settings.config.snapshot else None,
            hooks=hooks,
            services=self.services,
            subagents=settings.config.subagents,
            stop_file=settings.paths.stop_file,
            output=OutputLimits(cut.max_lines or TOOL_OUTPUT_LINES.value, cut.max_bytes or TOOL_OUTPUT_BYTES.value),
        )

    def offer(self, servers: ServerTools) -> None:
        """Offer these tools of servers, in place of those before, from the next request on."""
        self.services.offered.servers = servers
        self._renew_toolbox()

    def extend(self, tools: tuple[Tool, ...]) -> None:
        """Offer these tools of extensions, in place of those before, from the next request on."""
        self.services.offered.extensions = tools
        self._renew_toolbox()

    def _renew_toolbox(self) -> None:
        offered_tools = self.services.offered
        tools = (*_list_own_tools(self.settings), *offered_tools.servers.tools, *offered_tools.extensions)
        toolbox = toolbox_of(tools, self.engine.agents, offered_tools.servers, _find_useless_tools(self.settings))
        self.engine.toolbox.replace_with(toolbox)

    @property
    def store(self) -> Store:
        """Where its sessions are."""
        return self.engine.store

    @property
    def workspace(self) -> Workspace:
        """Its files, and the programs that run on them."""
        return self.engine.workspace

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run background work, at most until the project is closed."""
        task = asyncio.create_task(work)

        async def end() -> None:
            task.cancel()
            await asyncio.wait([task])

        self._closing.push_async_callback(end)

    def refresh_catalog(self) -> None:
        """Bring the catalog of models up to date in the background, when the process lives long enough for that."""

        async def refresh() -> None:
            await asyncio.sleep(CATALOG_DELAY.seconds)
            from codeloop.model.catalog.refresh import refresh_catalog_if_due

            await refresh_catalog_if_due(self.settings.paths.cache, self.settings.environment, Catalog())

        self.in_background(refresh())

    @property
    def is_busy(self) -> bool:
        """Whether something goes on here: a request, a turn, a subagent, a background shell, a terminal."""
        turns = self.runs.any_running or self.engine.tasks.is_any_running
        return bool(self._requests or turns or self.workspace.is_busy or self.services.is_busy)

    def refresh(self) -> bool:
        """Check for a changed configuration; return whether this project must be reopened.

        Rules count at once, also for a turn that runs; everything else when the project is opened again. With a file
        that can't be used, everything stays as it is, and followers are told what is wrong with it.
        """
        try:
            project_settings = self._watch.look()
        except CodeloopError as error:
            self._notify(f"The configuration has changed and can't be used, so the one before holds: {error}", "error")
            return self._watch.is_outdated
        if project_settings is not None:
            self.engine.rulebook.take(project_settings.loaded)
            self.engine.agents.clear()
            newest = partial(newest_model, self.settings, self.providers)
            self.engine.agents.update(self.engine.rulebook.agents(newest))
            self._notify(_describe_change(project_settings))
        return self._watch.is_outdated

    def _notify(self, message: str, variant: Literal["info", "error"] = "info") -> None:
        """Write a message to the log, and show it to everybody who follows."""
        level = logging.ERROR if variant == "error" else logging.INFO
        _LOG.log(level, "%s: %s", self.settings.project_root.directory, message)
        self.publish_live(ToastShown(properties=Toast(message=message, variant=variant)))

    def warn(self, message: str) -> None:
        """Write a warning to the log, and show it to everybody who follows: from the first prompt on somebody does."""
        # As information: a warning would be printed on stderr as well.
        _LOG.info("%s: %s", self.settings.project_root.directory, message)
        held_warnings = self.services.warnings
        if message not in held_warnings.messages:
            held_warnings.messages.append(message)
        if held_warnings.is_over:
            self.show_warnings()

    def show_warnings(self) -> None:
        """Show the warnings that were held back, and those to come at once."""
        held_warnings = self.services.warnings
        held_warnings.is_over = True
        while held_warnings.messages:
            self.publish_live(ToastShown(properties=Toast(message=held_warnings.messages.pop(0), variant="warning")))

    def watch(self, *, on: bool) -> None:
        """Start or stop reporting changes in the work tree to followers."""
        self.services.watch.switch(on=on)

    def look_at_branch(self) -> None:
        """Report to followers if a different branch is checked out than at the last look."""
        if self._head.refresh():
            self.publish_live(BranchUpdated(properties=Branch(branch=self._head.branch)))

    @contextmanager
    def serving(self) -> Generator[None]:
        """Count as busy while a request is answered."""
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1

    def publish_live(self, event: LiveEvent) -> None:
        """Show followers a live event of this directory."""
        self.store.publish_live(event, str(self.settings.project_root.directory))

    async def close(self) -> None:
        """Stop every turn and child process, and close the store."""
        await self._closing.aclose()


def _describe_change(project_settings: ProjectSettings) -> str:
    """Describe a changed configuration for followers."""
    if project_settings.distrust is not None:
        return f"{project_settings.distrust}: its configuration can only tighten yours until you run `codeloop trust`."
    return "The configuration has changed: rules hold from the next call on, the rest from the next turn."


def _find_useless_tools(settings: ProjectSettings) -> frozenset[str]:
    """Return the names of built-in tools that are of no use here: `lsp` where no language server runs."""
    return frozenset() if has_language_server(settings) else frozenset({"lsp"})


def _list_own_tools(settings: ProjectSettings) -> tuple[Tool, ...]:
    """Return the tools that depend on the configuration: skills, when there are any, and searches."""
    skills = settings.skills
    searches = search_tools(settings.config.search, settings.environment)
    return (*((skill_tool(skills),) if skills.found else ()), *searches)


def _read_instructions(settings: ProjectSettings) -> tuple[tuple[Path, str], ...]:
    instructions = list_instruction_files(
        settings.project_root, settings.paths, settings.config, trusted=settings.trusted
    )
    return tuple((each.path, each.text) for each in instructions)
