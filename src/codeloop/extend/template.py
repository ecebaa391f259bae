"""Parses and fills the templates of slash commands,
and splits the arguments that are typed after them. Pure.
"""

import re

from msgspec import Struct

# Not compiled here but by `re` when first used, which caches them: most runs use no command.
_PLACEHOLDER = r"(?<!\\)\$(ARGUMENTS\b|[1-9](?![0-9]))"
# `\$1` stands for the text `$1`: `awk '{print \$1}'`.
_PLACEHOLDER_OR_TEXT = r"(\\?)\$(ARGUMENTS\b|[1-9](?![0-9]))"
# A shell line, such as !`git log -5`.
_SHELL = r"!`([^`\n]+)`"
# A typed word, whose quotes may hold blanks: `"a b"`, `--name='x y'`;
# a lone quote is part of its word.
_WORD = r"""(?:[^\s"']|"[^"]*"|'[^']*'|["'])+"""
_QUOTED = r""""([^"]*)"|'([^']*)'"""


class LiteralPiece(Struct, frozen=True):
    """A piece of a filled template that is used as it is."""

    text: str


class ShellPiece(Struct, frozen=True):
    """A shell line of a template, to be replaced by its output."""

    line: str


Piece = LiteralPiece | ShellPiece


def list_placeholders(template: str) -> list[str]:
    """Return the placeholders of a template: `$1`, `$2` in their order, then `$ARGUMENTS`."""
    placeholders = {match[0] for match in re.finditer(_PLACEHOLDER, template)}
    return sorted(placeholders, key=lambda hint: (hint == "$ARGUMENTS", hint))


def split_arguments(arguments: str) -> list[str]:
    """Split typed arguments at blanks. Quotes keep words together, and are removed;
    a lone quote is kept.
    """
    return [
        re.sub(_QUOTED, lambda match: match[1] if match[1] is not None else match[2], word)
        for word in re.findall(_WORD, arguments)
    ]


def find_word_spans(arguments: str) -> list[tuple[int, int]]:
    """Return the start and end of each typed word."""
    return [match.span() for match in re.finditer(_WORD, arguments)]


def expand_template(template: str, arguments: str) -> tuple[Piece, ...]:
    """Fill in a template and return its pieces.

    `$ARGUMENTS` is everything as typed; `$1` to `$9` are words, the highest one takes the rest. For
    a template without placeholders, the arguments are appended. Shell lines are those of the
    template alone, but arguments are filled in there, too.
    """
    # Shell lines are taken from the template before arguments are filled in: an argument
    # with !`...` is never run.
    arguments = arguments.strip()
    words = split_arguments(arguments)
    numbers = [int(hint[1:]) for hint in list_placeholders(template) if hint != "$ARGUMENTS"]
    last = max(numbers, default=0)

    def fill(text: str) -> str:
        return re.sub(_PLACEHOLDER_OR_TEXT, get_value, text)

    def get_value(match: re.Match[str]) -> str:
        if match[1]:
            return match[0][1:]
        if match[2] == "ARGUMENTS":
            return arguments
        number = int(match[2])
        return " ".join(words[number - 1 :] if number == last else words[number - 1 : number])

    pieces: list[Piece] = []
    end = 0
    for match in re.finditer(_SHELL, template):
        pieces += [LiteralPiece(fill(template[end : match.start()])), ShellPiece(fill(match[1]))]
        end = match.end()
    rest = fill(template[end:])
    if arguments and not list_placeholders(template):
        rest = f"{rest.rstrip()}\n\n{arguments}"
    return tuple(piece for piece in (*pieces, LiteralPiece(rest)) if piece != LiteralPiece(""))
