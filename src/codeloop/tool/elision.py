"""A new text that stands for more than it says: `// ... rest of the code`. It is asked about once."""

import re
from collections.abc import Iterator

from codeloop.tool.after_edit import FileChange
from codeloop.tool.file_access import format_path
from codeloop.tool.tool import ToolContext, ToolFailure

_WORDS = r"(?:the\s+)?(?:rest|remain(?:der|ing)|existing|unchanged|previous|same|other|keep)"
_COMMENT = r"(?:\#|//|--|;|%|/\*|<!--|\{/\*|\(\*)"
_DOTS = r"(?:\.\.\.|\u2026)"
_END = r"\s*(?:\*/\}?|-->|\*\))?\s*$"
_LINE = re.compile(
    rf"^\s*{_COMMENT}\s*[\[(<]?{_DOTS}\s*\(?{_WORDS}\b[^=;{{}}]{{0,80}}{_END}"
    rf"|^\s*{_COMMENT}\s*[\[(<]?{_WORDS}\b[^=;{{}}]{{0,80}}{_DOTS}[\])>]?{_END}"
    rf"|^\s*[\[(<]?{_DOTS}\s*\(?{_WORDS}\s+\w[^=;{{}}]{{0,80}}$",
    re.IGNORECASE,
)
"""A comment with dots before or after such words, or dots and two words at least: `...rest` alone is a spread."""
_ANY_DOTS = re.compile(_DOTS)
_LONGEST_LINE = 400  # characters; nobody leaves code out in a longer one


class AskedElisions:
    """The texts that a session was asked about; the same text again is meant as it stands."""

    def __init__(self) -> None:
        self._asked: set[tuple[str, str]] = set()

    def is_first(self, session_id: str, text: str) -> bool:
        """Return whether the session is asked about a text for the first time, and record it."""
        if (session_id, text) in self._asked:
            return False
        self._asked.add((session_id, text))
        return True


def check_elision(ctx: ToolContext, change: FileChange) -> None:
    """Raise ToolFailure for a new line that says that other lines are left out, the first time that it comes."""
    for start, line in _find_elisions(change.text_after):
        if line not in change.text_before and ctx.workspace.shared(AskedElisions).is_first(ctx.session_id, line):
            number = change.text_after.count("\n", 0, start) + 1
            raise ToolFailure(
                f"Line {number} of {format_path(ctx.workspace, change.target.path)} would be `{line}`: nothing is put "
                "in its place, and nothing was changed.",
                advice="Give the whole text, or edit only the part that changes. If the line is meant, call again.",
            )


def _find_elisions(text: str) -> Iterator[tuple[int, str]]:
    """Find each elision and where its line starts. Only lines with dots are matched: the loop does not stand still."""
    end = 0
    for dots in _ANY_DOTS.finditer(text):
        if dots.start() < end:
            continue  # its line was matched at the dots before
        start = text.rfind("\n", max(0, dots.start() - _LONGEST_LINE), dots.start()) + 1
        if dots.start() - start > _LONGEST_LINE:
            continue
        end = text.find("\n", dots.end(), dots.end() + _LONGEST_LINE)
        if end < 0:
            end = min(len(text), dots.end() + _LONGEST_LINE)
        if _LINE.match(line := text[start:end].rstrip("\r")):
            yield start, line.strip()
