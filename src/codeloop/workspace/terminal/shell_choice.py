"""Chooses the program of a terminal: the user's shell, another installed shell, or any program."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from codeloop.kit.programs import find_program
from codeloop.schema.api.pty import CreatePty, PtyShell

_LOGIN_SHELLS = frozenset({"ash", "bash", "dash", "fish", "ksh", "mksh", "rbash", "sh", "zsh"})
"""Shells that take `-l`."""

_KNOWN_SHELLS = _LOGIN_SHELLS | {"csh", "elvish", "nu", "pwsh", "tcsh", "xonsh"}
_SHELL_LIST = Path("/etc/shells")
_SIZE_VARIABLES = frozenset({"LINES", "COLUMNS"})
"""Variables of the terminal that codeloop runs in, which would override the size of the new one."""


class TerminalProgram(Struct, frozen=True, kw_only=True):
    """A program to run. `command` and `args` are shown; `path` is executed, in `directory`."""

    command: str
    path: str
    args: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]


def choose_program(
    request: CreatePty, directory: Path, environment: Mapping[str, str]
) -> TerminalProgram:
    """Return the program that a client requests. `directory` and `environment` are the project's.

    Raises ValueError for a missing directory or program, and for a text that none can be given:
    with NUL, or a variable's name with `=`.
    """
    own_variables = {
        name: value for name, value in environment.items() if name not in _SIZE_VARIABLES
    }
    variables = {**own_variables, "TERM": "xterm-256color", **request.env}
    _check_request(request, variables)
    folder = Path(os.path.normpath(directory / (request.cwd or "")))
    if not folder.is_dir():
        raise ValueError(f"there is no directory {folder}")
    command = request.command or find_user_shell(environment)
    if "/" in command:
        path = os.path.normpath(folder / command)
    else:
        path = find_program(command, variables.get("PATH"), in_project=True)
    if path is None or not os.access(path, os.X_OK) or Path(path).is_dir():
        raise ValueError(f"{command!r} is not a program that can be run")
    is_login_shell = Path(command).name in _LOGIN_SHELLS and not {"-l", "--login"} & set(
        request.args
    )
    return TerminalProgram(
        command=command,
        path=path,
        args=(*request.args, "-l") if is_login_shell else tuple(request.args),
        directory=folder,
        environment=variables,
    )


def find_user_shell(environment: Mapping[str, str]) -> str:
    """Return the path of the user's shell, or else of bash, zsh or sh."""
    search_path = environment.get("PATH")
    for candidate in (
        environment.get("SHELL"),
        find_program("bash", search_path),
        find_program("zsh", search_path),
    ):
        if candidate and candidate.startswith("/") and os.access(candidate, os.X_OK):
            return candidate
    return "/bin/sh"


def list_shells(environment: Mapping[str, str]) -> list[PtyShell]:
    """Return the installed shells: those that the system lists, then others on the PATH."""
    search_path = environment.get("PATH")
    found_shells = [find_program(name, search_path) for name in sorted(_KNOWN_SHELLS)]
    paths = dict.fromkeys([*_read_shells(), *(path for path in found_shells if path is not None)])
    return [
        PtyShell(path=path, name=Path(path).name, acceptable=Path(path).name in _KNOWN_SHELLS)
        for path in paths
        if os.access(path, os.X_OK)
    ]


def _read_shells() -> list[str]:
    try:
        lines = _SHELL_LIST.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line.strip() for line in lines if line.startswith("/")]


def _check_request(request: CreatePty, environment: Mapping[str, str]) -> None:
    texts = (
        request.command or "",
        request.cwd or "",
        *request.args,
        *environment,
        *environment.values(),
    )
    if any("\0" in text for text in texts):
        raise ValueError("the command, its directory or its environment contains a NUL character")
    if any(not name or "=" in name for name in request.env):
        raise ValueError("a name in the environment is empty or holds `=`")
