"""The parts of a shell line: a simple command, its redirections, and the options before its subcommand or command.

Commands and redirections have their text as it was written and as rules see it.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from codeloop.permission.shell.word import Word

_SYSTEM_FOLDER = re.compile(r"/(?:usr/(?:local/)?|opt/homebrew/)?s?bin")
_REFUSED_NAMES = """
case coproc declare do done elif else esac export fi for function if in let local readonly select then time typeset
unset unsetenv until while
"""
_RESERVED_WORDS = "! { } [[ ]] case do done elif else esac fi for function if in select then until while"
REFUSED_NAMES = frozenset(_REFUSED_NAMES.split())
"""Names that the small language of proofs (`grammar.py`) refuses as commands: they change how the rest is read."""
RESERVED_WORDS = frozenset(_RESERVED_WORDS.split())
"""Reserved words of bash: no command is named so."""


class Redirect(Struct, frozen=True):
    """A redirection: its operator, with the descriptor (`2>`), and its target."""

    operator: str
    target: Word

    @property
    def is_file(self) -> bool:
        """Whether it opens a file, rather than duplicating a descriptor (`2>&1`)."""
        return not (self.operator.endswith("&") and re.fullmatch(r"[\d-]+", self.target.value))

    @property
    def text(self) -> str:
        """The redirection as rules see it."""
        return f"{self.operator} {self.target.text}" if self.is_file else self.operator + self.target.text

    @property
    def marked_text(self) -> str:
        """The redirection with the marks of `kit.wildcard` for its unknown parts."""
        return self.operator + self.target.marked_text if self.is_file else self.text


class SimpleCommand(Struct, frozen=True):
    """A simple command: its words (the name first), its redirections, and the text of its standard input.

    `is_plain_step`: it is a step of the line itself, in no pipeline, group or substitution, so that `cd` in it lasts.
    `has_assignments`: assignments stand before its name.
    """

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()
    stdin: str | None = None
    is_plain_step: bool = False
    has_assignments: bool = False

    @property
    def text(self) -> str:
        """The command as rules see it, assignments before it left out."""
        texts = [*(word.text for word in self.words), *(redirect.text for redirect in self.redirects)]
        return " ".join(text for text in texts if text)

    @property
    def marked_text(self) -> str | None:
        """The command with the marks of `kit.wildcard` for its unknown parts; None when all of it is known."""
        if all(word.is_known for word in self.words) and all(redirect.target.is_known for redirect in self.redirects):
            return None
        parts = [word.marked_text for word in self.words]
        parts += [" " + redirect.marked_text for redirect in self.redirects]
        return "".join(parts).removeprefix(" ")


def strip_system_folder(name: str) -> str:
    """Return the name that rules know a program by: without the directory, when that is one of the system's."""
    folder, _, base = name.rpartition("/")
    return base if base and _SYSTEM_FOLDER.fullmatch(folder) else name


class OptionRow(Struct, frozen=True):
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


def find_operand(words: Sequence[Word], row: OptionRow) -> int | None:
    """Return the index of the first word behind the options; None when the options are not all known."""
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
        width = _count_option_words(value, with_value, flags)
        if width is None:
            return None
        index += width
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
