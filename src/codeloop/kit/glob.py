"""File patterns as people write them: `*` and `?` within a name, `**` across folders, `[a-z]`, `{ts,tsx}`. Pure."""

import re
from functools import lru_cache

_MAGIC = frozenset("*?[{")


def has_magic(text: str) -> bool:
    """Tell whether the text is a pattern rather than a plain path."""
    return not _MAGIC.isdisjoint(text)


def split_root(pattern: str) -> tuple[str, str]:
    """Split a pattern into the folders that hold no wildcard and the rest: `/a/b/*.py` -> (`/a/b`, `*.py`)."""
    steps = pattern.split("/")
    plain = next((at for at, step in enumerate(steps) if has_magic(step)), len(steps) - 1)
    root = "/".join(steps[:plain])
    return root or ("/" if pattern.startswith("/") and plain else ""), "/".join(steps[plain:])


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """Give the expression that a whole relative path must match. Raises ValueError for one that is not valid."""
    body, at = _alternatives(pattern, 0, nested=False)
    if at < len(pattern):
        raise ValueError(f"the pattern {pattern} has a }} that nothing opens")
    try:
        return re.compile(body, re.DOTALL)
    except re.error as error:
        raise ValueError(f"the pattern {pattern} is not valid: {error}") from error


def _alternatives(pattern: str, at: int, *, nested: bool) -> tuple[str, int]:
    options = [""]
    while at < len(pattern):
        char = pattern[at]
        if nested and char == "}":
            return f"(?:{'|'.join(options)})", at + 1
        if not nested and char == "}":
            return options[0], at
        if nested and char == ",":
            options.append("")
            at += 1
            continue
        piece, at = _piece(pattern, at)
        options[-1] += piece
    if nested:
        raise ValueError(f"the pattern {pattern} has a {{ that is never closed")
    return options[0], at


def _piece(pattern: str, at: int) -> tuple[str, int]:
    match pattern[at]:
        case "{":
            return _alternatives(pattern, at + 1, nested=True)
        case "[":
            return _class(pattern, at + 1)
        case "?":
            return "[^/]", at + 1
        case "\\" if at + 1 < len(pattern):
            return re.escape(pattern[at + 1]), at + 2
        case "*":
            return _stars(pattern, at)
        case char:
            return re.escape(char), at + 1


def _stars(pattern: str, at: int) -> tuple[str, int]:
    end = at
    while pattern[end : end + 1] == "*":
        end += 1
    starts_step = at == 0 or pattern[at - 1] in "/{,"
    if end - at < 2 or not starts_step:
        return "[^/]*", end
    if pattern[end : end + 1] == "/":
        return "(?:.*/)?", end + 1
    return ".*", end


def _class(pattern: str, at: int) -> tuple[str, int]:
    negated = pattern[at : at + 1] in {"!", "^"}
    start = at + negated
    end = pattern.find("]", start + 1)
    if end < 0:
        raise ValueError(f"the pattern {pattern} has a [ that is never closed")
    members = pattern[start:end].replace("\\", "\\\\").replace("[", "\\[").replace("&", "\\&").replace("~", "\\~")
    members = members.replace("|", "\\|").replace("]", "\\]").replace("^", "\\^")
    return (f"[^/{members}]" if negated else f"[{members}]"), end + 1
