"""File patterns (globs): `*` and `?` within a name, `**` across folders, `[a-z]`, `{ts,tsx}`.
Pure.
"""

import re
from functools import lru_cache

from codeloop.kit.text.patterns import compile_once

# The most patterns that the braces of one pattern expand to, and their characters together:
# compiling takes some microseconds for each.
_MAX_ALTERNATIVES = 500
_MAX_EXPANSION_CHARS = 6_000
_WILDCARD_CHARACTERS = frozenset("*?[{")
_CLASS_PATTERN = r"\[:(\w+):\]"
_CLASS_RANGES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "upper": "A-Z",
    "space": r"\s",
    "xdigit": "0-9A-Fa-f",
    "punct": r"!-/:-@\[-`{-~",
}


def has_wildcard(text: str) -> bool:
    """Return whether the text is a pattern rather than a plain path."""
    return not _WILDCARD_CHARACTERS.isdisjoint(text)


def split_root(pattern: str) -> tuple[str, str]:
    """Split a pattern into the folders that hold no wildcard and the rest: `/a/b/*.py` -> (`/a/b`,
    `*.py`).
    """
    names = pattern.split("/")
    # The last name is never part of the root, even if it is plain.
    root_size = next(
        (index for index, name in enumerate(names) if has_wildcard(name)), len(names) - 1
    )
    root = "/".join(names[:root_size])
    if not root and pattern.startswith("/") and root_size:
        root = "/"
    return root, "/".join(names[root_size:])


def quote_brackets(pattern: str) -> str:
    """Return a pattern in which brackets, and braces around one name, stand for themselves:
    `[lang]`, `page.{id}.ts`.

    >>> quote_brackets("app/[id]/*.{ts,tsx}")
    'app/[[]id[]]/*.{ts,tsx}'
    """
    return re.sub(r"\\.|\[[\[\]{}]\]|\[([^\[\]/]*)\]|\{([^{},/]*)\}", _quote_group, pattern)


def _quote_group(group: re.Match[str]) -> str:
    if group[1] is not None:
        return f"[[]{group[1]}[]]"
    # What was quoted already stays.
    return group[0] if group[2] is None else f"[{{]{group[2]}[}}]"


@lru_cache(maxsize=256)
def compile_glob(pattern: str) -> re.Pattern[str]:
    """Return the expression that a whole relative path must match.
    Raises ValueError for a pattern that is not valid.

    Atomic groups (`(?>...)`) prevent backtracking, so that none takes more than the
    square of a path's length.
    """
    alternatives = _expand_braces(pattern)
    try:
        body = "|".join(make_regex(plain) for plain in alternatives)
        return re.compile(f"(?:{body})", re.DOTALL)
    except (ValueError, re.error) as error:
        raise ValueError(f"the pattern {pattern} is not valid: {error}") from error


def compile_folders(pattern: str) -> re.Pattern[str]:
    """Return the expression of the relative folders below which a path may match a valid pattern:
    for `a/*/b.py` that of `a` and `a/*`.
    """
    paths = [plain.split("/") for plain in _expand_braces(pattern)]
    folders = {
        "/".join(names[:size])
        for names in paths
        for size in range(1, len(names) + (names[-1] == "**"))
    }
    body = "|".join(make_regex(each) for each in sorted(folders))
    return re.compile(f"(?:{body})", re.DOTALL)


def _expand_braces(pattern: str) -> list[str]:
    """Return the patterns without braces that one with braces stands for: `a.{js,ts}` -> `a.js`,
    `a.ts`.
    """
    pending, plain, size = [pattern], list[str](), len(pattern)
    while pending:
        if size > _MAX_EXPANSION_CHARS:
            raise ValueError(
                f"the pattern {pattern[:100]} expands to more than {_MAX_EXPANSION_CHARS:,} characters"
            )
        if len(pending) + len(plain) > _MAX_ALTERNATIVES:
            raise ValueError(
                f"the pattern {pattern} expands to more than {_MAX_ALTERNATIVES} patterns"
            )
        partly_expanded = pending.pop()
        start = _find_unescaped(partly_expanded, 0, "{}")
        if start < 0:
            plain.append(partly_expanded)
            continue
        if partly_expanded[start] == "}":
            raise ValueError(f"the pattern {pattern} has a }} that nothing opens")
        alternatives, end = _split_alternatives(partly_expanded, start, pattern)
        expanded = [partly_expanded[:start] + each + partly_expanded[end:] for each in alternatives]
        pending += expanded
        size += sum(map(len, expanded)) - len(partly_expanded)
    return plain


