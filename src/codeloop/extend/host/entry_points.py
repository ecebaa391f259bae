"""Plugins of installed distributions: entry points of the group `codeloop.plugins`."""

from importlib.metadata import entry_points

ENTRY_POINT_GROUP = "codeloop.plugins"


def read_entry_points() -> dict[str, tuple[str, str]]:
    """Return the value of each, and the version of its distribution, by its name.

    Slow: it reads the metadata of every distribution.
    """
    installed = entry_points(group=ENTRY_POINT_GROUP)
    return {each.name: (each.value, each.dist.version if each.dist is not None else "") for each in installed}
