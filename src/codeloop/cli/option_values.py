"""`Options`: the values of the options of commands that open a project,
and those of the usual arguments of `run`, which are read without click.
"""

import os
import re
from pathlib import Path

from msgspec import Struct, convert

from codeloop.schema.permission import Profile


class Options(Struct, frozen=True, kw_only=True):
    """The options of `run`, conversations and others that open a project;
    those that a command lacks have defaults.
    """

    message: tuple[str, ...]
    directory: Path | None = None
    attach: str | None = None
    username: str | None = None
    password: str | None = None
    model: str | None = None
    variant: str | None = None
    agent: str | None = None
    continue_latest: bool = False
    session: str | None = None
    fork: bool = False
    worktree: str | None = None
    """The name of a work tree; "": one whose name is made from the prompt;
    None: the directory itself.
    """
    base: str | None = None
    at: str | None = None
    command: str | None = None
    title: str | None = None
    format: str = "text"
    """`text`; `json`: JSON Lines of codeloop's own; `stream-json`;
    or `result`: only the last line of `stream-json`.
    """
    input_format: str = "text"
    partial: bool = False
    """`stream-json` has a line for each delta, too."""
    replay_messages: bool = False
    permission_tool: str | None = None
    """`stdio`: the program at stdin and stdout is asked for permissions; None: it is not."""
    files: tuple[Path, ...] = ()
    schema: Path | None = None
    goal: str | None = None
    checks: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()
    unprotect: tuple[str, ...] = ()
    rounds: int | None = None
    max_steps: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    auto: bool = False
    profile: Profile | None = None
    trust: bool = False
    offline: bool = False
    thinking: bool = False
    plain: bool = False
    log_level: str | None = None
    print_logs: bool = False
    no_compact: bool = False
    no_wait: bool = False
    background: bool = False
    detached: bool = False
    """It is the process that `--background` starts: no terminal is there,
    but the user answers in another one.
    """
    config: Path | None = None
    record: Path | None = None
    force: bool = False
    replay: Path | None = None
    pace: float = 0.0
    """As `Startup.pace`; no flag sets it, only `codeloop demo`."""


# Which field of `Options` an option sets: to True, or to the word after it.
# The options that need a check or a conversion are click's.
FLAGS = {
    "--auto": "auto",
    "-c": "continue_latest",
    "--continue": "continue_latest",
    "--fork": "fork",
    "--trust": "trust",
    "--thinking": "thinking",
    "--no-wait": "no_wait",
    "--no-compact": "no_compact",
}
VALUES = {
    "-m": "model",
    "--model": "model",
    "--agent": "agent",
    "--variant": "variant",
    "-s": "session",
    "--session": "session",
    "--title": "title",
}
# The word after these is a number from 1 up, names a directory, or a file that is read.
NUMBERS = {"--max-steps": "max_steps", "--max-tokens": "max_tokens"}
DIRECTORIES = {"--dir": "directory"}
FILES = {"--config": "config", "--replay": "replay"}


def read_plain_arguments(arguments: list[str]) -> Options | None:
    """Return the options that the arguments after `run` give, as click would;
    None if any of them is left to click.
    """
    values: dict[str, str | int | Path] = {}
    words: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument in FLAGS:
            values[FLAGS[argument]] = True
        elif name := _NAMED_VALUES.get(argument):
            value = next(rest, None)
            # click says what is wrong with a value.
            if value is None or (converted := _convert_value(argument, value)) is None:
                return None
            values[name] = converted
        # `-` alone is stdin.
        elif argument.startswith("-") and argument != "-":
            return None
        else:
            words.append(argument)
    return convert({"message": words, **values}, Options)


_NAMED_VALUES = {**VALUES, **NUMBERS, **DIRECTORIES, **FILES}


def _convert_value(option: str, value: str) -> str | int | Path | None:
    """Return the value of an option as `Options` has it; None: click has to look at it."""
    if option in VALUES:
        return value
    if option in NUMBERS:
        return int(value) if re.fullmatch("[1-9][0-9]{0,8}", value) else None
    path = Path(value)
    if option in FILES and not (path.is_file() and os.access(path, os.R_OK)):
        return None
    return path
