"""Renders updates of the screen. Characters on whose width terminals disagree, such as emoji,
keep their cells.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rich.console import Console
from rich.segment import Segment
from textual.strip import Strip

from codeloop.tui.render.graphemes import split_graphemes
from codeloop.tui.terminal.textual_private import ChopsUpdate, LayoutUpdate

_UNCERTAIN_WIDTH = "[\u200d\ufe0f\u20e3\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff]"
"""Matches characters that join others, make them emoji, or are part of a flag."""


class ChangedPart(NamedTuple):
    """A part of a screen row that is written anew: from column `start` to before `end`.

    `strip`: begins at `start`, and may be longer.
    """

    line: int
    start: int
    end: int
    strip: Strip


class ChangedPartsUpdate(ChopsUpdate):
    """An update of the changed parts of rows, as gathered by Textual.

    It is rendered here since Textual's own rendering takes longer: it cuts an empty piece after
    each part, and creates an object for every position of the cursor.
    """

    def list_parts(self) -> Iterator[ChangedPart]:
        """Yield each changed part, row by row."""
        for line, span_start, span_end in self.spans:
            for end, (start, strip) in zip(
                self.chop_ends[line], self.chops[line].items(), strict=True
            ):
                if strip is not None and start < span_end and end > span_start:
                    yield ChangedPart(line, start, min(end, span_end), strip)

    def render_segments(self, console: Console) -> str:
        """Return the terminal output of the update."""
        return "".join(
            f"\x1b[{line + 1};{start + 1}H{render_strip(strip.crop(0, end - start), start, console)}"
            for line, start, end, strip in self.list_parts()
        )


class RectangleUpdate(LayoutUpdate):
    """An update of a rectangle of the screen, which is written completely."""

    def list_parts(self) -> Iterator[ChangedPart]:
        """Yield the parts of the rectangle, row by row."""
        for line, strips in enumerate(self.strips, self.region.y):
            column = self.region.x
            for strip in strips:
                yield ChangedPart(line, column, column + strip.cell_length, strip)
                column += strip.cell_length

    def render_segments(self, console: Console) -> str:
        """Return the terminal output of the update."""
        column = self.region.x
        return "".join(
            f"\x1b[{y + 1};{column + 1}H{render_strips(strips, column, console)}"
            for y, strips in enumerate(self.strips, self.region.y)
        )


def has_uncertain_width(text: str) -> bool:
    """Return whether terminals disagree on the width of a character in a text."""
    return re.search(_UNCERTAIN_WIDTH, text) is not None


def render_strips(strips: Iterable[Strip], column: int, console: Console) -> str:
    """Return the output that writes strips one after the other, the first one at a column."""
    pieces: list[str] = []
    for strip in strips:
        pieces.append(render_strip(strip, column, console))
        column += strip.cell_length
    return "".join(pieces)


def render_strip(strip: Strip, column: int, console: Console) -> str:
    """Return the output that writes a strip, which begins at a column of the screen.

    The cells of a character of uncertain width are cleared first, and the cursor is moved behind
    them afterwards, so that the text after it is in the right cells.
    """
    # Nearly every strip has no such character, and is written as it is.
    output = strip.render(console)
    if output.isascii() or not has_uncertain_width(output):
        return output
    segments: list[Segment] = []
    for text, style, control in strip:
        parts: list[str] = []
        for start, end, cells in split_graphemes(text):
            character = text[start:end]
            if has_uncertain_width(character):
                character = f"{' ' * cells}\x1b[{column + 1}G{character}\x1b[{column + cells + 1}G"
            parts.append(character)
            column += cells
        segments.append(Segment("".join(parts), style, control))
    return Strip(segments).render(console)
