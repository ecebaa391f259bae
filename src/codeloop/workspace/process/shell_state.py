"""What one shell of a session leaves to the next, and how that differs from what the session began with."""

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

READING = re.compile(
    r"BASH_ENV|ENV|SHELLOPTS|BASHOPTS|BASH_FUNC_.*|BASH_COMPAT|BASH_XTRACEFD|CDPATH|EXECIGNORE|FIGNORE|GLOBIGNORE|IFS"
    r"|POSIXLY_CORRECT|PROMPT_COMMAND|PS4",
    re.DOTALL,
)
"""Variables by which bash reads a line otherwise than as it is written, or runs something before it."""
_OWN = frozenset({"PS1", "PS2", "PWD", "OLDPWD", "SHLVL", "_", "UID", "EUID", "PPID"})
_EXPORT = re.compile(
    r"""declare -x ([A-Za-z_][A-Za-z0-9_]*)(?:="((?:[^"\\$`]|\\.)*)"|=\$'((?:[^'\\]|\\.)*)')?\n""", re.DOTALL
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_BYTE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"E": b"\x1b", b"f": b"\f", b"v": b"\v"}
"""How bash writes bytes that are no letters."""


class ShellState(Struct, frozen=True):
    """What a shell leaves to the next one of its session: where it stood, and its exports as shell source text."""

    directory: Path
    exports: str = ""


def for_bash(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what changes how bash reads a line."""
    return {name: value for name, value in environment.items() if not READING.fullmatch(name)}


def changed_variables(exports: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return what a session's variables are where they differ from those that it began with ("": not set).

    `exports`: what `export -p` printed. What can't be read there is one variable without a name.
    """
    if not exports:
        return {}
    left = _read(exports)
    if left is None:
        return {"": ""}
    names = {name for name in (*environment, *left) if name.isidentifier() and name not in _OWN}
    return {name: left.get(name, "") for name in names if left.get(name, "") != environment.get(name, "")}


@lru_cache(maxsize=16)
def _read(exports: str) -> dict[str, str] | None:
    found: dict[str, str] = {}
    at = 0
    while at < len(exports):
        row = _EXPORT.match(exports, at)
        if row is None:
            return None
        name, quoted, escaped = row.groups()
        if escaped is not None:
            found[name] = os.fsdecode(_BYTE.sub(lambda one: _letter(one[1]), os.fsencode(escaped)))
        else:
            found[name] = _ESCAPE.sub(lambda one: one[1], quoted or "")
        at = row.end()
    return found


def _letter(code: bytes) -> bytes:
    return bytes([int(code, 8) & 0xFF]) if code.isdigit() else _LETTERS.get(code, code)
