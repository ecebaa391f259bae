"""The settings of a project: the process's start parameters, and the merged configuration."""

import os
from collections.abc import Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.agent.request.shared_budget import SharedBudgets
from codeloop.config.load import LoadedConfig, load_config
from codeloop.config.paths import Paths, find_paths
from codeloop.config.project_root import ProjectRoot, find_project_root
from codeloop.config.sources import Layer, list_config_paths
from codeloop.config.trust.state import TrustState, find_trust_state
from codeloop.extend.folders import Home, entries_of, find_homes, find_installed_plugins
from codeloop.extend.pages.markdown import find_pages
from codeloop.extend.skills import Skills, find_skills
from codeloop.kit.small_files import FileState, read_file_state
from codeloop.model.catalog.catalog import Catalog
from codeloop.model.credentials.store import Credentials
from codeloop.model.providers import Providers
from codeloop.schema.api.editor import RunInEditor
from codeloop.schema.config import Config
from codeloop.schema.errors import CodeloopError
from codeloop.schema.message import ModelRef
from codeloop.schema.wire import JSON, replace
from codeloop.tool.services import SaveBuffer


class Startup(Struct, frozen=True, kw_only=True):
    """The start parameters of a process. `trust`: treat the directory as trusted this once."""

    directory: Path
    environment: Mapping[str, str] = struct_field(default_factory=lambda: dict(os.environ))
    config_file: Path | None = None
    settings: JSON = struct_field(default_factory=dict[str, object])
    """Configuration from the command line."""
    trust: bool = False
    record: Path | None = None
    replay: Path | None = None
    pace: float = 0.0
    """How fast a recording is played: 1 as it was recorded, 0 without pauses."""
    budgets: SharedBudgets = struct_field(default_factory=SharedBudgets)
    """The budgets that sessions of this process share."""
    save_buffer: SaveBuffer | None = None
    """Has an editor save what it holds of a file; None: no editor is connected."""
    run_in_editor: RunInEditor | None = None
    """Runs commands that leave the sandbox in an editor's terminal; None: they run as all others."""


class FileStates(Struct, frozen=True):
    """Files and folders, each with the state that it was in when it was looked at."""

    states: dict[Path, FileState] = struct_field(default_factory=dict[Path, FileState])

    def find_changes(self) -> "FileStates | None":
        """Return the files as they are now; None when each is as it was."""
        now = file_states(self.states)
        return None if now == self else now


def file_states(paths: Iterable[Path]) -> FileStates:
    """Look at the files as they are now."""
    return FileStates({path: read_file_state(path) for path in paths})


class ProjectSettings(Struct, frozen=True):
    """Where a project is and how it is configured, before anything is opened. `files`: what was read for that."""

    startup: Startup
    paths: Paths
    project_root: ProjectRoot
    loaded: LoadedConfig
    trusted: bool
    skills: Skills = struct_field(default_factory=Skills)
    files: FileStates = struct_field(default_factory=FileStates)
    distrust: str | None = None
    """Why a project that was trusted is trusted no longer; None: that is not so."""
    extensions: tuple[Any, ...] = ()
    """The `extend.host.extension.Extension`s; what they need is loaded where there are any."""
    answer: Path | None = None
    """The file with the changes that these make to the configuration; None: there are no extensions."""

    @property
    def config(self) -> Config:
        """The merged configuration."""
        return self.loaded.config

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that the process was started with."""
        return self.startup.environment

    @property
    def home(self) -> Path:
        """The project's own folder, with its database."""
        return self.paths.get_project_folder(self.project_root.project_id)

    def is_same(self, other: "ProjectSettings") -> bool:
        """Return whether nothing that counts differs."""
        mine, theirs = ((each.config, each.trusted, each.skills, each.extensions) for each in (self, other))
        return mine == theirs


class SettingsWatch:
    """Notices when the configuration of an open project changes."""

    def __init__(self, settings: ProjectSettings) -> None:
        self.is_outdated = False
        """Whether it has changed since the project was opened."""
        self._newest = settings

    def look(self) -> ProjectSettings | None:
        """Return the settings of now when they differ from those of the last look.

        Raises CodeloopError when a file that has changed can't be used; it is read again when it changes again.
        """
        files = self._newest.files.find_changes()
        if files is None:
            return None
        before = self._newest = replace(self._newest, files=files)
        self._newest = find_settings(before.startup)
        if self._newest.is_same(before):
            return None
        self.is_outdated = True
        return self._newest


def find_settings(startup: Startup, more: tuple[Layer, ...] = ()) -> ProjectSettings:
    """Read the configuration for a directory, with `more` layers as if they were files of it. Blocks.

    The changes that its extensions are known to make are a layer, too. Raises CodeloopError, which names file, line
    and column.
    """
    settings = _find_settings(startup, more)
    if not settings.extensions:
        return settings
    from codeloop.extend.hooks.config_changes import load_answer

    names = [f"{each.name} {each.digest}" for each in settings.extensions] + [_digest_surroundings(settings)]
    # What extensions change is remembered for the files alone: a flag of the command line is for one run.
    saved_settings = _find_settings(replace(startup, settings={}), more) if startup.settings else settings
    file, layer = load_answer(
        settings.paths.state / "extensions" / "config", saved_settings.loaded, names, settings.project_root.root
    )
    if layer is not None:
        try:
            settings = _find_settings(startup, (*more, layer))
        except CodeloopError as error:
            warning = f"The extensions' changes to the configuration can't be used: {error}"
            warnings = (*settings.loaded.warnings, warning)
            settings = replace(settings, loaded=replace(settings.loaded, warnings=warnings))
    return replace(settings, files=FileStates(settings.files.states | file_states((file,)).states), answer=file)


def _find_settings(startup: Startup, more: tuple[Layer, ...]) -> ProjectSettings:
    paths = find_paths(startup.environment)
    project_root = find_project_root(startup.directory, paths, startup.environment)
    homes = find_homes(project_root, paths)
    sources = list_config_paths(project_root, paths, config_file=startup.config_file, environment=startup.environment)
    entries = (path for home in homes for path in entries_of(home))
    # Before the files are read: what changes while they are read counts as a change, and they are read again.
    files = file_states((*sources, paths.trust_file, *entries))
    root, directory = project_root.root, project_root.directory
    state = TrustState(trusted=True) if startup.trust else find_trust_state(paths, root, directory)
    trusted = state.trusted

    def load_with(homes: tuple[Home, ...], layers: tuple[Layer, ...]) -> LoadedConfig:
        extra = find_pages(project_root, homes, trusted=trusted)
        extended_homes = tuple(home for home in homes if home.has_extensions)
        if extended_homes and not trusted:
            from codeloop.extend.host.discovery import find_ignored_files

            ignored_files = find_ignored_files(extended_homes, project_root.root)
            extra = replace(extra, ignored=(*extra.ignored, *ignored_files))
        return load_config(
            project_root,
            paths,
            config_file=startup.config_file,
            environment=startup.environment,
            command_line=startup.settings,
            trusted=trusted,
            extra=replace(extra, layers=(*layers, *extra.layers, *more), distrust=state.why),
        )

    loaded = load_with(homes, ())
    states = file_states(state.files).states | files.states
    package_warnings: tuple[str, ...] = ()
    if loaded.config.plugin:  # packages among them are homes of their own
        from codeloop.extend.packages.search import find_packages

        packages = find_packages(loaded, project_root.root, paths)
        package_warnings, package_homes = packages.warnings, packages.homes
        states |= file_states((*packages.files, *(path for home in package_homes for path in entries_of(home)))).states
        if package_homes:
            homes = (*package_homes, *homes)
            loaded = load_with(homes, packages.layers)
    extended_homes = tuple(home for home in homes if home.has_extensions)
    skills = find_skills(project_root, loaded.config, paths, homes, trusted=trusted)
    states |= loaded.files
    notes = (state.note,) if state.note else ()
    extensions: tuple[Any, ...] = ()
    warnings: tuple[str, ...] = ()
    installed_plugins = find_installed_plugins(paths)
    if extended_homes or loaded.config.plugin or installed_plugins:
        from codeloop.extend.host.discovery import find_extensions

        extensions, watched_paths, warnings = find_extensions(
            extended_homes, loaded, project_root, paths, installed_plugins, trusted=trusted
        )
        states |= file_states(watched_paths).states
    loaded = replace(loaded, warnings=(*notes, *loaded.warnings, *skills.warnings, *package_warnings, *warnings))
    return ProjectSettings(
        startup, paths, project_root, loaded, trusted, skills, FileStates(states), state.why, extensions
    )


def providers_of(settings: ProjectSettings) -> Providers:
    """Return the provider table of a project."""
    return Providers(
        settings.config,
        Catalog(settings.paths.cache),
        Credentials(settings.paths.credentials_file),
        settings.environment,
        config_files=settings.loaded.describe_origin,
        signs_in=cache(partial(_signs_in, settings)),
    )


def newest_model(settings: ProjectSettings, providers: Providers, name: str) -> ModelRef | None:
    """Return the newest usable model that a name without a provider (`sonnet`) means; None: there is none."""
    from codeloop.model import usable_models

    return usable_models.find_newest_model(providers, name, settings.config.model or "")


def _signs_in(settings: ProjectSettings) -> frozenset[str]:
    """Return the providers whose requests plugins of the user send or sign; those of a project never do."""
    if not settings.extensions:
        return frozenset()
    from codeloop.extend.host.offer_cache import find_sign_ins

    digests = [each.digest for each in settings.extensions if not each.is_project]
    return find_sign_ins(settings.paths.state / "extensions", partial(_digest_surroundings, settings), digests)


def _digest_surroundings(settings: ProjectSettings) -> str:
    """Return a digest of the surroundings that a project's extensions are loaded in: directory, versions, variables."""
    from codeloop.extend.host.offer_cache import surroundings_of

    return surroundings_of(settings.project_root, settings.paths, settings.environment)
