"""One directory that is worked in: its configuration, store, tools and turns, put together."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.agent.engine import Engine, OutputLimits
from codeloop.agent.subagent import spawn
from codeloop.app.listing import Listing
from codeloop.app.models import OpenModels, Source, replayed
from codeloop.app.runs import Runs
from codeloop.app.tools import toolbox_of
from codeloop.config.instructions import instruction_files
from codeloop.config.layers import Layer
from codeloop.config.load import Loaded, load
from codeloop.config.paths import Paths, find_paths
from codeloop.config.project import Place, find_place
from codeloop.config.trust import is_trusted
from codeloop.extend.agents import agents_of
from codeloop.extend.pages import find_pages
from codeloop.extend.skills import Skills, find_skills, skill_tool
from codeloop.extend.sources import find_homes
from codeloop.model.answers import Places
from codeloop.model.catalog import Catalog
from codeloop.model.credentials import Credentials
from codeloop.model.providers import Providers
from codeloop.model.refresh import refresh_in_background
from codeloop.permission.defaults import base_rules
from codeloop.permission.gate import Gate
from codeloop.schema.config import Config
from codeloop.schema.limits import TOOL_OUTPUT_BYTES, TOOL_OUTPUT_LINES
from codeloop.schema.live import Branch, BranchUpdated, LiveEvent
from codeloop.schema.wire import JSON, replace
from codeloop.store.pool import Stores
from codeloop.tool.tool import Tool
from codeloop.tool.web.keys import SEARCH_KEYS
from codeloop.tool.web.search import search_tools
from codeloop.workspace.head import Head
from codeloop.workspace.leftovers import clear
from codeloop.workspace.pty import Terminals
from codeloop.workspace.scratch import prune_in_background
from codeloop.workspace.snapshot import Snapshots
from codeloop.workspace.workspace import Workspace


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
    place: Place
    loaded: Loaded
    trusted: bool
    skills: Skills = struct_field(default_factory=Skills)

    @property
    def config(self) -> Config:
        """The merged configuration."""
        return self.loaded.config


def find_setting(startup: Startup, more: tuple[Layer, ...] = ()) -> Setting:
    """Read the configuration for a directory, with `more` layers as if they were files of it.

    Raises CodeloopError naming file, line and column.
    """
    paths = find_paths(startup.environment)
    place = find_place(startup.directory, paths, startup.environment)
    trusted = startup.trust or is_trusted(paths, place.root)
    homes = find_homes(place, paths)
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
    return Setting(paths, place, loaded, trusted, skills)


def providers_of(setting: Setting, environment: Mapping[str, str]) -> Providers:
    """Give the provider table of a setting."""
    catalog = Catalog(setting.paths.cache)
    return Providers(setting.config, catalog, Credentials(setting.paths.credentials), environment)


def source_of(startup: Startup, providers: Providers, place: Place) -> Source:
    """Give the models of a place: those of the provider table, or a recording. Raises CodeloopError."""
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
        scratch = home / "tool-output"
        environment = {name: value for name, value in providers.child_environment().items() if name not in SEARCH_KEYS}
        if self.setting.config.shell:
            environment["SHELL"] = self.setting.config.shell
        self.workspace = Workspace(place.root, place.directory, scratch, environment)
        self.models = models = models or source_of(startup, providers, place)
        self.listing = Listing(providers, models)
        rules = base_rules(scratch, *self.setting.skills.readable)
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
        """Tell whether something goes on here: a request, a turn, a subagent, a shell in the background, a terminal."""
        turns = self.runs.any_running or self.engine.tasks.any_running
        return bool(self._requests or turns or self.workspace.shells.jobs.running() or self.terminals.all())

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
        """Give the tools that depend on the configuration: skills, when there are any, and searches."""
        skills = self.setting.skills
        searches = search_tools(self.setting.config.search, self.environment)
        return (*((skill_tool(skills),) if skills.found else ()), *searches)

    def _instructions(self) -> tuple[tuple[Path, str], ...]:
        setting = self.setting
        found = instruction_files(setting.place, setting.paths, setting.config, trusted=setting.trusted)
        return tuple((each.path, each.text) for each in found)
