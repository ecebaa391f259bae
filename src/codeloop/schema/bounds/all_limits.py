"""Every deadline, size and count that bounds the program,
in one table: `codeloop debug limits` prints it.
"""

from codeloop.kit.limit import Limit
from codeloop.schema import limits
from codeloop.schema.bounds import (
    automation,
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
    automation,
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
    """Return the limits of all modules, sorted by name."""
    values = (value for module in _LIMIT_MODULES for value in vars(module).values())
    return tuple(
        sorted(
            (value for value in values if isinstance(value, Limit)), key=lambda limit: limit.name
        )
    )
