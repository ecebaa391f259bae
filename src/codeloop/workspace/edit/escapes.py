r"""Backslash escapes that a model added to a text (`\n` for a line break), and taking them back.
Pure.
"""

import re

_ESCAPE = r"\\(n|t|r|\"|'|`|\$|\\)"
_ESCAPED_CHARACTERS = {"n": "\n", "t": "\t", "r": "\r"}
_QUOTES = "\"'`"


def unescape_backslashes(text: str) -> str:
    """Return a text with every escape resolved."""
    return re.sub(_ESCAPE, _resolve, text)


def unescape_alike(old: str, new: str) -> str | None:
    r"""Return the new text of an edit whose old text matched when its escapes were resolved.

    Only the kinds of escapes that the old text has are resolved. None: they may be meant as they
    are, since they stand beside other backslashes (`C:\new\temp`), beside real line breaks,
    or within quotes (`'a\n'`).
    """
    kinds = set(re.findall(_ESCAPE, old))
    if not kinds.intersection(re.findall(_ESCAPE, new)):
        return new
    others = [char for char in re.findall(r"(?s)\\(.)", new) if char not in kinds]
    has_both_breaks = "\n" in new and "\\n" in new
    return (
        None if others or has_both_breaks or _is_within_quotes(new) else unescape_backslashes(new)
    )


def _is_within_quotes(text: str) -> bool:
    """Return whether an escape stands between two quotes of one kind,
    where program code has escapes of its own.
    """
    quote, has_escape = "", False
    for match in re.finditer(rf"{_ESCAPE}|[{_QUOTES}]", text):
        char = match[1] or match[0]
        if char == quote:
            if has_escape:
                return True
            quote = ""
        elif char in _QUOTES:
            has_escape = has_escape and bool(quote)
            quote = quote or char
        else:
            has_escape = has_escape or char in _ESCAPED_CHARACTERS
    return False


def _resolve(match: re.Match[str]) -> str:
    return _ESCAPED_CHARACTERS.get(match[1], match[1])
