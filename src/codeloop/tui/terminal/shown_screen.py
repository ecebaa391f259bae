"""What the terminal shows, and what it is to show: of a frame, only the difference is written.

Rows that have moved are moved by the terminal, so that over a slow line a stream of text costs
about its own bytes. A frame that can't be written yet is not queued: the next one that
is written holds its changes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, Console
from rich.style import Style
from textual.strip import Strip

from codeloop.tui.render.graphemes import split_graphemes
from codeloop.tui.terminal.screen_updates import ChangedPart, has_uncertain_width

_MIN_ERASED_CELLS = 8
"""Blank cells in a row that are erased rather than written: from so many on,
the sequence is shorter.
"""
_MAX_KEPT_GAP = 5
"""Unchanged cells between two changes that are written again,
since the way over them is not shorter.
"""
_MIN_MOVED_ROWS, _MIN_SAVED_CELLS = 3, 40
"""Rows that must have moved together, and cells that need not be written then,
so that the terminal moves them.
"""
_MAX_CACHED_PENS = 4_096
_CACHED_STRIPS_PER_ROW = 6
_BLANK = " "
_ATTRIBUTES = (
    ("bold", "1"),
    ("dim", "2"),
    ("italic", "3"),
    ("underline", "4"),
    ("blink", "5"),
    ("blink2", "6"),
    ("reverse", "7"),
    ("conceal", "8"),
    ("strike", "9"),
    ("underline2", "21"),
    ("frame", "51"),
    ("encircle", "52"),
    ("overline", "53"),
)
"""The attributes of a style, each with its code."""
# Within screen, a row may be erased in the terminal's own colour.
_ERASING_TERMS = (
    "xterm",
    "tmux",
    "alacritty",
    "kitty",
    "foot",
    "ghostty",
    "wezterm",
    "rxvt",
    "konsole",
    "vte",
    "linux",
)


class _Pen(NamedTuple):
    """How cells are drawn: the codes of attributes, foreground and background;
    and a link, with its id.

    `marks_blanks`: more than the background is seen of a blank.
    """

    attributes: str = ""
    foreground: str = ""
    background: str = ""
    link: str = ""
    link_id: str = ""
    marks_blanks: bool = False


_PLAIN = _Pen()
# A grapheme and its pen. A wide grapheme is followed by cells with "".
_Cell = tuple[str, _Pen]
_EMPTY_CELL: _Cell = (_BLANK, _PLAIN)


def erases_in_colour(environment: Mapping[str, str]) -> bool:
    """Return whether the terminal gives erased cells the current background."""
    if environment.get("STY"):
        return False
    return bool(environment.get("TMUX")) or environment.get("TERM", "").startswith(_ERASING_TERMS)


class ShownScreen:
    """The cells of the screen. `erases`: the terminal gives erased cells the current background."""

    def __init__(self, *, erases: bool) -> None:
        self._erases = erases
        self._width = self._height = 0
        self._wanted: list[list[_Cell]] = []
        self._shown: list[list[_Cell]] = []
        self._dirty_rows: set[int] = set()
        """The rows in which `_wanted` and `_shown` may differ."""
        self._wanted_strips: list[Strip | None] = []
        """The strip that each row begins with, by which rows are found that have moved."""
        self._shown_strips: list[Strip | None] = []
        self._is_unknown = True
        """Whether it is not known what the terminal shows."""
        self._pens: dict[Style | None, tuple[_Pen, _Pen]] = {None: (_PLAIN, _PLAIN)}
        """The pens of a style: of texts, and of blanks, for which only the background counts."""
        self._cells: dict[int, tuple[Strip, list[_Cell]]] = {}
        """The cells of strips, by the strip's identity."""

    @property
    def has_changes(self) -> bool:
        """Whether the terminal does not show yet what it is to show."""
        return self._is_unknown or any(
            self._wanted[row] != self._shown[row] for row in self._dirty_rows
        )

    def forget(self) -> None:
        """Forget what the terminal shows, after something else was written to it."""
        self._is_unknown = True

    def resize(self, width: int, height: int) -> None:
        """Set the size of the screen; with another one, nothing is known of it."""
        if (width, height) == (self._width, self._height):
            return
        self._width, self._height, self._is_unknown = width, height, True
        self._wanted = [[_EMPTY_CELL] * width for _ in range(height)]
        self._shown = [[*row] for row in self._wanted]
        self._wanted_strips, self._shown_strips = [None] * height, [None] * height
        # Rows of a taller screen may still be noted.
        self._dirty_rows.clear()

    def change(self, parts: Iterable[ChangedPart], console: Console) -> None:
        """Take over changed parts of rows."""
        if len(self._cells) > _CACHED_STRIPS_PER_ROW * self._height:
            self._cells.clear()
        for line, start, part_end, strip in parts:
            end = min(part_end, self._width)
            if not 0 <= line < self._height or start >= end:
                continue
            if start == 0:
                self._wanted_strips[line] = strip
            cells = self._get_cells(
                strip if strip.cell_length <= end - start else strip.crop(0, end - start), console
            )
            self._wanted[line][start:end] = cells[: end - start] + [_EMPTY_CELL] * (
                end - start - len(cells)
            )
            self._dirty_rows.add(line)

    def write_changes(self) -> str:
        """Return the output that makes the terminal show what it is to show;
        colours are plain before and after it.
        """
        output = _Output(erases=self._erases)
        if self._is_unknown:
            self._clear(output)
        else:
            self._move_rows(output)
        for line in sorted(self._dirty_rows):
            if self._wanted[line] != self._shown[line]:
                output.write_row(line, self._shown[line], self._wanted[line])
                self._shown[line] = [*self._wanted[line]]
            self._shown_strips[line] = self._wanted_strips[line]
        self._dirty_rows.clear()
        output.set_pen(_PLAIN)
        return "".join(output.pieces)

    def _clear(self, output: "_Output") -> None:
        """Clear the screen, in the colour that most of it has."""
        pen = _PLAIN
        if self._erases:
            pens = Counter(pen for row in self._wanted for text, pen in row if text == _BLANK)
            pen = next((pen for pen, _ in pens.most_common(1)), _PLAIN)
        output.pieces.append("\x1b[0m")
        output.set_pen(pen)
        output.pieces.append("\x1b[2J")
        self._shown = [[(_BLANK, pen)] * self._width for _ in range(self._height)]
        self._dirty_rows.update(range(self._height))
        self._is_unknown = False

    def _move_rows(self, output: "_Output") -> None:
        """Move rows that stand elsewhere now, if fewer cells are to be written then."""
        counts = Counter(id(strip) for strip in self._shown_strips)
        # The same strip in many rows, such as an empty one, says nothing.
        old_rows = {
            id(strip): row
            for row, strip in enumerate(self._shown_strips)
            if counts[id(strip)] == 1 and strip is not None
        }
        moves = [
            (old - row, row)
            for row in self._dirty_rows
            if (old := old_rows.get(id(self._wanted_strips[row]))) is not None and old != row
        ]
        if len(moves) < _MIN_MOVED_ROWS:
            return
        ((distance, count),) = Counter(distance for distance, _ in moves).most_common(1)
        if count < _MIN_MOVED_ROWS:
            return
        moved = [row for each, row in moves if each == distance]
        top, bottom = min(moved) + min(distance, 0), max(moved) + max(distance, 0)
        region = range(top, bottom + 1)
        empty_rows = [[_EMPTY_CELL] * self._width for _ in range(abs(distance))]
        shown = self._shown[top : bottom + 1]
        shown = (
            [*shown[distance:], *empty_rows] if distance > 0 else [*empty_rows, *shown[:distance]]
        )
        before = sum(_count_differences(self._shown[row], self._wanted[row]) for row in region)
        after = sum(
            _count_differences(each, self._wanted[row])
            for row, each in zip(region, shown, strict=True)
        )
        if before - after < _MIN_SAVED_CELLS:
            return
        direction = f"{distance}S" if distance > 0 else f"{-distance}T"
        output.pieces.append(f"\x1b[{top + 1};{bottom + 1}r\x1b[{direction}\x1b[r")
        self._shown[top : bottom + 1] = shown
        self._dirty_rows.update(region)

    def _get_cells(self, strip: Strip, console: Console) -> list[_Cell]:
        cached = self._cells.get(id(strip))
        if cached is None:
            # The strip is kept with its cells: an `id` is used again after its object is gone.
            cached = self._cells[id(strip)] = strip, self._make_cells(strip, console)
        return cached[1]

    def _make_cells(self, strip: Strip, console: Console) -> list[_Cell]:
        cells: list[_Cell] = []
        for text, style, control in strip:
            if control:
                continue
            pen, blank_pen = self._get_pens(style, console)
            if text.isascii():
                cells += [(char, blank_pen if char == _BLANK else pen) for char in text]
                continue
            for start, end, width in split_graphemes(text):
                if width:
                    cells += [(text[start:end], blank_pen if text[start:end] == _BLANK else pen)]
                    cells += [("", pen)] * (width - 1)
                elif cells:
                    cells[-1] = (cells[-1][0] + text[start:end], pen)
        return cells

    def _get_pens(self, style: Style | None, console: Console) -> tuple[_Pen, _Pen]:
        pens = self._pens.get(style)
        if pens is None:
            if len(self._pens) > _MAX_CACHED_PENS:
                self._pens = {None: (_PLAIN, _PLAIN)}
            pens = self._pens[style] = _make_pens(style or Style.null(), console)
        return pens