def _split_alternatives(text: str, start: int, pattern: str) -> tuple[list[str], int]:
    """Split the text between the brace at `start` and its partner at the commas;
    return the parts and where it ends.

    `pattern`: the whole pattern, which the error names.
    """
    alternatives: list[str] = []
    depth, alternative_start = 0, start + 1
    index = start + 1
    while (index := _find_unescaped(text, index, "{},")) >= 0:
        if text[index] == "{":
            depth += 1
        elif depth == 0:
            alternatives.append(text[alternative_start:index])
            alternative_start = index + 1
            if text[index] == "}":
                return alternatives, index + 1
        elif text[index] == "}":
            depth -= 1
        index += 1
    raise ValueError(f"the pattern {pattern} has a {{ that is never closed")


def _find_unescaped(text: str, start: int, characters: str) -> int:
    """Return the index of the next of some characters,
    outside of classes and not after a backslash; -1: none.
    """
    index = start
    while index < len(text):
        if text[index] in characters:
            return index
        if text[index] == "\\":
            index += 1
        elif text[index] == "[":
            # A `]` that comes first in a class is part of it: `[]]`, `[!]]`.
            end = text.find("]", index + 2 + (text[index + 1 : index + 2] in {"!", "^"}))
            index = max(end, index)
        index += 1
    return -1


def make_regex(plain: str) -> str:
    """Return the expression of a pattern in which braces are plain characters.
    Raises ValueError for a bad class.

    >>> make_regex("src/**/a?")
    'src/(?:.*?/)??a[^/]'
    """
    (_, first_pieces), *parts = _split_at_double_stars(plain)
    body = _join_pieces(first_pieces)
    for number, (opener, pieces) in enumerate(parts, 1):
        text = opener + _join_pieces(pieces)
        body += text if number == len(parts) else f"(?>{text})"
    return body


def _split_at_double_stars(plain: str) -> list[tuple[str, list[str]]]:
    """Split a pattern at each `**` into parts: the expression of that `**`,
    and the pieces after it.

    The first part has no `**` (""). A piece is an expression, `*` or `/`.
    """
    parts: list[tuple[str, list[str]]] = [("", [])]
    index = 0
    while index < len(plain):
        pieces = parts[-1][1]
        match plain[index]:
            case "[":
                piece, index = _translate_class(plain, index)
                pieces.append(piece)
                continue
            case "?":
                pieces.append("[^/]")
            case "\\" if index + 1 < len(plain):
                index += 1
                pieces.append(re.escape(plain[index]))
            case "*":
                end = index + len(plain[index:]) - len(plain[index:].lstrip("*"))
                if end - index < 2 or not (index == 0 or plain[index - 1] == "/"):
                    # `a**` is `a*`: two stars cross folders only as a whole name.
                    pieces.append("*")
                elif plain[end : end + 1] == "/":
                    parts.append(("(?:.*?/)??", []))
                    end += 1
                else:
                    parts.append((".*?", []))
                index = end
                continue
            case "/":
                pieces.append("/")
            case char:
                pieces.append(re.escape(char))
        index += 1
    return parts


def _join_pieces(pieces: list[str]) -> str:
    """Join pieces. In each name of the path, every `*` but the last takes as little
    as possible and never more.
    """
    body, pending = "", list[str]()
    for piece in [*pieces, "/"]:
        if piece != "/":
            pending.append(piece)
            continue
        body += _join_name_pieces(pending) + "/"
        pending = []
    return body[:-1]


def _join_name_pieces(pieces: list[str]) -> str:
    """Join the pieces of one name, as `_join_pieces` says."""
    # The expressions between the stars.
    runs = [""]
    for piece in pieces:
        if piece == "*":
            runs.append("")
        else:
            runs[-1] += piece
    first, *parts = runs
    middle = "".join(f"(?>[^/]*?{run})" for run in parts[:-1] if run)
    return first + middle + (f"[^/]*{parts[-1]}" if parts else "")


def _translate_class(glob: str, start: int) -> tuple[str, int]:
    """Translate the bracket expression at `start`;
    return its regular expression and where it ends.
    """
    is_negated = glob[start + 1 : start + 2] in {"!", "^"}
    first = start + 1 + is_negated
    body = ""
    index = first
    # A `]` that comes first is part of the class.
    while index < len(glob) and (index == first or glob[index] != "]"):
        match = compile_once(_CLASS_PATTERN).match(glob, index)
        if match is not None:
            if match[1] not in _CLASS_RANGES:
                raise ValueError(f"there is no class {match[0]}")
            body += _CLASS_RANGES[match[1]]
            index = match.end()
            continue
        # A range such as `a-z`; at either end, the hyphen stands for itself.
        if glob[index] == "-" and body and index + 1 < len(glob) and glob[index + 1] != "]":
            body += "-"
            index += 1
            continue
        if glob[index] == "\\":
            index += 1
        body += re.escape(glob[index : index + 1])
        index += 1
    if index >= len(glob):
        raise ValueError("a [ is never closed")
    # No class matches a slash, not even `[!a]`.
    return f"(?!/)[{'^' if is_negated else ''}{body}]", index + 1
