"""What a terminal runs: the user's shell, one of those that are installed, or any program."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from codeloop.kit.processes import which
from codeloop.schema.api.pty import CreatePty, PtyShell

_LOGIN = frozenset({"ash", "bash", "dash", "fish", "ksh", "mksh", "rbash", "sh", "zsh"})
"""Shells that take `-l`."""

_SHELLS = _LOGIN | {"csh", "elvish", "nu", "pwsh", "tcsh", "xonsh"}
_LISTED = Path("/etc/shells")
_UNWANTED = frozenset({"LINES", "COLUMNS"})
"""Variables of the terminal that we run in, which would override the new terminal's."""


class Program(Struct, frozen=True, kw_only=True):
    """What to run. `command` and `args` are shown, `path` is executed, in `directory`."""

    command: str
    path: str
    args: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]


def program_of(asked: CreatePty, directory: Path, environment: Mapping[str, str]) -> Program:
    """Return the program that a client asks for; `directory` and `environment` are the project's.

    Raises ValueError for a missing directory or program, or a text with NUL.
    """
    inherited = {name: value for name, value in environment.items() if name not in _UNWANTED}
    whole = {**inherited, "TERM": "xterm-256color", **asked.env}
    _check(asked, whole)
    folder = Path(os.path.normpath(directory / (asked.cwd or "")))
    if not folder.is_dir():
        raise ValueError(f"there is no directory {folder}")
    command = asked.command or user_shell(environment)
    path = os.path.normpath(folder / command) if "/" in command else which(command, whole.get("PATH"), in_project=True)
    if path is None or not os.access(path, os.X_OK) or Path(path).is_dir():
        raise ValueError(f"{command!r} is not a program that can be run")
    login = Path(command).name in _LOGIN and not {"-l", "--login"} & set(asked.args)
    return Program(
        command=command,
        path=path,
        args=(*asked.args, "-l") if login else tuple(asked.args),
        directory=folder,
        environment=whole,
    )


def user_shell(environment: Mapping[str, str]) -> str:
    """Return the path of the user's own shell, else that of bash, zsh or sh."""
    path = environment.get("PATH")
    for candidate in (environment.get("SHELL", ""), which("bash", path) or "", which("zsh", path) or ""):
        if candidate.startswith("/") and os.access(candidate, os.X_OK):
            return candidate
    return "/bin/sh"


def shells(environment: Mapping[str, str]) -> list[PtyShell]:
    """Return the shells that are installed: those that the system lists, then others on the PATH."""
    path = environment.get("PATH")
    named = (which(name, path) for name in sorted(_SHELLS))
    found = dict.fromkeys(each for each in (*_read_shells(), *_only(named)) if os.access(each, os.X_OK))
    names = {each: Path(each).name for each in found}
    return [PtyShell(path=each, name=name, acceptable=name in _SHELLS) for each, name in names.items()]


def _read_shells() -> list[str]:
    try:
        lines = _LISTED.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line.strip() for line in lines if line.startswith("/")]


def _only(values: Iterable[str | None]) -> Iterator[str]:
    return (value for value in values if value is not None)


def _check(asked: CreatePty, environment: Mapping[str, str]) -> None:
    texts = (asked.command or "", asked.cwd or "", *asked.args, *environment, *environment.values())
    if any("\0" in text for text in texts):
        raise ValueError("the command, its directory or its environment contains a NUL character")
    if any(not name or "=" in name for name in asked.env):
        raise ValueError("a name in the environment is empty or holds `=`")
