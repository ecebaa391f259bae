"""Draws pictures within the conversation. Imported only once a conversation has a picture."""

import asyncio
import os
import secrets
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from rich.cells import cell_len
from rich.segment import Segment
from textual.geometry import Region
from textual.timer import Timer

from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.bounds.tui import PICTURES_KEPT
from codeloop.schema.part import FilePart
from codeloop.tui.actions.conversation.pictures import find_pictures
from codeloop.tui.render.attachments import read_attachment
from codeloop.tui.render.picture_rows import DEFAULT_CELL, PictureBox, PictureRow, PictureSpace
from codeloop.tui.terminal.multiplexer import pass_through
from codeloop.tui.terminal.pictures import kitty
from codeloop.tui.terminal.pictures.painter import Painter, PictureSlice, ScreenCell
from codeloop.tui.terminal.pictures.picture_encoding import encode_rows, encode_upload
from codeloop.tui.terminal.pictures.protocol import (
    ATTRIBUTES,
    CELL,
    CELL_QUERY,
    COLOURS,
    QUERIES,
    VERSION,
    PictureProtocol,
    find_cell_size,
    find_protocol,
    query_outer_terminal,
)
from codeloop.tui.terminal.pictures.sixel import DEFAULT_COLOURS
from codeloop.tui.terminal.sequences import PLAIN_TERMINALS
from codeloop.tui.terminal.textual_private import Layer, resume_signal, visible_layers
from codeloop.tui.ui import Ui
from codeloop.tui.widgets.transcript.transcript import SIDE_MARGIN, Transcript

