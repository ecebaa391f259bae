"""Command lines of git for unattended runs, with options by which a repository can't make git run programs."""

import os

from codeloop.kit.processes import find_program
from codeloop.schema.errors import UsageProblem

_OPTIONS = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.attributesFile=/dev/null"),
    *("-c", "commit.gpgSign=false", "-c", "protocol.ext.allow=never"),
)


def git_command(*arguments: str, path: str | None = None) -> tuple[str, ...]:
    """Return a git command with `arguments`. `path`: the PATH to look for git on; None: that of this process.

    Raises UsageProblem when git is not installed.
    """
    program = find_program("git", os.environ.get("PATH") if path is None else path)
    if program is None:
        raise UsageProblem("git was not found on the PATH. Install it, then try again.")
    return (program, *_OPTIONS, *arguments)
