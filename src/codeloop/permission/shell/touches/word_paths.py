"""Expands a word of a shell line to the paths that it stands for, as far as the line shows them."""

import re
from collections.abc import Mapping, Sequence
from itertools import islice, product

from codeloop.kit.wildcard import ANY_TEXT, ANY_WORDS
from codeloop.permission.shell.word import Word

ANYWHERE = ANY_WORDS
"""A path that is only known at run time. Within other paths the mark `ANY_TEXT` stands for characters of one name."""
# Limits of one word, which is ANYWHERE beyond them: nested braces multiply, so a short word may stand for millions.
MAX_EXPANSIONS, MAX_CHARS, MAX_BRACES = 64, 4_096, 16
_OTHER_HOME = re.compile(r"~[-+\d]")
_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
_PLAIN_VALUE = re.compile(r"[\w./:@%+,=~-]+", re.ASCII)
_NUMERIC_VARIABLE = re.compile(r"\$[$!?#]")
_FOLDER_VARIABLE = re.compile(r"\"?\$(?:(HOME|PWD)|\{(HOME|PWD)\})(\"?)(?=/|$|\"$)")
_QUOTED_ESCAPE = re.compile(r'\\([$`"\\])|\\\n', re.DOTALL)


VariableValues = Mapping[str, tuple[str, ...]]
NO_VARIABLES: VariableValues = {}


class _UnknownPath(Exception):
    """The word is only known at run time."""


def expand_word(
    word: Word, roots: Sequence[str] = (ANYWHERE,), values: VariableValues = NO_VARIABLES
) -> tuple[str, ...]:
    """Return the words that a word becomes, each as a path: absolute, beginning with `~`, or relative.

    Braces are expanded, `*`, `?` and `[...]` become `ANY_TEXT`, `$HOME` is `~` and `$PWD` is `.`. A word with anything
    else in it that depends on running the line is ANYWHERE. `roots`: what `{}` of `find` stands for. `values`: the
    paths that variables stand for, as far as they are known.
    """
    if word.is_known:
        if not word.value.startswith("~"):
            return (word.value,)
        if not word.source.startswith("~"):
            # A quoted `~` is a file of that name.
            return (f"./{word.value}",)
        return (ANYWHERE if _OTHER_HOME.match(word.value) else word.value,)
    if "{}" in word.source and ANY_TEXT in word.value:
        return tuple(roots) if word.source == "{}" else (ANYWHERE,)
    if not word.source or len(word.source) > MAX_CHARS or word.source.count("{") > MAX_BRACES:
        return (ANYWHERE,)
    names = dict.fromkeys(match[1] or match[2] for match in _VARIABLE.finditer(word.source))
    choices = [[(name, value) for value in values[name]] for name in names if values.get(name)]
    paths: list[str] = []
    try:
        for choice in islice(product(*choices), MAX_EXPANSIONS + 1):
            paths += _expand_braces(_tokenize(word.source, dict(choice)))
    except _UnknownPath:
        return (ANYWHERE,)
    return tuple(dict.fromkeys(paths)) if 0 < len(paths) <= MAX_EXPANSIONS else (ANYWHERE,)


Token = tuple[str, bool]
"""Characters, and whether they are syntax (of a brace or a glob), not text."""


def _tokenize(source: str, values: Mapping[str, str]) -> list[Token]:
    """Split a word's source. Raises _UnknownPath."""
    tokens: list[Token] = []
    match = _FOLDER_VARIABLE.match(source)
    position = 0
    if match:
        tokens.append(("~" if "HOME" in match[0] else ".", False))
        position = match.end()
        is_open, closed = source.startswith('"'), match[0].endswith('"')
        if is_open != closed:
            position = _read_double_quotes(source, position, tokens, values)
    elif source.startswith("~"):
        if _OTHER_HOME.match(source):
            raise _UnknownPath
        tokens.append(("~", False))
        position = 1
    while position < len(source):
        position = _read_token(source, position, tokens, values)
    return tokens