PictureKey = tuple[str, int, int]
"""The key of a picture: its attachment's id, and its columns and rows."""
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
        """Handle an answer of the terminal; the answer to the last query decides whether pictures are drawn."""
        before = self._answers.get(query)
        self._answers[query] = answer
        if query == CELL and self._gallery is not None and before != answer:
            self._fit_pictures()
        if query != ATTRIBUTES or self._gallery is not None:
            return
        # Within tmux, the answers so far are those of tmux itself.
        if self._answers.get(VERSION, "").startswith("tmux") or os.environ.get("TMUX"):
            self._answers |= {VERSION: "", ATTRIBUTES: ""} | await query_outer_terminal()
        protocol = find_protocol(self._answers)
        cell = self._choose_cell(is_needed=protocol == "sixel")
        # Kitty identifies a picture by an RGB colour.
        if not protocol or cell is None or (protocol == "kitty" and not self._ui.appearance.has_all_colours):
            return
        colours = self._answers.get(COLOURS, "")
        self._gallery = Gallery(protocol, self._choose_room(cell), int(colours) if colours else DEFAULT_COLOURS, self)
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
        if self._gallery is None or cell is None or (room := self._choose_room(cell)) == self._gallery.room:
            return
        # Pictures are encoded for a size of the cells; in a smaller screen, the new rooms have other keys anyway.
        if cell != self._gallery.room.cell:
            self._clear()
        self._gallery.room = room
        self._ui.restyle()

    def find_attachment(self, part_id: str) -> FilePart | None:
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

    def show_picture(self, commands: Sequence[str], *, as_text: bool) -> None:
        """Write commands to the terminal, then show a finished picture; `as_text`: its rows are text, as for kitty."""
        self._ui.write_sequence("".join(pass_through(command, os.environ) for command in commands))
        self._set_exit_sequence()
        if as_text:
            self._ui.tab.transcript.pictures.redraw()
        else:
            self._ui.paint()

    def _list_slices(self) -> Mapping[ScreenCell, PictureSlice]:
        """Return the visible rows of pictures that no dialog covers, by their first cell."""
        transcript, gallery = self._ui.tab.transcript, self._gallery
        if gallery is None or not transcript.is_attached or self._ui.screen is not transcript.screen:
            return {}
        region, slices = transcript.region, dict[ScreenCell, PictureSlice]()
        layers = visible_layers(transcript.screen)
        for y, row in transcript.pictures.rows.items():
            line, space = region.y + y, row.space
            if space is None or not (y < region.height and line < len(layers)):
                continue
            drawing = gallery.find_slice(space)
            x = region.x + SIDE_MARGIN + space.column
            if drawing is not None and not _is_covered(layers[line], transcript, Region(x, line, space.columns, 1)):
                slices[line, x] = drawing
        return slices

    def _choose_cell(self, *, is_needed: bool) -> tuple[int, int] | None:
        """Return a cell's width and height in pixels. If they are unknown: None if `is_needed`, else the usual ones."""
        return find_cell_size(self._answers, _STDIN) or (None if is_needed else DEFAULT_CELL)

    def _choose_room(self, cell: tuple[int, int]) -> PictureBox:
        """Return the largest box for a picture on this screen."""
        return PictureBox(kitty.MAX_SIZE, min(max(self._ui.size.height // _HEIGHT_DIVISOR, 1), kitty.MAX_SIZE), cell)

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
    return True


class LoadedPicture(Struct, frozen=True):
    """An encoded picture: the output of each row, or for kitty the `number` under which it was uploaded.

    `problem`: why it can't be drawn.
    """

    rows: tuple[str, ...] = ()
    number: int = 0
    problem: str = ""


class Gallery:
    """Encodes and draws pictures by one of the three protocols kitty, iterm and sixel.

    `room`: the largest size of a picture. `colours`: how many the terminal has for one.
    """

    def __init__(self, protocol: PictureProtocol, room: PictureBox, colours: int, screen: "InlinePictures") -> None:
        self.protocol: PictureProtocol = protocol
        self.room = room
        self._colours = max(min(colours, DEFAULT_COLOURS), 2)
        self._screen = screen
        self._pictures: dict[PictureKey, LoadedPicture] = {}
        self._requested_keys = set[PictureKey]()
        # One picture at a time, since encoding takes a core.
        self._encoding_lock = asyncio.Lock()
        # Other programs may have pictures in the terminal too, so the numbers begin anywhere. They have 24 bits, since
        # kitty's placeholders carry them as a colour.
        self._number = 0x100000 + secrets.randbelow(0xE00000)

    def request(self, space: PictureSpace) -> None:
        """Request that a visible picture be drawn."""
        if space.key not in self._pictures and space.key not in self._requested_keys:
            self._requested_keys.add(space.key)
            self._screen.start_task(self._load(space))

    def draw_row(self, row: PictureRow) -> list[Segment]:
        """Return the segments of a row: kitty's placeholders, or blanks to draw on, or why there is no picture."""
        space = row.space
        picture = self._pictures.get(space.key) if space is not None else None
        if space is None or picture is None or not (picture.number or picture.problem):
            return row
        if row.cache is None or row.cache[0] is not picture:
            segments = [_fill_segment(each, space, picture) for each in row]
            row.cache = (picture, segments)
        return row.cache[1]

    def find_slice(self, space: PictureSpace) -> PictureSlice | None:
        """Return the slice of a picture that a row shows; None: it is not encoded yet, or not drawn in slices."""
        picture = self._pictures.get(space.key)
        if picture is None or not picture.rows:
            return None
        return PictureSlice((*space.key, space.line), picture.rows[space.line], space.columns)

    def clear(self) -> None:
        """Drop all encoded pictures, since the terminal has lost them, or must draw them in another size."""
        self._pictures.clear()

    @property
    def exit_sequence(self) -> str:
        """The commands that free the pictures in the terminal."""
        return "".join(kitty.make_delete_command(each.number) for each in self._pictures.values() if each.number)

    async def _load(self, space: PictureSpace) -> None:
        """Encode the picture of a space in a thread, and show it."""
        async with self._encoding_lock:
            room = self.room
            try:
                # It may have scrolled away while others were encoded.
                if space.key not in {each.key for each in self._screen.list_visible_spaces()}:
                    return
                file = self._screen.find_attachment(space.part_id)
                if file is None:
                    return
                self._number += 1
                box = PictureBox(space.columns, space.rows, room.cell)
                work = partial(_encode_attachment, file, self.protocol, box, self._colours, self._number)
                picture, commands = await asyncio.to_thread(work)
            finally:
                self._requested_keys.discard(space.key)
        # The screen was resized meanwhile: the picture is needed in another size.
        if room != self.room:
            return
        self._pictures[space.key] = picture
        self._screen.show_picture([*commands, *self._evict()], as_text=not picture.rows)

    def _evict(self) -> list[str]:
        """Drop the oldest invisible pictures; return the commands that free them in the terminal."""
        visible_keys = {each.key for each in self._screen.list_visible_spaces()}
        excess = max(len(self._pictures) - PICTURES_KEPT.value, 0)
        invisible_keys = [key for key in self._pictures if key not in visible_keys]
        loaded_pictures = [self._pictures.pop(key) for key in invisible_keys[:excess]]
        return [kitty.make_delete_command(each.number) for each in loaded_pictures if each.number]


def _encode_attachment(
    file: FilePart, protocol: PictureProtocol, box: PictureBox, colours: int, number: int
) -> tuple[LoadedPicture, Sequence[str]]:
    """Encode a picture; return it with the commands that upload it."""
    try:
        if protocol == "kitty":
            return LoadedPicture(number=number), encode_upload(read_attachment(file), box, number)
        return LoadedPicture(encode_rows(read_attachment(file), protocol, box, colours)), ()
    except ValueError as error:
        return LoadedPicture(problem=str(error)), ()


def _fill_segment(segment: Segment, space: PictureSpace, picture: LoadedPicture) -> Segment:
    """Return the segment that shows a row of a picture, if this one is reserved for it; else the segment itself."""
    if segment.style is None or "image" not in segment.style.meta:
        return segment
    if picture.number:
        return kitty.make_cells(picture.number, space.line, space.columns, segment.style)
    words = one_line(f"Not shown: {picture.problem}", space.columns) if space.line == 0 else ""
    return Segment(words + " " * (space.columns - cell_len(words)), segment.style)
