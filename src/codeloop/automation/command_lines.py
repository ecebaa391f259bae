"""Command lines of the programs that unattended runs start: codeloop itself, and a git that runs no programs."""

import os
import sys

from codeloop.kit.programs import find_program
from codeloop.schema.errors import UsageProblem

# With -P, Python does not look for modules in the current folder first: it may be a project with a file `codeloop.py`.
CODELOOP_COMMAND = (sys.executable, "-P", "-m", "codeloop")
# Hooks, a file monitor, filters of attributes, signatures and the transport `ext` are programs that git would start.
_SAFE_GIT_OPTIONS = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.attributesFile=/dev/null"),
    *("-c", "commit.gpgSign=false", "-c", "protocol.ext.allow=never"),
)


def make_git_command(*arguments: str, path: str | None = None) -> tuple[str, ...]:
    """Return a git command with `arguments`. `path`: the PATH to look for git on; None: that of this process.

    Raises UsageProblem when git is not installed.
    """
    program = find_program("git", os.environ.get("PATH") if path is None else path)
    if program is None:
        raise UsageProblem("git was not found on the PATH. Install it, then try again.")
    return (program, *_SAFE_GIT_OPTIONS, *arguments)
