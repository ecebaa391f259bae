"""The command line of git, with what a repository could make it run switched off."""

import os

from codeloop.kit.processes import find_program
from codeloop.schema.errors import UsageProblem

_OPTIONS = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.attributesFile=/dev/null"),
    *("-c", "commit.gpgSign=false", "-c", "protocol.ext.allow=never"),
)


def git_command(*arguments: str, path: str | None = None) -> tuple[str, ...]:
    """Return a git command with `arguments`; `path`: the PATH to find git on. Raises UsageProblem without git."""
    program = find_program("git", os.environ.get("PATH") if path is None else path)
    if program is None:
        raise UsageProblem("git was not found on the PATH. Install it, then try again.")
    return (program, *_OPTIONS, *arguments)
