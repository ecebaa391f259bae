"""File patterns (globs): `*` and `?` within a name, `**` across folders, `[a-z]`, `{ts,tsx}`. Pure."""

import re
from functools import lru_cache

_MAX_ALTERNATIVES = 500
# Compiling each takes some microseconds.
_MAX_EXPANSION_CHARS = 6_000
_WILDCARD_CHARACTERS = frozenset("*?[{")
_CLASS_PATTERN = re.compile(r"\[:(\w+):\]")
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
    """Split a pattern into the folders that hold no wildcard and the rest: `/a/b/*.py` -> (`/a/b`, `*.py`)."""
    steps = pattern.split("/")
    plain = next((at for at, step in enumerate(steps) if has_wildcard(step)), len(steps) - 1)
    root = "/".join(steps[:plain])
    return root or ("/" if pattern.startswith("/") and plain else ""), "/".join(steps[plain:])


@lru_cache(maxsize=256)
def compile_glob(pattern: str) -> re.Pattern[str]:
    """Return the expression that a whole relative path must match. Raises ValueError for one that is not valid.

    Atomic groups (`(?>...)`) prevent backtracking, so that none takes more than the square of a path's length.
    """
    alternatives = _expand_braces(pattern)
    try:
        body = "|".join(make_regex(plain) for plain in alternatives)
        return re.compile(f"(?:{body})", re.DOTALL)
    except (ValueError, re.error) as error:
        raise ValueError(f"the pattern {pattern} is not valid: {error}") from error


def _expand_braces(pattern: str) -> list[str]:
    """Return the patterns without braces that one with braces stands for."""
    pending, plain, size = [pattern], list[str](), len(pattern)
    while pending:
        if size > _MAX_EXPANSION_CHARS:
            raise ValueError(f"the pattern {pattern[:100]} expands to more than {_MAX_EXPANSION_CHARS:,} characters")
        if len(pending) + len(plain) > _MAX_ALTERNATIVES:
            raise ValueError(f"the pattern {pattern} expands to more than {_MAX_ALTERNATIVES} patterns")
        one = pending.pop()
        start = _find_unescaped(one, 0, "{}")
        if start < 0:
            plain.append(one)
            continue
        if one[start] == "}":
            raise ValueError(f"the pattern {pattern} has a }} that nothing opens")
        options, end = _split_alternatives(one, start, pattern)
        pending += [one[:start] + option + one[end:] for option in options]
        size += sum(map(len, options)) + (len(one) - end + start) * len(options) - len(one)
    return plain


def _split_alternatives(one: str, start: int, pattern: str) -> tuple[list[str], int]:
    """Split the text between the brace at `start` and its partner at the commas; return it and the end."""
    options, depth, branch_start, at = list[str](), 0, start + 1, start + 1
    while (at := _find_unescaped(one, at, "{},")) >= 0:
        if one[at] == "{":
            depth += 1
        elif depth == 0:
            options.append(one[branch_start:at])
            branch_start = at + 1
            if one[at] == "}":
                return options, at + 1
        elif one[at] == "}":
            depth -= 1
        at += 1
    raise ValueError(f"the pattern {pattern} has a {{ that is never closed")


def _find_unescaped(text: str, at: int, characters: str) -> int:
    """Return the index of the next of some characters, outside of classes and not after a backslash; -1: none."""
    while at < len(text):
        if text[at] in characters:
            return at
        if text[at] == "\\":
            at += 1
        elif text[at] == "[":
            end = text.find("]", at + 2 + (text[at + 1 : at + 2] in {"!", "^"}))
            at = max(end, at)
        at += 1
    return -1


def make_regex(plain: str) -> str:
    """Return the expression of a pattern in which braces are plain characters. Raises ValueError for a bad class."""
    before, *parts = _split_at_double_stars(plain)
    body = _join_pieces(before[1])
    for number, (opener, pieces) in enumerate(parts, 1):
        text = opener + _join_pieces(pieces)
        body += text if number == len(parts) else f"(?>{text})"
    return body


def _split_at_double_stars(plain: str) -> list[tuple[str, list[str]]]:
    """Split a pattern at each `**` into parts: an opening expression, and pieces (an expression, `*` or `/`)."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    at = 0
    while at < len(plain):
        pieces = parts[-1][1]
        match plain[at]:
            case "[":
                piece, at = _translate_class(plain, at)
                pieces.append(piece)
                continue
            case "?":
                pieces.append("[^/]")
            case "\\" if at + 1 < len(plain):
                at += 1
                pieces.append(re.escape(plain[at]))
            case "*":
                end = at + len(plain[at:]) - len(plain[at:].lstrip("*"))
                if end - at < 2 or not (at == 0 or plain[at - 1] == "/"):
                    # `a**` is `a*`: two stars cross folders only as a whole name.
                    pieces.append("*")
                elif plain[end : end + 1] == "/":
                    parts.append(("(?:.*?/)??", []))
                    end += 1
                else:
                    parts.append((".*?", []))
                at = end
                continue
            case "/":
                pieces.append("/")
            case char:
                pieces.append(re.escape(char))
        at += 1
    return parts


def _join_pieces(pieces: list[str]) -> str:
    """Join pieces. In each name of the path every `*` but the last takes as little as possible, for good."""
    body, pending = "", list[str]()
    for piece in [*pieces, "/"]:
        if piece != "/":
            pending.append(piece)
            continue
        body += _join_name_pieces(pending) + "/"
        pending = []
    return body[:-1]


def _join_name_pieces(pieces: list[str]) -> str:
    runs = [""]
    for piece in pieces:
        if piece == "*":
            runs.append("")
        else:
            runs[-1] += piece
    first, *parts = runs
    middle = "".join(f"(?>[^/]*?{run})" for run in parts[:-1] if run)
    return first + middle + (f"[^/]*{parts[-1]}" if parts else "")


def _translate_class(glob: str, at: int) -> tuple[str, int]:
    """Translate the bracket expression at `at`; returns its regular expression and where it ends."""
    start = at + 1
    is_negated = glob[start : start + 1] in {"!", "^"}
    here = start + is_negated
    body = ""
    while here < len(glob) and (here == start + is_negated or glob[here] != "]"):
        match = _CLASS_PATTERN.match(glob, here)
        if match is not None:
            if match[1] not in _CLASS_RANGES:
                raise ValueError(f"there is no class {match[0]}")
            body, here = body + _CLASS_RANGES[match[1]], match.end()
            continue
        if glob[here] == "-" and body and here + 1 < len(glob) and glob[here + 1] != "]":
            body, here = body + "-", here + 1
            continue
        here += glob[here] == "\\"
        body, here = body + re.escape(glob[here : here + 1]), here + 1
    if here >= len(glob):
        raise ValueError("a [ is never closed")
    # No class matches a slash, not even `[!a]`.
    return f"(?!/)[{'^' if is_negated else ''}{body}]", here + 1
