"""Every deadline, size and count that bounds the program,
in one table: `codeloop debug limits` prints it.
"""

from contextlib import suppress

from codeloop.kit.entry_points import find_entry_points
from codeloop.kit.limit import Limit
from codeloop.schema import limits
from codeloop.schema.bounds import (
    cloud,
    doctor,
    editor,
    extension,
    language_tools,
    outlines,
    program,
    sandbox,
    server,
    session,
    structured,
    tui,
    watch,
)

_LIMIT_MODULES = (
    limits,
    cloud,
    doctor,
    editor,
    extension,
    language_tools,
    outlines,
    program,
    sandbox,
    server,
    session,
    structured,
    tui,
    watch,
)


def list_limits() -> tuple[Limit, ...]:
    """Return the limits of all modules, those of other distributions too, sorted by name."""
    added: list[object] = []
    for each in find_entry_points("codeloop.limits").values():
        # A distribution whose files are gone is still named by what it left.
        with suppress(ImportError):
            added.append(each.load())
    values = (value for module in (*_LIMIT_MODULES, *added) for value in vars(module).values())
    return tuple(
        sorted(
            (value for value in values if isinstance(value, Limit)), key=lambda limit: limit.name
        )
    )
