"""Finds the runtime of JavaScript extensions: bun, for which most are written, or a recent node."""

import os
import subprocess
from pathlib import Path

from codeloop.kit.programs import find_program, make_child_environment, make_safe_environment
from codeloop.schema.bounds.extension import HOST_VERSION
from codeloop.schema.errors import CodeloopError
from codeloop.schema.installation import check_package_file
from codeloop.workspace.process.program_environment import make_program_environment

_HOST_PROGRAM = Path(__file__).with_name("host.mjs")
MIN_NODE_VERSION = 22
# bun installs missing packages by itself, while an extension is loaded;
# nothing may be installed unasked.
_BUN_OPTIONS = ("--no-install",)
# Node warns at each start that it runs TypeScript by an experimental feature.
_NODE_OPTIONS = ("--disable-warning=ExperimentalWarning",)
_NO_RUNTIME_MESSAGE = f"JavaScript extensions need node {MIN_NODE_VERSION} or newer, or bun; {{}}."


class NoRuntime(CodeloopError):
    """No JavaScript runtime was found. The message says in one line what is needed."""


def find_runtime(search_path: str | None) -> tuple[str, ...]:
    """Find the command that starts the host, which itself checks the runtime's version.

    `search_path`: folders as in PATH. Raises NoRuntime: there is neither bun nor node.
    """
    if (bun := find_program("bun", search_path)) is not None:
        return (bun, *_BUN_OPTIONS, str(check_package_file(_HOST_PROGRAM)))
    if (node := find_program("node", search_path)) is not None:
        return (node, *_NODE_OPTIONS, str(check_package_file(_HOST_PROGRAM)))
    raise NoRuntime(_NO_RUNTIME_MESSAGE.format("neither is on the PATH"))


def check_runtime(search_path: str | None) -> tuple[str, ...]:
    """Find the command as `find_runtime` does, and ask node for its version. Raises NoRuntime."""
    command = find_runtime(search_path)
    if command[1:2] == _NODE_OPTIONS:
        version = _read_version(command[0], search_path)
        if version is None or _parse_major(version) < MIN_NODE_VERSION:
            raise NoRuntime(
                _NO_RUNTIME_MESSAGE.format(f"{command[0]} is {version or 'not one that starts'}")
            )
    return command


def _read_version(node: str, search_path: str | None) -> str | None:
    """Ask for its version outside any project, whose files might select another
    through a version manager.
    """
    environment = make_safe_environment(
        make_program_environment(os.environ, {"PATH": search_path or os.defpath})
    )
    try:
        completed = subprocess.run(
            [node, "--version"],
            # Version managers (nvm, asdf, mise) choose node by files of the working directory.
            cwd="/",
            env=make_child_environment(environment, "/"),
            capture_output=True,
            text=True,
            timeout=HOST_VERSION.seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return completed.stdout.strip() if completed.returncode == 0 else None


def _parse_major(version: str) -> int:
    major = version.removeprefix("v").split(".")[0]
    return int(major) if major.isdecimal() else 0
