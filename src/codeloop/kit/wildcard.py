"""Wildcards of permission rules and file filters: `*` stands for any run of characters (slashes too), `?` for one."""

import re
from functools import lru_cache


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    body = "".join(".*" if char == "*" else "." if char == "?" else re.escape(char) for char in pattern)
    if body.endswith(r"\ .*"):
        body = body[: -len(r"\ .*")] + r"(\ .*)?"
    return re.compile(body, re.DOTALL)


def matches(text: str, pattern: str) -> bool:
    """Tell whether the whole text matches. A pattern that ends in ` *` also matches without anything after it.

    >>> matches("git status", "git status *")
    True
    """
    if pattern == "*":
        return True
    return _compiled(pattern).fullmatch(text) is not None
