"""The options of a program before its subcommand, or before the command that it runs, and what stands behind them.

The rows are where they are used, as in `wrappers.py`. For example `git -C d push`: behind the options of `git`
comes the subcommand `push`.
"""

from collections.abc import Sequence

from msgspec import Struct

from codeloop.shell.word import Word


class LeadingOptions(Struct, frozen=True):
    """A program's own arguments, which stand before the command or subcommand that it runs.

    `with_value`: options that take the next word; `flags`: options that take none (`-#`: a number); both are split by
    blanks. `operand_count`: of the operands before the command; `takes_assignments`: `A=b` may come before it, too;
    `exit_options`: with one of them as its first word the program runs nothing.
    """

    with_value: str = ""
    flags: str = ""
    operand_count: int = 0
    takes_assignments: bool = False
    exit_options: str = ""


def find_operand(words: Sequence[Word], row: LeadingOptions) -> int | None:
    """Return the index of the first word behind the options; None when the options are not all known.

    Without such a word it is the number of words, or more where the last option lacks its value.
    """
    with_value, flags = set(row.with_value.split()), set(row.flags.split())
    index = 1
    while index < len(words):
        value = words[index].value
        if not words[index].is_known:
            return None
        if value == "--":
            return index + 1
        if not value.startswith("-") or (value == "-" and "-" not in flags):
            return index
        word_count = _count_option_words(value, with_value, flags)
        if word_count is None:
            return None
        index += word_count
    return index


def _count_option_words(option: str, with_value: set[str], flags: set[str]) -> int | None:
    """Return the number of words that an option takes up, None when it is not in the tables."""
    if option in flags or (option.startswith("--") and "=" in option and option.split("=", 1)[0] in with_value | flags):
        return 1
    if option in with_value:
        return 2
    if "-#" in flags and option[1:].isdigit():
        return 1
    if option.startswith("--"):
        return None
    for index, letter in enumerate(option[1:], 2):
        if "-" + letter in with_value:
            return 1 if option[index:] else 2
        if "-" + letter not in flags:
            return None
    return 1