def _read_token(source: str, position: int, tokens: list[Token], values: Mapping[str, str]) -> int:
    """Add the token at a position, and return where the next one begins."""
    char = source[position]
    if char == "'":
        end = source.find("'", position + 1)
        if end < 0:
            raise _UnknownPath
        tokens.append((source[position + 1 : end], False))
        return end + 1
    if char == '"':
        return _read_double_quotes(source, position + 1, tokens, values)
    if char == "\\":
        following = source[position + 1 : position + 2]
        tokens.append(("" if following == "\n" else following, False))
        return position + 2
    if number := _NUMERIC_VARIABLE.match(source, position):
        tokens.append((ANY_TEXT, False))
        return number.end()
    if (variable := _VARIABLE.match(source, position)) and (value := values.get(variable[1] or variable[2])):
        # Unquoted, a value with blanks or wildcards becomes other words.
        if not _PLAIN_VALUE.fullmatch(value) or (tokens and value.startswith("~")):
            raise _UnknownPath
        tokens.append((value, False))
        return variable.end()
    if char in "$`()<>|&;":
        raise _UnknownPath
    if char == "[":
        end = source.find("]", position + 2)
        if end > 0 and not re.search(r"[/$`'\"\\]", source[position:end]):
            tokens.append((ANY_TEXT, False))
            return end + 1
    if char in "*?":
        tokens.append((ANY_TEXT, False))
    else:
        tokens.append((char, char in "{},"))
    return position + 1


def _read_double_quotes(source: str, position: int, tokens: list[Token], values: Mapping[str, str]) -> int:
    """Add the text in double quotes from behind the first one. Raises _UnknownPath."""
    text = ""
    while position < len(source):
        char = source[position]
        if char == '"':
            tokens.append((text, False))
            return position + 1
        if escape := _QUOTED_ESCAPE.match(source, position):
            text += escape[1] or ""
            position = escape.end()
        elif number := _NUMERIC_VARIABLE.match(source, position):
            text += ANY_TEXT
            position = number.end()
        elif (variable := _VARIABLE.match(source, position)) and (value := values.get(variable[1] or variable[2])):
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


def _expand_braces(tokens: list[Token]) -> list[str]:
    """Return the words that brace expansion makes of one. Raises _UnknownPath beyond MAX_EXPANSIONS."""
    open_index = next(
        (at for at, token in enumerate(tokens) if token == ("{", True) and _find_closing(tokens, at)), None
    )
    if open_index is None:
        return ["".join(text for text, _ in tokens)]
    closed = _find_closing(tokens, open_index) or 0
    inside = tokens[open_index + 1 : closed]
    parts = _split_alternatives(inside)
    # Without a comma it is a sequence (`{1..9}`), or plain text.
    if len(parts) == 1:
        if ".." in "".join(text for text, _ in inside):
            return _expand_braces([*tokens[:open_index], (ANY_TEXT, False), *tokens[closed + 1 :]])
        plain: list[Token] = [("{", False), *inside, ("}", False)]
        return _expand_braces([*tokens[:open_index], *plain, *tokens[closed + 1 :]])
    words: list[str] = []
    for part in parts:
        words += _expand_braces([*tokens[:open_index], *part, *tokens[closed + 1 :]])
        if len(words) > MAX_EXPANSIONS:
            raise _UnknownPath
    return words


def _find_closing(tokens: list[Token], open_index: int) -> int | None:
    """Return the index of the brace that closes the one at an index, or None."""
    depth = 0
    for at in range(open_index, len(tokens)):
        depth += (tokens[at] == ("{", True)) - (tokens[at] == ("}", True))
        if depth == 0:
            return at
    return None


def _split_alternatives(inside: list[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in inside:
        depth += (token == ("{", True)) - (token == ("}", True))
        if token == (",", True) and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts
