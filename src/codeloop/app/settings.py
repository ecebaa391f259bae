"""The settings of a project: the start parameters of the process,
and the configuration that is read for a directory.

`app.project` opens projects from them; commands that need no open project read them alone.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.agent.request.shared_budget import SharedBudgets
from codeloop.config.load import LoadedConfig, load_config
from codeloop.config.paths import Paths, find_paths
from codeloop.config.places import HeldPlace, Place, Places
from codeloop.config.project_root import ProjectRoot, find_project_root
from codeloop.config.sources import Layer, list_config_paths
from codeloop.config.trust.store import TrustState, find_trust_state
from codeloop.extend.homes import Home, find_homes, find_installed_plugins, list_watched_paths
from codeloop.extend.pages.page_layers import find_pages
from codeloop.extend.skills import Skills, find_skills
from codeloop.kit.small_files import FileState, read_file_state
from codeloop.schema.config import Config
from codeloop.schema.editor import RunInEditor
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.wire import JSON, replace
from codeloop.tool.services import SaveBuffer

if TYPE_CHECKING:
    from codeloop.store.store import Store


class Startup(Struct, frozen=True, kw_only=True):
    """The start parameters of a process. `trust`: treat the directory as trusted in this run."""

    directory: Path
    environment: Mapping[str, str] = struct_field(default_factory=lambda: dict(os.environ))
    config_file: Path | None = None
    settings: JSON = struct_field(default_factory=dict[str, object])
    """Configuration from the command line."""
    trust: bool = False
    record: Path | None = None
    """The file in which the models' answers are recorded; None: they are not."""
    replay: Path | None = None
    """The file of a recording that answers in place of models; None: models answer."""
    pace: float = 0.0
    """The speed at which a recording is played: 1 as it was recorded, 0 without pauses."""
    budgets: SharedBudgets = struct_field(default_factory=SharedBudgets)
    """The budgets that sessions of this process share."""
    save_buffer: SaveBuffer | None = None
    """Has an editor save its changes of a file; None: no editor is connected."""
    run_in_editor: RunInEditor | None = None
    """Runs commands that leave the sandbox in an editor's terminal;
    None: they run like all others.
    """


