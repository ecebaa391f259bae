"""Plugins of installed distributions: entry points of the group `codeloop.plugins`."""

from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path

import msgspec

from codeloop.extend.folders import InstalledPlugins, Stamps
from codeloop.kit.small_files import write_atomically

GROUP = "codeloop.plugins"


def look(file: Path, folders: Stamps) -> dict[str, str]:
    """Return them, and remember them in a file for as long as the folders are as they are now."""
    found = {each.name: each.value for each in entry_points(group=GROUP)}
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, msgspec.json.encode(InstalledPlugins(folders, found)))
    return found
