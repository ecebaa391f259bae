"""Expands a word of a shell line to the paths that it stands for, as far as the line shows them."""

import re
from collections.abc import Mapping, Sequence
from itertools import islice, product
from typing import NamedTuple

from codeloop.kit.wildcard import ANY_TEXT, ANY_WORDS
from codeloop.shell.word import Word

ANYWHERE = ANY_WORDS
"""A path that is only known at run time. Within other paths the mark `ANY_TEXT` stands
for characters of one name.
"""
# Limits of one word, which is ANYWHERE beyond them: nested braces multiply,
# so a short word may stand for millions.
MAX_EXPANSIONS, MAX_CHARS, MAX_BRACES = 64, 4_096, 16
# `~+`, `~-` and `~2`: folders that the shell is or was in.
_SHELL_FOLDER = r"~[-+\d]"
_VARIABLE = r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})"
_PLAIN_VALUE = r"(?a)[\w./:@%+,=~-]+"
# `$$`, `$!`, `$?` and `$#` are numbers.
_NUMERIC_VARIABLE = r"\$[$!?#]"
# `$HOME/x`, `"$HOME"/x`, `"$HOME/x"`, `${PWD}`
_FOLDER_VARIABLE = r"\"?\$(?:(HOME|PWD)|\{(HOME|PWD)\})(\"?)(?=/|$|\"$)"
_QUOTED_ESCAPE = r'(?s)\\([$`"\\])|\\\n'
# `[a-z]`, `[!]x]`, `[[:alpha:]_]`. The bound keeps a word of many open brackets from
# being searched again and again.
_BRACKET = r"""\[[!^]?\]?(?:\[:\w+:\]|\[(?![:.=])|[^][/$`'"\\]){1,200}+\]"""

# The rest of a name in which nothing is quoted, expanded or replaced.
_PLAIN_REST = r"""[^/$`'"\\{}()<>|&;]+(?=/|\Z)"""

VariableValues = Mapping[str, tuple[str, ...]]
NO_VARIABLES: VariableValues = {}


class _UnknownPath(Exception):
    """The word is only known at run time."""


def expand_word(
    word: Word, roots: Sequence[str] = (ANYWHERE,), values: VariableValues = NO_VARIABLES
) -> tuple[str, ...]:
    """Return the words that a word becomes, each as a path: absolute, beginning with `~`,
    or relative.

    Braces are expanded, `*`, `?` and `[...]` become `ANY_TEXT`, `$HOME` is `~` and `$PWD` is `.`. A
    word with anything else in it that depends on running the line is ANYWHERE. `roots`: what `{}`
    of `find` stands for. `values`: the paths that variables stand for, as far as they are known.
    """
    if word.is_known:
        if not word.value.startswith("~"):
            return (word.value,)
        if not word.source.startswith("~"):
            # A quoted `~` is a file of that name.
            return (f"./{word.value}",)
        return (ANYWHERE if re.match(_SHELL_FOLDER, word.value) else word.value,)
    if "{}" in word.source and ANY_TEXT in word.value:
        return tuple(roots) if word.source == "{}" else (ANYWHERE,)
    if not word.source or len(word.source) > MAX_CHARS or word.source.count("{") > MAX_BRACES:
        return (ANYWHERE,)
    names = dict.fromkeys(match[1] or match[2] for match in re.finditer(_VARIABLE, word.source))
    choices = [[(name, value) for value in values[name]] for name in names if values.get(name)]
    paths: list[str] = []
    try:
        for choice in islice(product(*choices), MAX_EXPANSIONS + 1):
            paths += _expand_braces(_tokenize(word.source, dict(choice)))
    except _UnknownPath:
        return (ANYWHERE,)
    return tuple(dict.fromkeys(paths)) if 0 < len(paths) <= MAX_EXPANSIONS else (ANYWHERE,)


class _Token(NamedTuple):
    """Characters of a word. `is_syntax`: they are a brace or a comma that braces may expand by,
    not text.
    """

    text: str
    is_syntax: bool = False


_OPEN_BRACE, _CLOSED_BRACE, _COMMA = (_Token(char, is_syntax=True) for char in "{},")


def _tokenize(source: str, values: Mapping[str, str]) -> list[_Token]:
    """Split a word's source. Raises _UnknownPath."""
    tokens: list[_Token] = []
    match = re.match(_FOLDER_VARIABLE, source)
    position = 0
    if match:
        tokens.append(_Token("~" if "HOME" in match[0] else "."))
        position = match.end()
        is_open, closed = source.startswith('"'), match[0].endswith('"')
        if is_open != closed:
            position = _read_double_quotes(source, position, tokens, values)
    elif source.startswith("~"):
        if re.match(_SHELL_FOLDER, source):
            raise _UnknownPath
        tokens.append(_Token("~"))
        position = 1
    while position < len(source):
        position = _read_token(source, position, tokens, values)
    return tokens


