"""Draws pictures within the conversation. Imported only once a conversation has a picture."""

import os
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from textual.geometry import Region
from textual.timer import Timer

from codeloop.schema.part import FilePart
from codeloop.tui.actions.conversation.pictures import find_pictures
from codeloop.tui.render.picture_rows import DEFAULT_CELL, CellSize, PictureBox, PictureSpace
from codeloop.tui.terminal.multiplexer import pass_through
from codeloop.tui.terminal.pictures.cell_size import find_cell_size
from codeloop.tui.terminal.pictures.gallery import Gallery
from codeloop.tui.terminal.pictures.kitty import MAX_SIZE
from codeloop.tui.terminal.pictures.painter import Painter, PictureSlice, ScreenCell
from codeloop.tui.terminal.pictures.protocol import (
    ATTRIBUTES,
    CELL,
    CELL_QUERY,
    COLOURS,
    QUERIES,
    VERSION,
    find_protocol,
    query_outer_terminal,
)
from codeloop.tui.terminal.pictures.sixel import DEFAULT_COLOURS
from codeloop.tui.terminal.sequences import PLAIN_TERMINALS
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

    async def take_answer(self, query: str, answer: str) -> None:
        """Handle an answer of the terminal; the answer to the last query decides
        whether pictures are drawn.
        """
        previous_answer = self._answers.get(query)
        self._answers[query] = answer
        if query == CELL and self._gallery is not None and answer != previous_answer:
            self._fit_pictures()
        if query != ATTRIBUTES or self._gallery is not None:
            return
        # Within tmux, the answers so far are those of tmux itself.
        if self._answers.get(VERSION, "").startswith("tmux") or os.environ.get("TMUX"):
            self._answers |= {VERSION: "", ATTRIBUTES: ""} | await query_outer_terminal()
        protocol = find_protocol(self._answers)
        cell = self._choose_cell(is_needed=protocol == "sixel")
        # Kitty identifies a picture by an RGB colour.
        if (
            not protocol
            or cell is None
            or (protocol == "kitty" and not self._ui.appearance.has_all_colours)
        ):
            return
        colours = int(self._answers.get(COLOURS) or DEFAULT_COLOURS)
        self._gallery = Gallery(protocol, self._choose_room(cell), colours, screen=self)
        self._ui.appearance.pictures = self._gallery
        if protocol != "kitty":
            self._ui.painter = Painter(self._list_slices, self._paint_later)
        self._ui.restyle()

    def resize(self) -> None:
        """Handle a change of the screen's size, with which the size of a cell may change."""
        if self._gallery is not None:
            self._ui.write_sequence(CELL_QUERY)
            self._fit_pictures()

    def _fit_pictures(self) -> None:
        """Resize the pictures, if the screen or its cells have another size."""
        cell = self._choose_cell(is_needed=False)
        if self._gallery is None or cell is None:
            return
        room = self._choose_room(cell)
        if room == self._gallery.room:
            return
        # Pictures are encoded for a size of the cells. In a smaller room they have other columns
        # and rows, thus other keys (`PictureKey`), so that the old ones are not used anyway.
        if cell != self._gallery.room.cell:
            self._clear()
        self._gallery.room = room
        self._ui.restyle()

    def find_attachment(self, part_id: str) -> FilePart | None:
        """Return an attachment of the conversation that is shown."""
        return next((file for file in find_pictures(self._ui.tab.view) if file.id == part_id), None)

    def list_visible_spaces(self) -> list[PictureSpace]:
        """Return the spaces for pictures that are on the screen, row by row."""
        height = self._ui.tab.transcript.size.height
        rows = self._ui.tab.transcript.pictures.rows.items()
        return [row.space for y, row in rows if row.space is not None and y < height]

    def start_task(self, work: Coroutine[Any, Any, None]) -> object:
        """Start background work."""
        return self._ui.start_task(work)

    def show_picture(self, commands: Sequence[str], *, as_text: bool) -> None:
        """Write commands to the terminal, then show a finished picture;
        `as_text`: its rows are text, as for kitty.
        """
        self._ui.write_sequence("".join(pass_through(command, os.environ) for command in commands))
        self._set_exit_sequence()
        if as_text:
            self._ui.tab.transcript.pictures.redraw()
        else:
            self._ui.paint()

    def _list_slices(self) -> Mapping[ScreenCell, PictureSlice]:
        """Return the visible rows of pictures that no dialog covers, by their first cell."""
        transcript, gallery = self._ui.tab.transcript, self._gallery
        if (
            gallery is None
            or not transcript.is_attached
            or self._ui.screen is not transcript.screen
        ):
            return {}
        region, layers = transcript.region, visible_layers(transcript.screen)
        slices: dict[ScreenCell, PictureSlice] = {}
        for y, row in transcript.pictures.rows.items():
            line, space = region.y + y, row.space
            if space is None or not (y < region.height and line < len(layers)):
                continue
            picture_slice = gallery.find_slice(space)
            x = region.x + SIDE_MARGIN + space.column
            is_covered = _is_covered(layers[line], transcript, Region(x, line, space.columns, 1))
            if picture_slice is not None and not is_covered:
                slices[line, x] = picture_slice
        return slices

    def _choose_cell(self, *, is_needed: bool) -> CellSize | None:
        """Return the size of a cell. If it is unknown: None if `is_needed`, else the usual one."""
        size = find_cell_size(self._answers, _STDIN)
        return size if size is not None or is_needed else DEFAULT_CELL

    def _choose_room(self, cell: CellSize) -> PictureBox:
        """Return the largest box for a picture on this screen."""
        rows = max(self._ui.size.height // _HEIGHT_DIVISOR, 1)
        return PictureBox(columns=MAX_SIZE, rows=min(rows, MAX_SIZE), cell=cell)

    def _paint_later(self, seconds: float) -> None:
        """Draw the missing pictures after some seconds, instead of at an earlier planned time."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self._ui.set_timer(seconds, self._ui.paint)

    def _clear(self) -> None:
        """Delete all pictures in the terminal, and here."""
        if self._gallery is not None:
            self._ui.write_sequence(self._ui.exit_sequence)
            self._gallery.clear()
            self._set_exit_sequence()

    def _set_exit_sequence(self) -> None:
        """Have the pictures freed in the terminal when the UI ends."""
        if self._gallery is not None:
            self._ui.exit_sequence = pass_through(self._gallery.exit_sequence, os.environ)

    def _resume(self, _app: object) -> None:
        """Redraw the pictures after another program had the terminal, which has lost them."""
        self._clear()
        self._ui.tab.transcript.pictures.redraw()


def _is_covered(layer: Layer, transcript: Transcript, region: Region) -> bool:
    """Return whether a widget above the transcript, such as a dialog, covers a part of a region."""
    for widget, visible_region, _ in layer:
        if widget is transcript:
            return False
        if visible_region.overlaps(region):
            return True
    # The transcript is not visible in this row.
    return True
