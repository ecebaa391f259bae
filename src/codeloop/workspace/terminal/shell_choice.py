"""Chooses what a terminal runs: the user's shell, another installed one, or any program."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from codeloop.kit.processes import find_program
from codeloop.schema.api.pty import CreatePty, PtyShell

_LOGIN = frozenset({"ash", "bash", "dash", "fish", "ksh", "mksh", "rbash", "sh", "zsh"})
"""Shells that take `-l`."""

_SHELLS = _LOGIN | {"csh", "elvish", "nu", "pwsh", "tcsh", "xonsh"}
_SYSTEM_SHELLS = Path("/etc/shells")
_SIZE_VARIABLES = frozenset({"LINES", "COLUMNS"})
"""Variables of the terminal that we run in, which would override the new terminal's."""


class Program(Struct, frozen=True, kw_only=True):
    """What to run. `command` and `args` are shown, `path` is executed, in `directory`."""

    command: str
    path: str
    args: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]


def choose_program(create_pty: CreatePty, directory: Path, environment: Mapping[str, str]) -> Program:
    """Return the program that a client asks for; `directory` and `environment` are the project's.

    Raises ValueError for a missing directory or program, or a text with NUL.
    """
    own_variables = {name: value for name, value in environment.items() if name not in _SIZE_VARIABLES}
    variables = {**own_variables, "TERM": "xterm-256color", **create_pty.env}
    _check(create_pty, variables)
    folder = Path(os.path.normpath(directory / (create_pty.cwd or "")))
    if not folder.is_dir():
        raise ValueError(f"there is no directory {folder}")
    command = create_pty.command or find_user_shell(environment)
    path = (
        os.path.normpath(folder / command)
        if "/" in command
        else find_program(command, variables.get("PATH"), in_project=True)
    )
    if path is None or not os.access(path, os.X_OK) or Path(path).is_dir():
        raise ValueError(f"{command!r} is not a program that can be run")
    login = Path(command).name in _LOGIN and not {"-l", "--login"} & set(create_pty.args)
    return Program(
        command=command,
        path=path,
        args=(*create_pty.args, "-l") if login else tuple(create_pty.args),
        directory=folder,
        environment=variables,
    )


def find_user_shell(environment: Mapping[str, str]) -> str:
    """Return the path of the user's own shell, else that of bash, zsh or sh."""
    path = environment.get("PATH")
    for candidate in (environment.get("SHELL", ""), find_program("bash", path) or "", find_program("zsh", path) or ""):
        if candidate.startswith("/") and os.access(candidate, os.X_OK):
            return candidate
    return "/bin/sh"


def list_shells(environment: Mapping[str, str]) -> list[PtyShell]:
    """Return the shells that are installed: those that the system lists, then others on the PATH."""
    path = environment.get("PATH")
    programs = (find_program(name, path) for name in sorted(_SHELLS))
    candidates = dict.fromkeys(each for each in (*_read_shells(), *_drop_none(programs)) if os.access(each, os.X_OK))
    names = {each: Path(each).name for each in candidates}
    return [PtyShell(path=each, name=name, acceptable=name in _SHELLS) for each, name in names.items()]


def _read_shells() -> list[str]:
    try:
        lines = _SYSTEM_SHELLS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line.strip() for line in lines if line.startswith("/")]


def _drop_none(values: Iterable[str | None]) -> Iterator[str]:
    return (value for value in values if value is not None)


def _check(create_pty: CreatePty, environment: Mapping[str, str]) -> None:
    texts = (create_pty.command or "", create_pty.cwd or "", *create_pty.args, *environment, *environment.values())
    if any("\0" in text for text in texts):
        raise ValueError("the command, its directory or its environment contains a NUL character")
    if any(not name or "=" in name for name in create_pty.env):
        raise ValueError("a name in the environment is empty or holds `=`")
