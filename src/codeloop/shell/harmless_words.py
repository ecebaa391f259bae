"""Checks whether a command only reads: its words against the options of its row that do no harm.

An option that is not among `options` of the row may write or execute,
so a command with it is not read-only.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from codeloop.shell.builtin_checks import is_whole_variable
from codeloop.shell.options import Option
from codeloop.shell.program_row import ProgramRow
from codeloop.shell.word import Word

# More operands than any line has words.
ANY_NUMBER = 1_000_000


class ReadLimits(Struct, frozen=True):
    """The limits in which a program only reads: the words of `ProgramRow.reads`,
    which explains them.
    """

    allows_unknown_words: bool = False
    separates_values: bool = False
    needs_option: bool = False
    max_operands: int = ANY_NUMBER


class ParsedWords(Struct, frozen=True):
    """A command's parsed words.

    `options`: each one without its value; `values`: each one with its value, "" for none;
    `operands`: the other words.
    """

    options: tuple[str, ...]
    values: tuple[tuple[str, str], ...]
    operands: tuple[Word, ...]

    @property
    def highest_operand_count(self) -> int:
        """The highest number of operands that there may be: a file pattern may stand
        for any number of them.
        """
        return (
            len(self.operands)
            if all(w.is_known or is_whole_variable(w) for w in self.operands)
            else ANY_NUMBER
        )


class Harmful(Exception):
    """A command may change something; the text names the word that may do it."""


_NO_LIMITS = ReadLimits()


@lru_cache(maxsize=64)
def _parse_limits(text: str) -> ReadLimits:
    words = text.split()
    counts = [int(word.removeprefix("max:")) for word in words if word.startswith("max:")]
    return ReadLimits(
        "any" in words, "apart" in words, "option" in words, counts[0] if counts else ANY_NUMBER
    )


def parse_words(
    words: Sequence[Word], known_options: Mapping[str, Option], limits: ReadLimits = _NO_LIMITS
) -> ParsedWords:
    """Parse a command's words behind its name. Raises Harmful at an option that is not known."""
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
        # The marks of unknown parts are not printable: such a word may begin with anything,
        # a dash included.
        may_be_unknown_option = not word.is_known and (
            value.startswith("-") or not value[:1].isprintable()
        )
        if may_be_unknown_option and not limits.allows_unknown_words:
            raise Harmful(f"{word.source or 'a word'} may be an option")
        if not word.is_known or value in {"", "-"} or value[0] != "-":
            operands.append(word)
            continue
        option, option_value, takes_next_word = _split_option(value, known_options, limits)
        options.append(option)
        if takes_next_word and rest:
            following = rest.pop()
            # A negative number is a value: `head -n -5`.
            may_be_option = not following.is_known or re.match(r"-(?![0-9]+$)", following.value)
            if may_be_option and not limits.allows_unknown_words:
                raise Harmful(f"the value of {option} may be an option")
            option_value = following.value
        values.append((option, option_value))
    return ParsedWords(tuple(options), tuple(values), tuple(operands))


def _split_option(
    text: str, known_options: Mapping[str, Option], limits: ReadLimits
) -> tuple[str, str, bool]:
    """Return an option, the value that is written with it, and whether it takes the next word.
    Raises Harmful.
    """
    name, has_value, value = text.partition("=")
    if name in known_options:
        return name, value, known_options[name].takes_next_word and not has_value
    if text.startswith("--"):
        raise Harmful(f"{name} is not known to be harmless")
    if text[1:].isdigit():
        # A number as in `head -20`.
        return text, "", False
    for index, letter in enumerate(text[1:], 2):
        option = known_options.get("-" + letter)
        if option is None:
            raise Harmful(f"-{letter} is not known to be harmless")
        if option.takes_next_word:
            if limits.separates_values and len(text) > 2:
                raise Harmful(f"-{letter} does not stand alone")
            return "-" + letter, text[index:], index == len(text)
    return text, "", False


def check_words(words: Sequence[Word], program: ProgramRow) -> ParsedWords:
    """Check a command's words against the row of its program, or of its subcommand.
    Raises Harmful.
    """
    limits = _parse_limits(program.reads or "")
    parsed = parse_words(words, program.known_options, limits)
    if limits.needs_option and not parsed.options:
        raise Harmful("it may run what it reads from its input")
    if parsed.highest_operand_count > limits.max_operands:
        raise Harmful("it has more words than it reads")
    pattern = program.operand_pattern
    for operand in parsed.operands:
        if pattern and not (operand.is_known and re.fullmatch(pattern, operand.value)):
            raise Harmful(f"{operand.text} is not known to be harmless")
    return parsed
