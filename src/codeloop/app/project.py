"""One directory that is worked in: its configuration, store, tools and turns, put together."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.agent.engine import Engine, OutputLimits
from codeloop.agent.subagent.spawn import spawn
from codeloop.app.open_models import OpenModels, Source, replayed
from codeloop.app.provider_list import Listing
from codeloop.app.runs import Runs
from codeloop.app.setting_files import SettingFiles, looked_at
from codeloop.app.toolbox import toolbox_of
from codeloop.config.instructions import instruction_files
from codeloop.config.layers import Layer, candidates
from codeloop.config.load import Loaded, load
from codeloop.config.paths import Paths, find_paths
from codeloop.config.project_root import ProjectRoot, find_project_root, record_root
from codeloop.config.trust.store import is_trusted
from codeloop.config.written import written
from codeloop.extend.agents import agents_of
from codeloop.extend.folders import entries_of, find_homes
from codeloop.extend.markdown import find_pages
from codeloop.extend.skills import Skills, find_skills, skill_tool
from codeloop.model.catalog.catalog import Catalog
from codeloop.model.catalog.refresh import refresh_in_background
from codeloop.model.credentials.store import Credentials
from codeloop.model.providers import Providers
from codeloop.model.testing.script import Places
from codeloop.permission.defaults import base_rules
from codeloop.permission.gate import Gate
from codeloop.schema.config import Config
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import TOOL_OUTPUT_BYTES, TOOL_OUTPUT_LINES
from codeloop.schema.live_events import Branch, BranchUpdated, LiveEvent, Toast, ToastShown
from codeloop.schema.wire import JSON, replace
from codeloop.store.stores import Stores
from codeloop.tool.tool import Tool
from codeloop.tool.web.search import SEARCH_KEYS, search_tools
from codeloop.workspace.files.scratch import prune_in_background
from codeloop.workspace.files.temp_files import clear
from codeloop.workspace.git.head import Head
from codeloop.workspace.snapshot.snapshots import Snapshots
from codeloop.workspace.terminal.terminals import Terminals
from codeloop.workspace.workspace import Workspace

_LOG = logging.getLogger("codeloop.app")


class Startup(Struct, frozen=True, kw_only=True):
    """What a process was started with. `trust`: treat the directory as trusted this once."""

    directory: Path
    environment: Mapping[str, str] = struct_field(default_factory=lambda: dict(os.environ))
    config_file: Path | None = None
    settings: JSON = struct_field(default_factory=dict[str, object])
    """Configuration from the command line."""
    trust: bool = False
    record: Path | None = None
    replay: Path | None = None
    pace: float = 0.0
    """How quickly a recording is played: 1 as it was recorded, 0 without pauses."""


class Setting(Struct, frozen=True):
    """Where a process stands: paths, place, configuration and skills, before anything is opened."""

    paths: Paths
    place: ProjectRoot
    loaded: Loaded
    trusted: bool
    skills: Skills = struct_field(default_factory=Skills)
    files: SettingFiles = SettingFiles()
    """What it was read from."""

    @property
    def config(self) -> Config:
        """The merged configuration."""
        return self.loaded.config


def find_setting(startup: Startup, more: tuple[Layer, ...] = ()) -> Setting:
    """Read the configuration for a directory, with `more` layers as if they were files of it.

    Raises CodeloopError naming file, line and column.
    """
    paths = find_paths(startup.environment)
    place = find_project_root(startup.directory, paths, startup.environment)
    trusted = startup.trust or is_trusted(paths, place.root)
    homes = find_homes(place, paths)
    sources = candidates(place, paths, config_file=startup.config_file, environment=startup.environment)
    files = looked_at((*sources, paths.trust, *(path for home in homes for path in entries_of(home))))
    further = find_pages(place, homes, trusted=trusted)
    loaded = load(
        place,
        paths,
        config_file=startup.config_file,
        environment=startup.environment,
        command_line=startup.settings,
        trusted=trusted,
        further=replace(further, layers=(*further.layers, *more)),
    )
    skills = find_skills(place, loaded.config, paths, homes, trusted=trusted)
    loaded = replace(loaded, warnings=(*loaded.warnings, *skills.warnings))
    return Setting(paths, place, loaded, trusted, skills, files)


def providers_of(setting: Setting, environment: Mapping[str, str]) -> Providers:
    """Return the provider table of a setting."""
    return Providers(
        setting.config,
        Catalog(setting.paths.cache),
        Credentials(setting.paths.credentials),
        environment,
        written=partial(written, setting.loaded),
    )


def source_of(startup: Startup, providers: Providers, place: ProjectRoot) -> Source:
    """Return the models of a place: those of the provider table, or a recording. Raises CodeloopError."""
    places = Places(str(place.directory), str(place.root))
    if startup.replay is not None:
        return replayed(startup.replay, places, startup.pace)
    return OpenModels(providers, places, startup.record)


class Project:
    """An open project. Close it: that stops its turns and child processes."""

    def __init__(
        self,
        startup: Startup,
        models: Source | None = None,
        *,
        setting: Setting | None = None,
        stores: Stores | None = None,
    ) -> None:
        """Open the directory's project, inside a running event loop; `models` stands in for the provider table.

        `setting`: when it was found before. `stores`: those of the process, when it opens more than one project.
        Raises CodeloopError: bad configuration, a data directory that can't be written.
        """
        self.startup = startup
        self.renewal: Callable[[], Awaitable[None]] | None = None
        """Has the configuration read anew with the next request; whoever opens projects by directory sets it."""
        self.setting = setting or find_setting(startup)
        self._stores = stores or Stores()
        self.environment = startup.environment
        self._requests = 0
        self._background: set[asyncio.Task[None]] = set()
        place = self.setting.place
        self.providers = providers = providers_of(self.setting, startup.environment)
        home = self.setting.paths.project(place.project_id)
        self.store = self._stores.open(home / "codeloop.db")
        record_root(home, place)
        scratch = home / "tool-output"
        environment = {name: value for name, value in providers.child_environment().items() if name not in SEARCH_KEYS}
        if self.setting.config.shell:
            environment["SHELL"] = self.setting.config.shell
        self.workspace = Workspace(place.root, place.directory, scratch, environment)
        self.models = models = models or source_of(startup, providers, place)
        self.listing = Listing(providers, models)
        self._files = self.setting.files
        self._newest = self.setting
        self._is_outdated = False
        self._rules = rules = base_rules(scratch, *self.setting.skills.readable)
        agents = agents_of(self.setting.config, rules)
        cut = self.setting.config.tool_output
        own = (self.setting.paths.data, self.setting.paths.state, self.setting.paths.cache)
        self.snapshots = Snapshots(place.root, home / "snapshot", startup.environment, own)
        self.engine = Engine(
            store=self.store,
            workspace=self.workspace,
            gate=Gate(self.store),
            toolbox=toolbox_of(self._tools(), agents),
            models=models,
            agents=agents,
            rules=rules,
            instructions=self._instructions,
            spawn=spawn,
            refresh=self.refresh,
            snapshots=self.snapshots if self.setting.config.snapshot else None,
            output=OutputLimits(cut.max_lines or TOOL_OUTPUT_LINES.value, cut.max_bytes or TOOL_OUTPUT_BYTES.value),
        )
        self._head = Head(place.root)
        self.runs = Runs(self.engine, self._look_at_branch)
        self.terminals = Terminals()
        clear(self.workspace.notes)
        self._background.add(asyncio.create_task(prune_in_background(scratch)))

    def refresh_catalog(self) -> None:
        """Bring the catalog of models up to date in the background, when the process lives long enough for that."""
        cache, environment = self.setting.paths.cache, self.environment
        self._background.add(asyncio.create_task(refresh_in_background(cache, environment, Catalog())))

    @property
    def is_busy(self) -> bool:
        """Return whether something goes on here: a request, a turn, a subagent, a background shell, a terminal."""
        turns = self.runs.any_running or self.engine.tasks.any_running
        return bool(self._requests or turns or self.workspace.shells.jobs.running() or self.terminals.all())

    def refresh(self) -> bool:
        """Look whether the configuration has changed; return whether this project is no longer what it says.

        Rules count at once, also for a turn that runs; everything else when the project is opened again. With a file
        that can't be used, everything stays as it is, and followers are told what is wrong with it.
        """
        files = self._files.changed()
        if files is None:
            return self._is_outdated
        self._files = files
        try:
            found = find_setting(self.startup)
        except CodeloopError as error:
            self._notify(f"The configuration has changed and can't be used, so the one before holds: {error}", "error")
            return self._is_outdated
        self._files = found.files
        if (found.config, found.trusted, found.skills) == (
            self._newest.config,
            self._newest.trusted,
            self._newest.skills,
        ):
            return self._is_outdated
        self._newest, self._is_outdated = found, True
        agents = agents_of(found.config, self._rules)
        self.engine.agents.clear()
        self.engine.agents.update(agents)
        self._notify("The configuration has changed: rules hold from the next call on, the rest from the next turn.")
        return True

    def _notify(self, message: str, variant: Literal["info", "error"] = "info") -> None:
        """Tell the log and everybody who follows."""
        _LOG.log(logging.ERROR if variant == "error" else logging.INFO, "%s: %s", self.setting.place.directory, message)
        self.tell(ToastShown(properties=Toast(message=message, variant=variant)))

    def _look_at_branch(self) -> None:
        if self._head.moved():
            self.tell(BranchUpdated(properties=Branch(branch=self._head.branch)))

    @contextmanager
    def serving(self) -> Generator[None]:
        """Count as busy while a request is answered."""
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1

    def tell(self, event: LiveEvent) -> None:
        """Show followers a live event of this directory."""
        self.store.whisper(event, str(self.setting.place.directory))

    async def close(self) -> None:
        """Stop every turn and child process, and close the store."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self.runs.close()
        await self.engine.tasks.close()
        await self.workspace.shells.close()
        await self.terminals.close()
        await self.snapshots.close()
        self._stores.release(self.store)

    def _tools(self) -> tuple[Tool, ...]:
        """Return the tools that depend on the configuration: skills, when there are any, and searches."""
        skills = self.setting.skills
        searches = search_tools(self.setting.config.search, self.environment)
        return (*((skill_tool(skills),) if skills.found else ()), *searches)

    def _instructions(self) -> tuple[tuple[Path, str], ...]:
        setting = self.setting
        found = instruction_files(setting.place, setting.paths, setting.config, trusted=setting.trusted)
        return tuple((each.path, each.text) for each in found)
