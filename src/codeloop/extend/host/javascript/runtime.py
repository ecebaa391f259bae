"""Finds the runtime of JavaScript extensions: bun, for which most are written, or a recent node."""

import os
import subprocess
from pathlib import Path

from codeloop.kit.processes import find_program, make_safe_environment
from codeloop.schema.errors import CodeloopError
from codeloop.workspace.process.program_environment import program_environment

HOST = Path(__file__).with_name("host.mjs")
OLDEST_NODE = 22
_BUN = ("--no-install",)
"""Keeps bun from installing missing packages by itself."""
_NODE = ("--disable-warning=ExperimentalWarning",)
_SECONDS = 10
_NEEDED = f"JavaScript extensions need node {OLDEST_NODE} or newer, or bun; {{}}."


class NoRuntime(CodeloopError):
    """No JavaScript runtime was found. The message says in one line what is needed."""


def find_runtime(search_path: str | None) -> tuple[str, ...]:
    """Find the command that starts the host, which itself checks the runtime's version.

    `search_path`: folders as in PATH. Raises NoRuntime: there is neither bun nor node.
    """
    if (bun := find_program("bun", search_path)) is not None:
        return (bun, *_BUN, str(HOST))
    if (node := find_program("node", search_path)) is not None:
        return (node, *_NODE, str(HOST))
    raise NoRuntime(_NEEDED.format("neither is on the PATH"))


def javascript_command(search_path: str | None) -> tuple[str, ...]:
    """Find the command as `find_runtime` does, and ask node for its version. Raises NoRuntime."""
    command = find_runtime(search_path)
    if command[1:2] == _NODE:
        version = _version(command[0], search_path)
        if version is None or _parse_major(version) < OLDEST_NODE:
            raise NoRuntime(_NEEDED.format(f"{command[0]} is {version or 'not one that starts'}"))
    return command


def _version(node: str, search_path: str | None) -> str | None:
    """Ask for its version outside any project, whose files might select another through a version manager."""
    environment = make_safe_environment(program_environment(os.environ, {"PATH": search_path or os.defpath}))
    try:
        completed = subprocess.run(
            [node, "--version"],
            cwd="/",
            env=environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return completed.stdout.strip() if completed.returncode == 0 else None


def _parse_major(version: str) -> int:
    major = version.removeprefix("v").split(".")[0]
    return int(major) if major.isdecimal() else 0
