"""What further distributions add to codeloop, as they name it in their entry points."""

from functools import cache

from codeloop.kit.version import VERSION, find_git_folder

# Type checkers read the name as that of `typing`, which need not be loaded.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@cache
def find_entry_points(group: str) -> "dict[str, EntryPoint]":
    """Return the entry points of a group by name. Groups: `codeloop.commands` (click commands),
    `codeloop.limits` (modules).

    A distribution of another version does not fit, and counts as not installed. In a checkout, both
    are what is checked out, whatever version they had when they were installed.
    """
    # Loading this and reading what is installed takes some 20 ms.
    from importlib.metadata import entry_points

    fits = bool(find_git_folder())
    return {
        each.name: each
        for each in entry_points(group=group)
        if fits or (each.dist is not None and each.dist.version == VERSION)
    }
