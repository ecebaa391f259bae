"""What a row of a read-only program holds: the options that do no harm; and the check of a command against its row.

An option that is not in a row may write or execute, so a command with it is not read-only. The rows are in
`programs.py` and `git_commands.py`.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from codeloop.shell.builtins import is_whole_variable
from codeloop.shell.word import Word

ANYTHING = r"(?s:.*)"
# More operands than any line has words.
ANY_NUMBER = 1_000_000


class ReadOnlyRow(Struct, frozen=True):
    """A program's harmless options and operands.

    `flags`: options that take no value, or one after `=`; `with_value`: options that take the next word.
    `operand_pattern`: of the other words; `max_operands`: how many of them are allowed. `allows_unknown_words`: none of
    the program's options can do harm, so words that are only known at run time may be options. `separates_values`: the
    program reads letters behind one dash in a way of its own, so an option with a value has to stand alone.
    `needs_option`: without an option the program runs what it reads from its input, as interpreters do.
    """

    flags: frozenset[str]
    with_value: frozenset[str] = frozenset()
    operand_pattern: str = ANYTHING
    max_operands: int = ANY_NUMBER
    allows_unknown_words: bool = False
    separates_values: bool = False
    needs_option: bool = False


class ParsedWords(Struct, frozen=True):
    """A command's parsed words.

    `options`: each one without its value; `values`: each one with its value, "" for none; `operands`: the other words.
    """

    options: tuple[str, ...]
    values: tuple[tuple[str, str], ...]
    operands: tuple[Word, ...]

    @property
    def highest_operand_count(self) -> int:
        """The highest number of operands that there may be: a file pattern may stand for any number of them."""
        return len(self.operands) if all(w.is_known or is_whole_variable(w) for w in self.operands) else ANY_NUMBER


class Harmful(Exception):
    """A command may change something; the text names the word that may do it."""


def make_row(
    flags: str = "",
    with_value: str = "",
    operand_pattern: str = ANYTHING,
    max_operands: int = ANY_NUMBER,
    *,
    allows_unknown_words: bool = False,
    separates_values: bool = False,
    needs_option: bool = False,
) -> ReadOnlyRow:
    """Make a row from options that are written with blanks between them."""
    return ReadOnlyRow(
        flags=frozenset(flags.split()),
        with_value=frozenset(with_value.split()),
        operand_pattern=operand_pattern,
        max_operands=max_operands,
        allows_unknown_words=allows_unknown_words,
        separates_values=separates_values,
        needs_option=needs_option,
    )


def parse_words(words: Sequence[Word], row: ReadOnlyRow) -> ParsedWords:
    """Parse a command's words behind its name by a row. Raises Harmful at an option that the row does not have."""
    options: list[str] = []
    values: list[tuple[str, str]] = []
    operands: list[Word] = []
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        value = word.value
        if value == "--":
            operands += reversed(rest)
            break
        # The marks of unknown parts are not printable: such a word may begin with anything, a dash included.
        may_be_unknown_option = not word.is_known and (value.startswith("-") or not value[:1].isprintable())
        if may_be_unknown_option and not row.allows_unknown_words:
            raise Harmful(f"{word.source or 'a word'} may be an option")
        if not word.is_known or value in {"", "-"} or value[0] != "-":
            operands.append(word)
            continue
        option, option_value, takes_next_word = _split_option(value, row)
        options.append(option)
        if takes_next_word and rest:
            following = rest.pop()
            # A negative number is a value: `head -n -5`.
            may_be_option = not following.is_known or re.match(r"-(?![0-9]+$)", following.value)
            if may_be_option and not row.allows_unknown_words:
                raise Harmful(f"the value of {option} may be an option")
            option_value = following.value
        values.append((option, option_value))
    return ParsedWords(tuple(options), tuple(values), tuple(operands))


def _split_option(text: str, row: ReadOnlyRow) -> tuple[str, str, bool]:
    """Return an option, the value that is written with it, and whether it takes the next word. Raises Harmful."""
    name, has_value, value = text.partition("=")
    if name in row.with_value:
        return name, value, not has_value
    if name in row.flags:
        return name, value, False
    if text.startswith("--"):
        raise Harmful(f"{name} is not known to be harmless")
    if text[1:].isdigit():
        # A number as in `head -20`.
        return text, "", False
    for index, letter in enumerate(text[1:], 2):
        if "-" + letter in row.with_value:
            if row.separates_values and len(text) > 2:
                raise Harmful(f"-{letter} does not stand alone")
            return "-" + letter, text[index:], index == len(text)
        if "-" + letter not in row.flags:
            raise Harmful(f"-{letter} is not known to be harmless")
    return text, "", False


def check_words(words: Sequence[Word], row: ReadOnlyRow) -> ParsedWords:
    """Check a command's words against a row. Raises Harmful."""
    parsed = parse_words(words, row)
    if row.needs_option and not parsed.options:
        raise Harmful("it may run what it reads from its input")
    if parsed.highest_operand_count > row.max_operands:
        raise Harmful("it has more words than it reads")
    for operand in parsed.operands:
        if row.operand_pattern != ANYTHING and not (
            operand.is_known and re.fullmatch(row.operand_pattern, operand.value)
        ):
            raise Harmful(f"{operand.text} is not known to be harmless")
    return parsed
