"""Detects placeholders in a new text, `// ... rest of the code`, which is refused the first time."""

import re

from codeloop.tool.after_edit import FileChange
from codeloop.tool.file_access import format_path
from codeloop.tool.tool import ToolContext, ToolFailure

_WORDS = r"(?:the[ \t]+)?(?:rest|remain(?:der|ing)|existing|unchanged|previous|same|other|keep)"
_COMMENT = r"(?:\#|//|--|;|%|/\*|<!--|\{/\*|\(\*)"
_DOTS = r"(?:\.\.\.|\u2026)"
_MORE = r"[^=;{}\n]{0,80}"
_END = r"[ \t]*(?:\*/\}?|-->|\*\))?[ \t\r]*$"
_LINE = re.compile(
    rf"^[ \t]*{_COMMENT}[ \t]*[\[(<]?{_DOTS}[ \t]*\(?{_WORDS}\b{_MORE}{_END}"
    rf"|^[ \t]*{_COMMENT}[ \t]*[\[(<]?{_WORDS}\b{_MORE}{_DOTS}[\])>]?{_END}"
    rf"|^[ \t]*[\[(<]?{_DOTS}[ \t]*\(?{_WORDS}[ \t]+\w{_MORE}$",
    re.IGNORECASE | re.MULTILINE,
)
"""A comment with dots before or after such words, or dots and two words at least: `...rest` alone is a spread.

No part of it goes past the end of a line: with one that matches newlines, a text of many blank lines took minutes.
"""


def check_elision(ctx: ToolContext, change: FileChange) -> None:
    """Raise ToolFailure for a new line that stands for omitted lines, the first time that it comes."""
    first_places: dict[str, int] = {}
    for found in _LINE.finditer(change.text_after):
        first_places.setdefault(found[0].strip(), found.start())
    for line, start in first_places.items():
        asked = ctx.session_id, line
        if line not in change.text_before and asked not in ctx.services.asked_elisions:
            ctx.services.asked_elisions.add(asked)
            number = change.text_after.count("\n", 0, start) + 1
            raise ToolFailure(
                f"Line {number} of {format_path(ctx.workspace, change.target.path)} would be `{line}`: nothing is put "
                "in its place, and nothing was changed.",
                advice="Give the whole text, or edit only the part that changes. If the line is meant, call again.",
            )
