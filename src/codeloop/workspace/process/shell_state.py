"""The directory and variables that one shell of a session passes to the next,
and the parser of `export -p`.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from shlex import split

from msgspec import Struct

from codeloop.kit.text.patterns import compile_once

_BASH_VARIABLES = (
    r"(?s)BASH_ENV|ENV|SHELLOPTS|BASHOPTS|BASH_FUNC_.*|BASH_COMPAT|BASH_XTRACEFD|CDPATH"
    r"|EXECIGNORE|FIGNORE|GLOBIGNORE|IFS"
    r"|POSIXLY_CORRECT|PROMPT_COMMAND|PS4"
)
"""Variables that change how bash parses a line, or that run something before it."""
# Variables that each shell sets itself: their values are not changes by a command.
_SHELL_VARIABLES = frozenset({"PS1", "PS2", "PWD", "OLDPWD", "SHLVL", "_", "UID", "EUID", "PPID"})
# Those of them that no command changes for the next one.
_UNSHARED_VARIABLES = frozenset({"PWD", "SHLVL", "_"})
# `declare -x NAME="value"`, or `declare -x NAME=$'value\n'` if it has characters
# that are not printable.
_EXPORT_LINE = (
    r"(?s)declare -[a-zA-Z]*x[a-zA-Z]* ([A-Za-z_][A-Za-z0-9_]*)"
    r"""(?:="((?:[^"\\$`]|\\.)*)"|=\$'((?:[^'\\]|\\.)*)')?\n"""
)
_ESCAPE = r"(?s)\\(.)"
_ESCAPED_BYTE = rb"(?s)\\([0-7]{3}|.)"
_BYTES_BY_LETTER = {
    b"n": b"\n",
    b"t": b"\t",
    b"r": b"\r",
    b"a": b"\a",
    b"b": b"\b",
    b"E": b"\x1b",
    b"f": b"\f",
    b"v": b"\v",
}
"""The letters by which bash writes bytes that are not printable."""


class ShellState(Struct, frozen=True):
    """The directory and exported variables of a shell, for the next one of its session.

    `variables`: None for those that the session began with. `unsandboxed_variables`: those for a
    command without a sandbox, or with more permissions than others: they lack the exports of
    sandboxed commands, which must not steer it.
    """

    directory: Path
    variables: dict[str, str] | None = None
    unsandboxed_variables: dict[str, str] | None = None


def drop_bash_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables that change how bash parses a line."""
    return {name: value for name, value in environment.items() if not _is_bash_variable(name)}


@lru_cache(maxsize=1_024)
def _is_bash_variable(name: str) -> bool:
    return re.fullmatch(_BASH_VARIABLES, name) is not None


def find_changed_variables(
    variables: Mapping[str, str] | None, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables that differ from those at the session's start;
    "" for one that is not set any more.
    """
    if variables is None:
        return {}
    names = {
        name
        for name in (*environment, *variables)
        if name.isidentifier() and name not in _SHELL_VARIABLES
    }
    return {
        name: variables.get(name, "")
        for name in names
        if variables.get(name, "") != environment.get(name, "")
    }


def apply_changes(
    variables: Mapping[str, str], before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables with the changes that a command made from `before` to `after`."""
    removed_names = before.keys() - after.keys()
    changes = {name: value for name, value in after.items() if before.get(name) != value}
    return {
        **{name: value for name, value in variables.items() if name not in removed_names},
        **changes,
    }


@lru_cache(maxsize=4)
def parse_exports(printed: str) -> dict[str, str]:
    """Parse the output of `export -p`, without the variables that change how bash parses a line,
    and PWD and the like.

    The result is cached and must not be changed: most commands export nothing,
    so the next output is the same.
    """
    # A command may have written anything instead. Lines that are not understood are left out,
    # and none is run.
    variables: dict[str, str] = {}
    # The format of `sh`, where there is no bash: `export NAME='value'`,
    # or `export NAME` for one without a value.
    if printed.startswith("export "):
        with suppress(ValueError):
            assignments = (word.partition("=") for word in split(printed) if "=" in word)
            variables |= {name: value for name, _, value in assignments}
    start = 0
    while start < len(printed):
        line = compile_once(_EXPORT_LINE).match(printed, start)
        if line is None:
            # On to the next line that may be understood, or to the end.
            start = printed.find("\ndeclare -", start) + 1 or len(printed)
            continue
        name, quoted, escaped = line.groups()
        if escaped is not None:
            value = re.sub(
                _ESCAPED_BYTE, lambda match: _decode_escape(match[1]), os.fsencode(escaped)
            )
            variables[name] = os.fsdecode(value)
        elif quoted is not None:
            variables[name] = re.sub(_ESCAPE, lambda match: match[1], quoted)
        start = line.end()
    return {
        name: value
        for name, value in drop_bash_variables(variables).items()
        if name not in _UNSHARED_VARIABLES
    }


def _decode_escape(code: bytes) -> bytes:
    """Return the byte for what follows a backslash: three octal digits, or a letter."""
    return bytes([int(code, 8) & 0xFF]) if code.isdigit() else _BYTES_BY_LETTER.get(code, code)