def check_directory(directory: Path, option: str = "") -> None:
    """Raise UsageProblem if there is no such directory.
    `option`: the one of the command line that names it.
    """
    name = f"The directory {directory} of {option}" if option else f"The directory {directory}"
    try:
        # Not `is_dir`, which since Python 3.14 answers no for every error.
        is_directory = stat.S_ISDIR(directory.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        raise UsageProblem(f"{name} does not exist. Correct the name.") from None
    except PermissionError:
        # It is reported when the project is opened.
        return
    except OSError as error:
        raise UsageProblem(
            f"{name} can't be opened: {error.strerror}. Correct the name."
        ) from error
    if not is_directory:
        raise UsageProblem(f"{name} is a file. Correct the name.")


class FileStates(Struct, frozen=True):
    """The states of files and folders (time, size, or missing) at one moment."""

    states: dict[Path, FileState] = struct_field(default_factory=dict[Path, FileState])

    def read_if_changed(self) -> "FileStates | None":
        """Return the present states of the files; None if no file has changed. Blocks."""
        now = read_file_states(self.states)
        return None if now == self else now


def read_file_states(paths: Iterable[Path]) -> FileStates:
    """Read the present states of files and folders. Blocks."""
    return FileStates({path: read_file_state(path) for path in paths})


class ProjectSettings(Struct, frozen=True):
    """The place and configuration of a project, before anything is opened.

    `files`: the files that were read, and those that would count if they existed.
    """

    startup: Startup
    paths: Paths
    project_root: ProjectRoot
    loaded: LoadedConfig
    trusted: bool
    skills: Skills = struct_field(default_factory=Skills)
    files: FileStates = struct_field(default_factory=FileStates)
    distrust: str | None = None
    """The reason why a project that was trusted is not trusted any more;
    None: there is no such change.
    """
    extensions: tuple[Any, ...] = ()
    """The `extend.host.extension.Extension`s; their modules are imported only if there are some."""
    config_changes_file: Path | None = None
    """The file for the changes that extensions make to the configuration;
    None: there are no extensions.
    """

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
        """Return whether a project opened with the other settings would work the same."""
        return (self.config, self.trusted, self.skills, self.extensions) == (
            other.config,
            other.trusted,
            other.skills,
            other.extensions,
        )


class SettingsWatch:
    """Notices changes of an open project's configuration.
    Nothing runs in the background: `read_changes` compares.
    """

    def __init__(self, settings: ProjectSettings) -> None:
        self.is_outdated = False
        """Whether the configuration has changed since the project was opened."""
        self._newest = settings

    def read_changes(self) -> ProjectSettings | None:
        """Return the present settings if they differ from those of the last call; else None.

        Raises CodeloopError when a changed file can't be used;
        it is read again when it has changed again.
        """
        files = self._newest.files.read_if_changed()
        if files is None:
            return None
        # Noted before the files are read: a file that can't be used is not read, and reported,
        # at each call.
        before = self._newest = replace(self._newest, files=files)
        self._newest = find_settings(before.startup)
        if self._newest.is_same(before):
            return None
        self.is_outdated = True
        return self._newest


def find_settings(startup: Startup, extra_layers: tuple[Layer, ...] = ()) -> ProjectSettings:
    """Read the configuration for a directory, with `extra_layers` as if they were files of it.
    Blocks.

    The stored changes of its extensions are one more layer.
    Raises CodeloopError, which names file, line and column.
    """
    settings = _read_settings(startup, extra_layers)
    if not settings.extensions:
        return settings
    from codeloop.extend.hooks.config_changes import read_cached_answer

    names = [f"{each.name} {each.digest}" for each in settings.extensions] + [
        digest_surroundings(settings)
    ]
    # The changes are stored for the configuration of the files alone: flags of the
    # command line are for one run.
    saved_settings = (
        _read_settings(replace(startup, settings={}), extra_layers)
        if startup.settings
        else settings
    )
    file, layer = read_cached_answer(
        settings.paths.state / "extensions" / "config",
        saved_settings.loaded,
        names,
        settings.project_root.root,
    )
    if layer is not None:
        try:
            settings = _read_settings(startup, (*extra_layers, layer))
        except CodeloopError as error:
            warning = f"The extensions' changes to the configuration can't be used: {error}"
            warnings = (*settings.loaded.warnings, warning)
            settings = replace(settings, loaded=replace(settings.loaded, warnings=warnings))
    return replace(
        settings,
        files=FileStates(settings.files.states | read_file_states((file,)).states),
        config_changes_file=file,
    )


def _read_settings(startup: Startup, extra_layers: tuple[Layer, ...]) -> ProjectSettings:
    """Read the settings without the changes that extensions make to the configuration."""
    paths = find_paths(startup.environment)
    project_root = find_project_root(startup.directory, paths, startup.environment)
    homes = find_homes(project_root, paths)
    sources = list_config_paths(
        project_root, paths, config_file=startup.config_file, environment=startup.environment
    )
    pages = (path for home in homes for path in list_watched_paths(home))
    # Taken before the files are read: a file that changes meanwhile counts as changed,
    # and is read again.
    states = read_file_states((*sources, paths.trust_file, *pages)).states
    root, directory = project_root.root, project_root.directory
    trust_state = (
        TrustState(is_trusted=True) if startup.trust else find_trust_state(paths, root, directory)
    )
    trusted = trust_state.is_trusted
    load_with = partial(_load_with_homes, startup, paths, project_root, trust_state, extra_layers)
    loaded = load_with(homes)
    # Where both have a state of a file, the earlier one counts.
    states = read_file_states(trust_state.files).states | states
    package_warnings: tuple[str, ...] = ()
    # Packages are named in the configuration and bring configuration,
    # so it is loaded a second time with them.
    if loaded.config.plugin:
        from codeloop.extend.packages.find_packages import find_packages

        packages = find_packages(loaded, project_root.root, paths)
        package_warnings, package_homes = packages.warnings, packages.homes
        states |= read_file_states(
            (
                *packages.files,
                *(path for home in package_homes for path in list_watched_paths(home)),
            )
        ).states
        if package_homes:
            homes = (*package_homes, *homes)
            loaded = load_with(homes, packages.layers)
    skills = find_skills(project_root, loaded.config, paths, homes, trusted=trusted)
    states |= loaded.files
    trust_notes = (trust_state.note,) if trust_state.note else ()
    found_extensions = _find_extensions(homes, loaded, project_root, paths, trusted=trusted)
    states |= read_file_states(found_extensions.watched_paths).states
    root_warnings = (project_root.warning,) if project_root.warning else ()
    further_warnings = (
        *root_warnings,
        *skills.warnings,
        *package_warnings,
        *found_extensions.warnings,
        *_find_misplaced_files(project_root.root),
    )
    return ProjectSettings(
        startup=startup,
        paths=paths,
        project_root=project_root,
        loaded=replace(loaded, warnings=(*trust_notes, *loaded.warnings, *further_warnings)),
        trusted=trusted,
        skills=skills,
        files=FileStates(states),
        distrust=trust_state.reason,
        extensions=found_extensions.extensions,
    )


def _load_with_homes(
    startup: Startup,
    paths: Paths,
    project_root: ProjectRoot,
    trust_state: TrustState,
    extra_layers: tuple[Layer, ...],
    homes: tuple[Home, ...],
    package_layers: tuple[Layer, ...] = (),
) -> LoadedConfig:
    """Load the configuration with the pages (agents and commands) in `homes`,
    and the layers that packages bring.
    """
    extra = find_pages(project_root, homes, trusted=trust_state.is_trusted)
    extended_homes = tuple(home for home in homes if home.has_extensions)
    if extended_homes and not trust_state.is_trusted:
        from codeloop.extend.host.discovery import find_ignored_files

        ignored_files = find_ignored_files(extended_homes, project_root.root)
        extra = replace(extra, ignored=(*extra.ignored, *ignored_files))
    return load_config(
        project_root,
        paths,
        config_file=startup.config_file,
        environment=startup.environment,
        command_line=startup.settings,
        trusted=trust_state.is_trusted,
        extra=replace(
            extra,
            layers=(*package_layers, *extra.layers, *extra_layers),
            distrust=trust_state.reason,
        ),
    )


class _FoundExtensions(NamedTuple):
    """The extensions of a project. A change of `watched_paths` may be a change of them."""

    extensions: tuple[Any, ...] = ()
    watched_paths: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()


def _find_extensions(
    homes: tuple[Home, ...],
    loaded: LoadedConfig,
    project_root: ProjectRoot,
    paths: Paths,
    *,
    trusted: bool,
) -> _FoundExtensions:
    extended_homes = tuple(home for home in homes if home.has_extensions)
    installed_plugins = find_installed_plugins(paths)
    if not (extended_homes or loaded.config.plugin or installed_plugins):
        return _FoundExtensions()
    # Imported late, since most projects have no extensions.
    from codeloop.extend.host.discovery import find_extensions

    return _FoundExtensions(
        *find_extensions(
            extended_homes, loaded, project_root, paths, installed_plugins, trusted=trusted
        )
    )


def _find_misplaced_files(root: Path) -> tuple[str, ...]:
    """Return warnings about tools and plugins in places from which none is loaded."""
    if not any(
        (root / name).exists()
        for name in ("tool", "tools", "plugin", "plugins", "opencode.config.ts")
    ):
        return ()
    # Imported late, since most projects have no such folder.
    from codeloop.extend.misplaced_files import warn_misplaced_files

    return tuple(warn_misplaced_files(root))


def digest_surroundings(settings: ProjectSettings) -> str:
    """Return a digest of the surroundings that a project's extensions are loaded in: directory,
    versions, variables.
    """
    from codeloop.extend.host.offer_cache import hash_surroundings

    return hash_surroundings(settings.project_root, settings.paths, settings.environment)


def settle_place(settings: ProjectSettings, store: "Store") -> HeldPlace:
    """Note that this process works in a project's folder,
    after taking over the sessions that moved there with it.
    """

    def take_over(known: Place | None, here: Place) -> tuple[bool, list[str]]:
        # Most folders are as they were.
        from codeloop.app.moved_sessions import Destination
        from codeloop.app.take_over import take_over_at_open

        return take_over_at_open(
            Destination(settings.paths, settings.project_root, store), known, here
        )

    return Places(settings.paths).settle(settings.project_root, take_over)