def _make_pens(style: Style, console: Console) -> tuple[_Pen, _Pen]:
    system = COLOR_SYSTEMS.get(console.color_system or "", ColorSystem.TRUECOLOR)
    attributes = ";".join(code for name, code in _ATTRIBUTES if getattr(style, name))
    foreground, background = (
        ";".join(colour.downgrade(system).get_ansi_codes(is_foreground))
        if colour is not None
        else ""
        for is_foreground, colour in ((True, style.color), (False, style.bgcolor))
    )
    # Lines through, below or above a blank are seen,
    # as is its foreground where both colours are exchanged.
    marks_blanks = any(
        (
            style.underline,
            style.underline2,
            style.strike,
            style.reverse,
            style.overline,
            style.frame,
            style.encircle,
        )
    ) or bool(style.link)
    pen = _Pen(
        attributes,
        foreground,
        background,
        style.link or "",
        style.link_id if style.link else "",
        marks_blanks,
    )
    return pen, pen if marks_blanks else _Pen(background=background)


def _count_differences(row: Sequence[_Cell], other: Sequence[_Cell]) -> int:
    return sum(a is not b and a != b for a, b in zip_longest(row, other))


class _Output:
    """The output of a frame. `pieces`: what is written, one after the other."""

    def __init__(self, *, erases: bool) -> None:
        self.pieces: list[str] = []
        self._erases = erases
        self._pen = _PLAIN

    def write_row(self, line: int, shown: Sequence[_Cell], wanted: Sequence[_Cell]) -> None:
        """Write the cells of a row that differ."""
        width, position, column = len(wanted), -1, 0
        while column < width:
            if shown[column] == wanted[column]:
                column += 1
                continue
            # The second half of a wide character is not written without the first.
            start = column
            while start > 0 and not wanted[start][0]:
                start -= 1
            end = self._find_end(shown, wanted, column)
            is_near = position >= 0 and start - position <= _MAX_KEPT_GAP
            if is_near and all(self._can_write(cell) for cell in wanted[position:start]):
                start = position
            elif position >= 0:
                self.pieces.append(f"\x1b[{start - position}C")
            else:
                self.pieces.append(f"\x1b[{line + 1};{start + 1}H")
            position, column = self._write_cells(start, end, wanted), end

    def _find_end(self, shown: Sequence[_Cell], wanted: Sequence[_Cell], column: int) -> int:
        """Return the column behind the changed cells that begin at one."""
        width = len(wanted)
        while column < width and (shown[column] != wanted[column] or not wanted[column][0]):
            column += 1
        return column

    def _write_cells(self, start: int, end: int, wanted: Sequence[_Cell]) -> int:
        """Write cells; return the column at which the cursor is then, -1: it is uncertain."""
        column, texts = start, list[str]()
        while column < end:
            text, pen = wanted[column]
            if not self._can_write(wanted[column]):
                self.pieces += texts
                texts.clear()
                self.set_pen(pen)
            blank_end = column
            while self._erases and blank_end < end and wanted[blank_end] == (_BLANK, pen):
                blank_end += 1
            if blank_end - column >= _MIN_ERASED_CELLS and not pen.marks_blanks:
                texts.append(
                    "\x1b[K" if blank_end == len(wanted) else f"\x1b[{blank_end - column}X"
                )
                column = blank_end
                if column < end:
                    texts.append(f"\x1b[{column + 1}G")
                    continue
                self.pieces += texts
                # Erasing does not move the cursor.
                return -1
            cells = next((at for at in range(column + 1, end) if wanted[at][0]), end) - column
            if text and has_uncertain_width(text):
                # Its cells are cleared first, and the cursor is moved behind them.
                text = f"{_BLANK * cells}\x1b[{column + 1}G{text}\x1b[{column + cells + 1}G"
            texts.append(text)
            column += cells
        self.pieces += texts
        # Behind the last column, terminals differ in where the cursor is.
        return column if column < len(wanted) else -1

    def _can_write(self, cell: _Cell) -> bool:
        """Return whether a cell looks right in the current colours: of a blank,
        only the background may be seen.
        """
        text, pen = cell
        is_blank = text == _BLANK and not pen.marks_blanks and not self._pen.marks_blanks
        return pen == self._pen or (is_blank and pen.background == self._pen.background)

    def set_pen(self, pen: _Pen) -> None:
        """Write what changes the colours and attributes to those of a pen."""
        before, self._pen = self._pen, pen
        if before == pen:
            return
        if (before.link, before.link_id) != (pen.link, pen.link_id):
            self.pieces.append(
                f"\x1b]8;id={pen.link_id};{pen.link}\x1b\\" if pen.link else "\x1b]8;;\x1b\\"
            )
        if pen[:3] == _PLAIN[:3]:
            codes = ["0"] if before[:3] != _PLAIN[:3] else []
        elif before.attributes and before.attributes != pen.attributes:
            codes = ["0", *(code for code in pen[:3] if code)]
        else:
            codes = [pen.attributes] if before.attributes != pen.attributes else []
            if before.foreground != pen.foreground:
                codes.append(pen.foreground or "39")
            if before.background != pen.background:
                codes.append(pen.background or "49")
        if codes:
            self.pieces.append(f"\x1b[{';'.join(codes)}m")
