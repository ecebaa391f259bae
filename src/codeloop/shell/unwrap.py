"""Unwraps commands that run other commands (`sudo`, `xargs`, `sh -c`): finds these,
as far as the line shows them.
"""

import re
from collections.abc import Sequence

from codeloop.shell.leading_options import find_operand
from codeloop.shell.program_row import ProgramRow, Wrapper
from codeloop.shell.program_table import find_row
from codeloop.shell.unwrappers import STDIN_PATH, has_exec_option, unwrap_shell
from codeloop.shell.word import Word
from codeloop.shell.wrapped_commands import (
    NO_COMMANDS,
    UNKNOWN_COMMANDS,
    WrappedCommands,
    make_script,
)

# The dynamic loader and emulators run the program that their first operand names.
_LOADER_NAME = r"ld-(linux|musl).*|ld(64)?\.so.*|qemu-[\w-]+"


def unwrap(words: Sequence[Word]) -> WrappedCommands:
    """Find the commands that a command runs. Its name has to be known."""
    program = find_row(words[0].value)
    if program.wraps is not None:
        return _unwrap_wrapper(words, program, program.wraps)
    if program.unwrap is not None:
        return program.unwrap(words, program)
    is_unknown = has_exec_option(words, program) or _may_run_script(words) or may_evaluate(words)
    return UNKNOWN_COMMANDS if is_unknown else NO_COMMANDS


def _unwrap_wrapper(
    words: Sequence[Word], program: ProgramRow, wrapper: Wrapper
) -> WrappedCommands:
    if len(words) > 1 and words[1].is_known and words[1].value in wrapper.exit_options.split():
        return NO_COMMANDS
    start = find_operand(words, program.known_options)
    if start is None:
        return UNKNOWN_COMMANDS
    rest = list(words[start:])
    if not all(word.is_known for word in rest[: wrapper.operand_count]):
        return UNKNOWN_COMMANDS
    rest = rest[wrapper.operand_count :]
    while wrapper.takes_assignments and rest and "=" in rest[0].value:
        rest = rest[1:]
    # `flock FILE -c SCRIPT` runs a script, not a command.
    if wrapper.operand_count and rest and rest[0].value == "-c":
        return make_script(rest[1:2])
    if not rest:
        return UNKNOWN_COMMANDS if wrapper.starts_shell else NO_COMMANDS
    return WrappedCommands((tuple(rest),))


def may_evaluate(words: Sequence[Word]) -> bool:
    """Return whether a builtin may evaluate its words, or the values of variables,
    so that it may run anything.

    False does not mean that it runs nothing: `unwrap` takes those that are there to run something
    (`eval`, `exec`) first, so they have no check.
    """
    builtin = find_row(words[0].value).builtin
    return (
        builtin is not None and builtin.may_evaluate is not None and builtin.may_evaluate(words[1:])
    )


def is_runner(name: str) -> bool:
    """Return whether a program runs a command that stands somewhere among its words."""
    return find_row(name).runs_words != "" or re.fullmatch(_LOADER_NAME, name) is not None


def _may_run_script(words: Sequence[Word]) -> bool:
    """Return whether a runner may run more than the commands that are spelled out in its words."""
    name = words[0].value
    is_script = any(re.search(r"[\s;|&]", word.value) or not word.is_known for word in words[1:])
    # Without a program, `i386` and `unshare` start a shell, which may read commands from stdin.
    is_shell = all(word.value.startswith("-") for word in words[1:])
    return find_row(name).runs_words == "script" or (is_runner(name) and (is_script or is_shell))


def runs_later_word(words: Sequence[Word]) -> bool:
    """Return whether a command runs another one somewhere among its words."""
    name = words[0].value
    subcommands = {each.split()[0] for each in find_row(name).runs_after.split(";") if each}
    second = words[1].value if len(words) > 1 else ""
    return is_runner(name) or subcommands == {"*"} or second in subcommands


def reads_stdin(words: Sequence[Word]) -> bool:
    """Return whether a shell without a script of its own reads one from standard input."""
    if words[0].value in {".", "source"}:
        return len(words) == 2 and re.fullmatch(STDIN_PATH, words[1].value, re.DOTALL) is not None
    options = [word.value for word in words[1:]]
    is_shell = find_row(words[0].value).unwrap is unwrap_shell
    return is_shell and all(
        re.fullmatch(r"-[a-z]*|/dev/stdin", each) and "c" not in each for each in options
    )