def _read_token(source: str, position: int, tokens: list[_Token], values: Mapping[str, str]) -> int:
    """Add the token at a position, and return where the next one begins. Raises _UnknownPath."""
    char = source[position]
    if char == "'":
        end = source.find("'", position + 1)
        if end < 0:
            raise _UnknownPath
        tokens.append(_Token(source[position + 1 : end]))
        return end + 1
    if char == '"':
        return _read_double_quotes(source, position + 1, tokens, values)
    if char == "\\":
        following = source[position + 1 : position + 2]
        tokens.append(_Token("" if following == "\n" else following))
        return position + 2
    if number := re.compile(_NUMERIC_VARIABLE).match(source, position):
        tokens.append(_Token(ANY_TEXT))
        return number.end()
    if (variable := re.compile(_VARIABLE).match(source, position)) and (
        value := values.get(variable[1] or variable[2])
    ):
        # Unquoted, a value with blanks or wildcards becomes other words.
        if not re.fullmatch(_PLAIN_VALUE, value) or (tokens and value.startswith("~")):
            raise _UnknownPath
        tokens.append(_Token(value))
        return variable.end()
    if char in "$`()<>|&;":
        raise _UnknownPath
    if char == "[":
        if (bracket := re.compile(_BRACKET).match(source, position)) and not (
            "{" in source and re.search("[{},]", bracket[0])
        ):
            tokens.append(_Token(ANY_TEXT))
            return bracket.end()
        # It may still be one, of which quotes or braces hide the end. A bracket never contains a
        # slash, so any text may stand for a plain rest of the name, as in
        # `app/[[...slug]]/page.tsx`.
        end = source.find("]", position + 2)
        if end > 0 and "/" not in source[position:end]:
            rest = re.compile(_PLAIN_REST).match(source, position)
            if rest is None:
                raise _UnknownPath
            tokens.append(_Token(ANY_TEXT))
            return rest.end()
    if char in "*?":
        tokens.append(_Token(ANY_TEXT))
    else:
        tokens.append(_Token(char, is_syntax=char in "{},"))
    return position + 1


def _read_double_quotes(
    source: str, position: int, tokens: list[_Token], values: Mapping[str, str]
) -> int:
    """Add the text in double quotes from behind the first one. Raises _UnknownPath."""
    text = ""
    while position < len(source):
        char = source[position]
        if char == '"':
            tokens.append(_Token(text))
            return position + 1
        if escape := re.compile(_QUOTED_ESCAPE).match(source, position):
            text += escape[1] or ""
            position = escape.end()
        elif number := re.compile(_NUMERIC_VARIABLE).match(source, position):
            text += ANY_TEXT
            position = number.end()
        elif (variable := re.compile(_VARIABLE).match(source, position)) and (
            value := values.get(variable[1] or variable[2])
        ):
            if value.startswith("~") and (tokens or text):
                raise _UnknownPath
            text += value
            position = variable.end()
        elif char in "$`":
            raise _UnknownPath
        else:
            text += char
            position += 1
    raise _UnknownPath


def _expand_braces(tokens: list[_Token]) -> list[str]:
    """Return the words that brace expansion makes of one.
    Raises _UnknownPath beyond MAX_EXPANSIONS.
    """
    open_index = next(
        (
            index
            for index, token in enumerate(tokens)
            if token == _OPEN_BRACE and _find_closing(tokens, index)
        ),
        None,
    )
    if open_index is None:
        return ["".join(token.text for token in tokens)]
    closed_index = _find_closing(tokens, open_index) or 0
    inside = tokens[open_index + 1 : closed_index]
    parts = _split_alternatives(inside)
    # Without a comma it is a sequence (`{1..9}`), or plain text.
    if len(parts) == 1:
        if ".." in "".join(token.text for token in inside):
            return _expand_braces(
                [*tokens[:open_index], _Token(ANY_TEXT), *tokens[closed_index + 1 :]]
            )
        plain = [_Token("{"), *inside, _Token("}")]
        return _expand_braces([*tokens[:open_index], *plain, *tokens[closed_index + 1 :]])
    words: list[str] = []
    for part in parts:
        words += _expand_braces([*tokens[:open_index], *part, *tokens[closed_index + 1 :]])
        if len(words) > MAX_EXPANSIONS:
            raise _UnknownPath
    return words


def _find_closing(tokens: list[_Token], open_index: int) -> int | None:
    """Return the index of the brace that closes the one at an index, or None."""
    depth = 0
    for index in range(open_index, len(tokens)):
        depth += (tokens[index] == _OPEN_BRACE) - (tokens[index] == _CLOSED_BRACE)
        if depth == 0:
            return index
    return None


def _split_alternatives(inside: list[_Token]) -> list[list[_Token]]:
    parts: list[list[_Token]] = [[]]
    depth = 0
    for token in inside:
        depth += (token == _OPEN_BRACE) - (token == _CLOSED_BRACE)
        if token == _COMMA and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts
