"""Highlights the matches of a search, by `tui/actions/conversation/find.py`,
in the rows of the conversation.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from codeloop.kit.text.word_search import compile_word_search
from codeloop.tui.render.canvas import Row
from codeloop.tui.themes.styles import Styles
from codeloop.tui.widgets.transcript.blocks import Block, BlockRow

WORD_SEPARATORS = r"[\s▌▎│]+"
"""What may stand between two words of a drawn text: blanks, line ends,
and the bar at the start of a row.
"""
Spans = dict[int, list[tuple[int, int, int]]]
"""The matches on each row, by the row's number: their first cell, the cell behind the last,
and the match's index.
"""
_MAX_CACHED_BLOCKS = 200
"""Blocks whose spans are cached."""


class Highlights:
    """Highlights each occurrence of the text that is searched for,
    and the current one in a stronger colour.
    """

    def __init__(self) -> None:
        self._pattern: re.Pattern[str] | None = None
        self._current: tuple[str, int] = ("", -1)
        """The current match: the key of its item, and its index there."""
        self._cache: dict[int, tuple[list[Row], Spans]] = {}
        """The spans of a block by its `id`, with the rows that they were found in: other
        rows make them out of date.
        """

    def show(self, query: str, key: str = "", ordinal: int = -1) -> None:
        """Highlight a text; the current occurrence is the one of index `ordinal` in the item `key`;
        -1: none is.
        """
        self._pattern = compile_word_search(query, WORD_SEPARATORS) if query.strip() else None
        self._current = (key, ordinal)
        self._cache.clear()

    def find_match_row(self, block: Block, rows: list[Row], ordinal: int) -> tuple[int, int]:
        """Return the row of an occurrence in a block,
        and its index among the occurrences that the rows show.

        The rows may show fewer occurrences than the item's text has: then it is the last one, or
        without any, row 0 and index -1.
        """
        # A match may go on in the next rows: it is shown by its first.
        first_rows: dict[int, int] = {}
        for row, spans in sorted(self._get_spans(block, rows).items()):
            for *_, number in spans:
                first_rows.setdefault(number, row)
        if not first_rows:
            return 0, -1
        number = min(ordinal, max(first_rows))
        return first_rows[number], number

    @property
    def is_active(self) -> bool:
        """Whether there is a text to highlight."""
        return self._pattern is not None

    def highlight_row(
        self, strip: Strip, position: BlockRow | None, margin: int, styles: Styles
    ) -> Strip:
        """Return a row of a block, `margin` cells from the left, with its matches highlighted."""
        if position is None:
            return strip
        block, rows = position.block, position.block.rows
        if rows is None:
            return strip
        for start, end, number in self._get_spans(block, rows).get(position.row_index, ()):
            style = _choose_style(styles, is_current=(block.item.key, number) == self._current)
            strip = highlight_cells(strip, (start + margin, end + margin), style)
        return strip

    def _get_spans(self, block: Block, rows: list[Row]) -> Spans:
        cached = self._cache.get(id(block))
        if cached is None or cached[0] is not rows:
            if len(self._cache) > _MAX_CACHED_BLOCKS:
                self._cache.clear()
            cached = self._cache[id(block)] = rows, _find_spans(self._pattern, rows)
        return cached[1]


def _choose_style(styles: Styles, *, is_current: bool) -> Style:
    """Return the style of an occurrence; with the terminal's own colours, which are unknown,
    none is used.
    """
    if not styles.theme.background.startswith("#"):
        return Style(reverse=is_current, underline=True)
    return (
        styles.of("background", "bold", on="warning")
        if is_current
        else styles.of("text", on="border")
    )


def _find_spans(pattern: re.Pattern[str] | None, rows: Sequence[Row]) -> Spans:
    """Return the cells of each occurrence of a pattern in rows;
    an occurrence may continue on the next row.
    """
    if pattern is None:
        return {}
    texts = ["".join(segment.text for segment in row) for row in rows]
    # Where each row begins in the joined text.
    starts = [0, *accumulate(len(text) + 1 for text in texts)]
    spans: Spans = {}
    for number, match in enumerate(pattern.finditer("\n".join(texts))):
        offset = match.start()
        while offset < match.end():
            row = bisect_right(starts, offset) - 1
            text, start = texts[row], offset - starts[row]
            end = min(match.end(), starts[row + 1] - 1) - starts[row]
            # Where a match goes on in the next row, the indentation is not part of it.
            if offset > match.start():
                start = max(start, len(text) - len(text.lstrip()))
            first_cell = cell_len(text[:start])
            spans.setdefault(row, []).append(
                (first_cell, first_cell + cell_len(text[start:end]), number)
            )
            offset = starts[row + 1]
    return spans


def highlight_cells(strip: Strip, span: tuple[int, int], style: Style) -> Strip:
    """Return a row with the cells of `span` in another style;
    an end of -1 is the end of the row.
    """
    start, end = span
    length = strip.cell_length
    end = length if end == -1 else min(end, length)
    start = min(start, end)
    before, middle, after = strip.divide([start, end, length])
    return Strip.join(
        [before, Strip(Segment.apply_style(middle, post_style=style), middle.cell_length), after]
    )
