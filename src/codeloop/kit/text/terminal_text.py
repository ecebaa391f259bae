"""Makes text from models, files and programs safe to print: nothing in it can control
a terminal or stay invisible.
"""

import re
from collections.abc import Callable

from codeloop.kit.text.patterns import compile_once

_INVISIBLE_CHARACTERS = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    r"\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f"
    r"\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U0010eeee"
)
"""Controls, surrogates, and what Unicode calls Default_Ignorable, Cf (formats, bidirectional ones
too), Zl and Zp; the empty Braille pattern; and the character that stands for a
cell of a picture in kitty.
"""
_COMBINING_MARK = (
    r"[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u06d6-\u06dc\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    r"\u0f71-\u0f84\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\u302a-\u302f\u3099\u309a\ufe20-\ufe2f]"
)
"""Combining marks above or below a letter; too many of them on one letter
would cover other rows.
"""
_MAX_COMBINING_MARKS = 8
_SURPLUS_COMBINING_MARK = rf"(?<={_COMBINING_MARK}{{{_MAX_COMBINING_MARKS}}}){_COMBINING_MARK}"
_EMOJI = r"\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff"
_JOINING_SCRIPTS = r"\u0600-\u08ff\u0900-\u0dff"
_UNSAFE_PATTERN = f"[{_INVISIBLE_CHARACTERS}]|{_SURPLUS_COMBINING_MARK}"
# What an answer may hold: an emoji's variation selector and the joiner after it, and joiners within
# scripts that need them. Only a match with a group is unsafe. Compiled (and kept by `re`) when
# first used: only answers need it.
_UNSAFE_IN_ANSWER = (
    rf"(?<=[{_EMOJI}#*0-9])\ufe0f|(?<=[{_EMOJI}\ufe0f])\u200d|(?<=[{_JOINING_SCRIPTS}])[\u200c\u200d]"
    rf"|([{_INVISIBLE_CHARACTERS}]|{_SURPLUS_COMBINING_MARK})"
)


def escape_controls(text: str) -> str:
    """Return the text with control, bidirectional and invisible characters shown by name;
    line feeds and tabs stay.
    """
    return compile_once(_UNSAFE_PATTERN).sub(lambda match: _format_visibly(match[0]), text)


def escape_answer_controls(text: str, before: str = "") -> str:
    """Escape a model's own text as `escape_controls` does,
    but keep emoji of several characters and joined letters.

    `before`: the text that was shown last, if this one continues it.
    """
    if text.isascii() and text.isprintable():
        return text
    # The lookbehinds of the pattern need no more.
    last_shown = before[-_MAX_COMBINING_MARKS:]
    begin = len(last_shown)

    def escape(match: re.Match[str]) -> str:
        return _format_visibly(match[0]) if match[1] and match.start() >= begin else match[0]

    return re.sub(_UNSAFE_IN_ANSWER, escape, last_shown + text)[begin:]


def escape_json_controls(text: str) -> str:
    r"""Return JSON in which the characters that `escape_controls` replaces are written as `\uXXXX`;
    its values stay.
    """
    return compile_once(_UNSAFE_PATTERN).sub(lambda match: _escape_for_json(match[0]), text)


def one_line(text: str, width: int, escape: Callable[[str], str] = escape_controls) -> str:
    """Return the text on one line, its control characters escaped,
    cut to `width` characters with an ellipsis.
    """
    # Only the start of a long text is looked at, though more than the width,
    # since runs of blanks become one.
    max_source_chars = 64 * (width + 1)
    line = " ".join(escape(text[:max_source_chars]).split())
    if len(line) <= width and len(text) <= max_source_chars:
        return line
    return line[: max(0, width - 1)] + "…"


def _format_visibly(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        # Unicode has a picture of each control character, in this order.
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"  # the picture of DELETE
    return f"<U+{code:04X}>"


def _escape_for_json(char: str) -> str:
    # JSON escapes a character beyond the first 65,536 as the two halves of its surrogate pair.
    utf16 = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{utf16[index : index + 2].hex()}" for index in range(0, len(utf16), 2))
