"""Draws pictures within the conversation. Imported only once a conversation has a picture."""

import os
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from textual.geometry import Region
from textual.timer import Timer

from codeloop.schema.part import FilePart
from codeloop.tui.actions.pictures import find_pictures
from codeloop.tui.render.picture_rows import DEFAULT_CELL, PictureBox, PictureSpace
from codeloop.tui.terminal.desktop import PLAIN_TERMINALS, pass_through
from codeloop.tui.terminal.pictures import kitty
from codeloop.tui.terminal.pictures.gallery import Gallery
from codeloop.tui.terminal.pictures.painter import Painter, Slice, Spot
from codeloop.tui.terminal.pictures.protocol import (
    ATTRIBUTES,
    CELL,
    CELL_QUERY,
    COLOURS,
    QUERIES,
    VERSION,
    find_cell_size,
    find_protocol,
    query_outer_terminal,
)
from codeloop.tui.terminal.pictures.sixel import COLOURS as MAX_COLOURS
from codeloop.tui.terminal.textual_private import Layer, resume_signal, visible_layers
from codeloop.tui.ui import Ui
from codeloop.tui.widgets.transcript.transcript import SIDE_MARGIN, Transcript

_HEIGHT_DIVISOR = 3
"""A picture takes at most the height of the screen divided by this."""
_STDIN = 0


class InlinePictures:
    """Queries how the terminal draws pictures, and draws the visible ones."""

    def __init__(self, ui: Ui) -> None:
        self._ui = ui
        self._answers: dict[str, str] = {}
        self._gallery: Gallery | None = None
        self._timer: Timer | None = None
        if os.environ.get("TERM") not in PLAIN_TERMINALS and not os.environ.get("STY"):
            ui.write_sequence(QUERIES)
        resume_signal(ui).subscribe(ui, self._resume)

    async def take_answer(self, question: str, answer: str) -> None:
        """Handle an answer of the terminal; the answer to the last query decides whether pictures are drawn."""
        before = self._answers.get(question)
        self._answers[question] = answer
        if question == CELL and self._gallery is not None and before != answer:
            self._fit()
        if question != ATTRIBUTES or self._gallery is not None:
            return
        if self._answers.get(VERSION, "").startswith("tmux") or os.environ.get("TMUX"):
            self._answers |= {VERSION: "", ATTRIBUTES: ""} | await query_outer_terminal()
        protocol = find_protocol(self._answers)
        cell = self._find_cell(is_needed=protocol == "sixel")
        if not protocol or cell is None or (protocol == "kitty" and not self._ui.appearance.has_all_colours):
            return  # kitty identifies a picture by an RGB colour
        colours = self._answers.get(COLOURS, "")
        self._gallery = Gallery(protocol, self._find_room(cell), int(colours) if colours else MAX_COLOURS, self)
        self._ui.appearance.pictures = self._gallery
        if protocol != "kitty":
            self._ui.painter = Painter(self._list_slices, self._paint_later)
        self._ui.restyle()

    def resize(self) -> None:
        """Handle a change of the screen's size, with which the size of a cell may change."""
        if self._gallery is not None:
            self._ui.write_sequence(CELL_QUERY)
            self._fit()

    def _fit(self) -> None:
        """Resize the pictures, if the screen or its cells have another size."""
        cell = self._find_cell(is_needed=False)
        if self._gallery is None or cell is None or (room := self._find_room(cell)) == self._gallery.room:
            return
        if cell != self._gallery.room.cell:
            self._forget()
        self._gallery.room = room
        self._ui.restyle()

    def find(self, part_id: str) -> FilePart | None:
        """Return an attachment of the conversation that is shown."""
        file_parts = (file for file in find_pictures(self._ui.tab.view) if file.id == part_id)
        return next(file_parts, None)

    def list_visible_spaces(self) -> list[PictureSpace]:
        """Return the spaces for pictures that are on the screen, row by row."""
        height = self._ui.tab.transcript.size.height
        rows = self._ui.tab.transcript.pictures.rows.items()
        return [row.space for y, row in rows if row.space is not None and y < height]

    def start_task(self, work: Coroutine[Any, Any, None]) -> object:
        """Start background work."""
        return self._ui.start_task(work)

    def show(self, commands: Sequence[str], *, as_text: bool) -> None:
        """Write commands to the terminal, then show a finished picture; `as_text`: its rows are text, as for kitty."""
        self._ui.write_sequence("".join(pass_through(command, os.environ) for command in commands))
        self._set_farewell()
        if as_text:
            self._ui.tab.transcript.pictures.redraw()
        else:
            self._ui.paint()

    def _list_slices(self) -> Mapping[Spot, Slice]:
        """Return the visible rows of pictures that no dialog covers, by their first cell."""
        transcript, gallery = self._ui.tab.transcript, self._gallery
        if gallery is None or not transcript.is_attached or self._ui.screen is not transcript.screen:
            return {}
        region, slices = transcript.region, dict[Spot, Slice]()
        layers = visible_layers(transcript.screen)
        for y, row in transcript.pictures.rows.items():
            line, space = region.y + y, row.space
            if space is None or not (y < region.height and line < len(layers)):
                continue
            drawing = gallery.slice_at(space)
            x = region.x + SIDE_MARGIN + space.column
            if drawing is not None and not _is_covered(layers[line], transcript, Region(x, line, space.columns, 1)):
                slices[line, x] = drawing
        return slices

    def _find_cell(self, *, is_needed: bool) -> tuple[int, int] | None:
        """Return a cell's width and height in pixels. If they are unknown: None if `is_needed`, else the usual ones."""
        return find_cell_size(self._answers, _STDIN) or (None if is_needed else DEFAULT_CELL)

    def _find_room(self, cell: tuple[int, int]) -> PictureBox:
        """Return the largest box for a picture on this screen."""
        return PictureBox(kitty.MAX_SIZE, min(max(self._ui.size.height // _HEIGHT_DIVISOR, 1), kitty.MAX_SIZE), cell)

    def _paint_later(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self._ui.set_timer(seconds, self._ui.paint)

    def _forget(self) -> None:
        if self._gallery is not None:
            self._ui.write_sequence(self._ui.farewell)
            self._gallery.forget()
            self._set_farewell()

    def _set_farewell(self) -> None:
        if self._gallery is not None:
            self._ui.farewell = pass_through(self._gallery.farewell, os.environ)

    def _resume(self, _app: object) -> None:
        """Redraw the pictures after another program had the terminal, which has lost them."""
        self._forget()
        self._ui.tab.transcript.pictures.redraw()


def _is_covered(layer: Layer, transcript: Transcript, region: Region) -> bool:
    for widget, visible_region, _ in layer:
        if widget is transcript:
            return False
        if visible_region.overlaps(region):
            return True
    return True
