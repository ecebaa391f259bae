"""Text from models, files and programs, made safe to print: nothing in it can steer a terminal or hide."""

import re

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ud800-\udfff]"
)


def inert(text: str) -> str:
    """Return the text with control, bidirectional and zero-width characters shown by name; line feeds and tabs stay."""
    return _HIDDEN.sub(_shown, text)


def inert_json(text: str) -> str:
    """Return JSON in which such characters are written as escapes; its values stay the same."""
    return _HIDDEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def one_line(text: str, width: int) -> str:
    """Return the text inert, on one line, cut to `width` characters with an ellipsis."""
    line = " ".join(inert(text).split())
    return line if len(line) <= width else line[: max(0, width - 1)] + "…"


def _shown(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"<U+{code:04X}>"
