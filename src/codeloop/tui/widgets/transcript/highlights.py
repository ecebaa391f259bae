"""What is found in the conversation, marked in the rows in which it stands."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from rich.cells import cell_len
from rich.style import Style
from textual.strip import Strip

from codeloop.kit.wildcard import smart_pattern
from codeloop.tui.render.canvas import Row
from codeloop.tui.themes.styles import Styles
from codeloop.tui.widgets.transcript.block import Block
from codeloop.tui.widgets.transcript.selection import highlight

BETWEEN = r"[\s▌▎│]+"
"""What stands between two words of a text that is laid out: blanks, and at the start of a row a bar."""
Spans = dict[int, list[tuple[int, int, int]]]
"""By the number of a row: from which cell to which a text stands there, and the how-manieth it is."""
_MOST = 200
"""Blocks whose spans are kept."""


class Highlights:
    """Marks each occurrence of a text, and one of them more than the others. Nothing is marked without a text."""

    def __init__(self) -> None:
        self._pattern: re.Pattern[str] | None = None
        self._current: tuple[str, int] = ("", -1)
        """The key of an item, and the how-manieth occurrence in it."""
        self._known: dict[int, tuple[list[Row], Spans]] = {}

    def show(self, query: str, key: str = "", ordinal: int = -1) -> None:
        """Mark a text from now on; the occurrence of an item more than others."""
        self._pattern = smart_pattern(query, BETWEEN) if query.strip() else None
        self._current = (key, ordinal)
        self._known.clear()

    def row_of(self, block: Block, rows: list[Row], ordinal: int) -> tuple[int, int]:
        """Return in which of a block's rows an occurrence stands, and its number among those that are shown.

        What is shown may have fewer than what is stored: the last one then counts, without any the first row.
        """
        first: dict[int, int] = {}
        for row, spans in sorted(self._spans(block, rows).items()):
            for *_, number in spans:
                first.setdefault(number, row)
        if not first:
            return 0, -1
        number = min(ordinal, max(first))
        return first[number], number

    @property
    def is_on(self) -> bool:
        """Whether there is a text to mark."""
        return self._pattern is not None

    def mark(self, strip: Strip, place: tuple[Block, int] | None, margin: int, styles: Styles) -> Strip:
        """Return a row of a block, `margin` cells from the left, with what is found in it marked."""
        if place is None or (rows := place[0].rows) is None:
            return strip
        for start, end, number in self._spans(place[0], rows).get(place[1], ()):
            is_current = (place[0].item.key, number) == self._current
            strip = highlight(strip, (start + margin, end + margin), _look(styles, is_current=is_current))
        return strip

    def _spans(self, block: Block, rows: list[Row]) -> Spans:
        known = self._known.get(id(block))
        if known is None or known[0] is not rows:
            if len(self._known) > _MOST:
                self._known.clear()
            known = self._known[id(block)] = rows, _find(self._pattern, rows)
        return known[1]


def _look(styles: Styles, *, is_current: bool) -> Style:
    """Return how an occurrence looks; in the terminal's own colours, of which any may be any other's: reversed."""
    if not styles.theme.background.startswith("#"):
        return Style(reverse=is_current, underline=True)
    return styles.of("background", "bold", on="warning") if is_current else styles.of("text", on="border")


def _find(pattern: re.Pattern[str] | None, rows: Sequence[Row]) -> Spans:
    """Return where a text stands in rows, across their ends too."""
    texts = ["".join(segment.text for segment in row) for row in rows]
    starts = [0, *accumulate(len(text) + 1 for text in texts)]
    found: Spans = {}
    for number, match in enumerate(pattern.finditer("\n".join(texts)) if pattern is not None else ()):
        at = match.start()
        while at < match.end():
            row = bisect_right(starts, at) - 1
            end = min(match.end(), starts[row + 1] - 1)
            text, first = texts[row], at - starts[row]
            indent = len(text) - len(text.lstrip()) if at > match.start() else 0
            first = max(first, indent)
            left = cell_len(text[:first])
            found.setdefault(row, []).append((left, left + cell_len(text[first : end - starts[row]]), number))
            at = starts[row + 1]
    return found
