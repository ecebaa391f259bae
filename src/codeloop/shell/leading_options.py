"""Finds the subcommand of a program, or the command that it runs, behind its own options.

For example `git -C d push`: behind the options of `git` comes the subcommand `push`.
"""

from collections.abc import Mapping, Sequence

from codeloop.shell.options import Option
from codeloop.shell.word import Word


def find_operand(words: Sequence[Word], options: Mapping[str, Option]) -> int | None:
    """Return the index of the first word behind the options;
    None when the options are not all known.

    Without such a word it is the number of words, or more where the last option lacks its value.
    """
    index = 1
    while index < len(words):
        value = words[index].value
        if not words[index].is_known:
            return None
        if value == "--":
            return index + 1
        if not value.startswith("-") or (value == "-" and "-" not in options):
            return index
        word_count = _count_words(value, options)
        if word_count is None:
            return None
        index += word_count
    return index


def _count_words(text: str, options: Mapping[str, Option]) -> int | None:
    """Return the number of words that an option takes up, None when it is not known."""
    if text in options:
        return 2 if options[text].takes_next_word else 1
    if text.startswith("--"):
        return 1 if "=" in text and text.partition("=")[0] in options else None
    if "-#" in options and text[1:].isdigit():
        return 1
    for index, letter in enumerate(text[1:], 2):
        option = options.get("-" + letter)
        if option is None:
            return None
        if option.takes_next_word:
            return 1 if text[index:] else 2
    return 1
