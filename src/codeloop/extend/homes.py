"""Finds homes: folders such as `.codeloop` and `.claude` with agents, commands, skills and
extensions in subfolders.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.config.paths import Paths
from codeloop.config.project_root import ProjectRoot
from codeloop.config.trust.contents import (
    CLAUDE_HOMES,
    CODELOOP_HOMES,
    PAGE_FOLDERS,
    PROGRAM_FOLDERS,
    SKILL_FOLDERS,
    SKILL_HOMES,
)
from codeloop.kit.small_files import read_start, write_atomically
from codeloop.schema.limits import CONFIG_BYTES, EXTEND_DEPTH, EXTEND_ENTRIES
from codeloop.schema.wire import DECODE_ERRORS

_NAME = r"\w[\w.-]*([/:]\w[\w.-]*)*"

_TEXT_FOLDERS = PAGE_FOLDERS | SKILL_FOLDERS
"""The subfolders of a home with Markdown files;
extensions, in others, are found by `host/discovery.py`.
"""


class Home(Struct, frozen=True):
    """A folder that may hold agents, commands, skills and extensions.
    `names`: the names of its entries.

    `is_project`: it belongs to the project. `is_foreign`: it is of another program, so only its
    skills are read, and if it `is_claude` also its agents and commands, which have Claude Code's
    form. `is_policy`: its plugins are required.
    """

    path: Path
    names: frozenset[str]
    is_project: bool
    is_foreign: bool
    is_policy: bool = False
    is_claude: bool = False
    prefix: str = ""
    """What the names of its commands begin with, before a colon: a plugin's name."""

    @property
    def has_extensions(self) -> bool:
        """Whether there may be tools or plugins in it."""
        return not self.is_foreign and not self.names.isdisjoint(PROGRAM_FOLDERS)


def find_homes(project_root: ProjectRoot, paths: Paths) -> tuple[Home, ...]:
    """Return the existing homes, the user's first, then the project's from its root down.

    If two homes define the same name, the later one wins.
    """
    dot_agents = paths.claude_home.parent / ".agents"
    homes = [
        _read_home(paths.claude_home, is_foreign=True, is_claude=True),
        _read_home(dot_agents, is_foreign=True),
        _read_home(paths.opencode_config),
        _read_home(paths.config),
    ]
    for folder in project_root.folders:
        homes += [
            _read_home(
                folder / name, is_project=True, is_foreign=True, is_claude=name in CLAUDE_HOMES
            )
            for name in SKILL_HOMES
        ]
        homes += [_read_home(folder / name, is_project=True) for name in CODELOOP_HOMES]
    return tuple(home for home in homes if home is not None)


def list_watched_paths(home: Home) -> Iterator[Path]:
    """Yield the paths to watch for changes of a home: the home itself,
    its folders of Markdown files, and these.
    """
    yield home.path
    entries = 0
    for name in sorted(home.names & _TEXT_FOLDERS):
        for top, folders, files in os.walk(home.path / name):
            entries += len(folders) + len(files)
            # The walk is bounded: a folder that holds far more than pages must not delay
            # the start of a session.
            if entries > EXTEND_ENTRIES.value:
                return
            yield Path(top)
            yield from (Path(top, file) for file in files if file.endswith(".md"))


def _read_home(
    path: Path, *, is_project: bool = False, is_foreign: bool = False, is_claude: bool = False
) -> Home | None:
    try:
        with os.scandir(path) as entries:
            names = frozenset(entry.name for entry in entries)
    except OSError:
        return None
    return Home(path, names, is_project=is_project, is_foreign=is_foreign, is_claude=is_claude)


def find_files(
    folder: Path, is_wanted: Callable[[str], bool], *, follow_links: bool = False
) -> list[Path]:
    """Return the files below a folder whose names `is_wanted` accepts, sorted. Never fails.

    With `follow_links` those in linked folders too, each folder once. What is deeper than
    EXTEND_DEPTH, or after EXTEND_ENTRIES entries, is left out.
    """
    paths: list[Path] = []
    seen: set[str] = set()
    entries = 0
    for top, folders, files in os.walk(folder, followlinks=follow_links):
        entries += len(folders) + len(files)
        if entries > EXTEND_ENTRIES.value:
            break
        if follow_links and (real := os.path.realpath(top)) not in seen:
            seen.add(real)
        elif follow_links:
            # Clearing the list in place stops `os.walk` from descending further.
            folders.clear()
            continue
        if len(Path(top).relative_to(folder).parts) + 1 >= EXTEND_DEPTH.value:
            folders.clear()
        paths += [Path(top, name) for name in files if is_wanted(name)]
    return sorted(paths)


def find_page_files(home: Home, folders: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """Yield the Markdown files of a home's folders,
    each with its agent's or command's name: `team/reviewer`.
    """
    for folder in folders:
        if folder in home.names:
            top = home.path / folder
            for file in find_files(top, lambda name: name.endswith(".md")):
                yield file.relative_to(top).with_suffix("").as_posix(), file


def is_valid_name(name: str) -> bool:
    """Return whether an agent or a command may have this name: words,
    joined by slashes or colons.
    """
    return re.fullmatch(_NAME, name) is not None


def links_outside(file: Path, root: Path) -> bool:
    """Return whether a file, with links resolved, lies outside of `root` (a resolved path),
    or can't be resolved.
    """
    try:
        # Strict, since a dangling link could be pointed out of the project after this check.
        return not file.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):
        return True


ENTRY_POINT_GROUP = "codeloop.plugins"
Stamps = list[tuple[str, int]]
"""Folders of installed distributions, each with its modification time (ns)."""


class InstalledPlugins(Struct, frozen=True):
    """The plugins of installed distributions: the value of each entry point, and its version,
    by its name.
    """

    folders: Stamps
    found: dict[str, tuple[str, str]]


def find_installed_plugins(paths: Paths) -> dict[str, tuple[str, str]]:
    """Return the plugins of installed distributions by name, cached while the folders of
    distributions are the same.
    """
    file = paths.cache / "entry_points.json"
    site_folders = [Path(folder) for folder in sys.path if folder.endswith("-packages")]
    folders = [
        (str(folder), folder.stat().st_mtime_ns) for folder in site_folders if folder.is_dir()
    ]
    try:
        installed_plugins = msgspec.json.decode(
            read_start(file, CONFIG_BYTES.value), type=InstalledPlugins
        )
    except (OSError, *DECODE_ERRORS):
        installed_plugins = None
    if installed_plugins is not None and installed_plugins.folders == folders:
        return installed_plugins.found
    plugins = read_entry_points()
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, msgspec.json.encode(InstalledPlugins(folders, plugins)))
    return plugins


def read_entry_points() -> dict[str, tuple[str, str]]:
    """Return, by name, the value of each entry point of the group and the
    version of its distribution.

    Slow: it reads the metadata of every distribution.
    """
    # Imported late: it loads the parser of e-mail, and most starts are served by the cache.
    from importlib.metadata import entry_points

    installed = entry_points(group=ENTRY_POINT_GROUP)
    return {
        each.name: (each.value, each.dist.version if each.dist is not None else "")
        for each in installed
    }
