"""Finds the row of a program by its name. The rows of a family of programs are
imported when they are reached.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from codeloop.shell.program_row import NOT_KNOWN, ProgramRow


@lru_cache(maxsize=1_024)
def find_row(name: str) -> ProgramRow:
    """Return the row of a program; NOT_KNOWN if it has none."""
    return next((rows[name] for rows in list_families() if name in rows), NOT_KNOWN)


def list_families() -> Iterator[Mapping[str, ProgramRow]]:
    """Yield the rows by name, those of the programs that are used most first."""
    from codeloop.shell.programs import shell

    yield shell.PROGRAMS
    from codeloop.shell.programs import files

    yield files.PROGRAMS
    from codeloop.shell.programs import text

    yield text.PROGRAMS
    from codeloop.shell.programs import git

    yield git.PROGRAMS
    from codeloop.shell.programs import checks

    yield checks.PROGRAMS
    from codeloop.shell.programs import packages

    yield packages.PROGRAMS
    from codeloop.shell.programs import network

    yield network.PROGRAMS
    from codeloop.shell.programs import version_control

    yield version_control.PROGRAMS
    from codeloop.shell.programs import clouds

    yield clouds.PROGRAMS
