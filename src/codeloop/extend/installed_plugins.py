"""Plugins of installed Python distributions: their entry points in the group `codeloop.plugins`,
cached on disk.
"""

import sys
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.config.paths import Paths
from codeloop.kit.small_files import read_start, write_atomically
from codeloop.schema.limits import CONFIG_BYTES
from codeloop.schema.wire import DECODE_ERRORS

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
