"""`Gallery` encodes the pictures of a conversation in the background,
and returns what draws their rows.
"""

import asyncio
import secrets
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any, Protocol

from msgspec import Struct
from rich.cells import cell_len
from rich.segment import Segment

from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.bounds.tui import PICTURES_KEPT
from codeloop.schema.part import FilePart
from codeloop.tui.render.attachments import read_attachment
from codeloop.tui.render.picture_rows import PictureBox, PictureRow, PictureSpace
from codeloop.tui.terminal.pictures import kitty
from codeloop.tui.terminal.pictures.painter import PictureSlice
from codeloop.tui.terminal.pictures.picture_encoding import encode_rows, encode_upload
from codeloop.tui.terminal.pictures.protocol import PictureProtocol
from codeloop.tui.terminal.pictures.sixel import DEFAULT_COLOURS

PictureKey = tuple[str, int, int]
"""The key of a picture: its attachment's id, and its columns and rows."""


class PictureScreen(Protocol):
    """The screen that a gallery draws on."""

    def find_attachment(self, part_id: str) -> FilePart | None:
        """Return an attachment of the conversation that is shown; None: it is gone."""
        ...

    def list_visible_spaces(self) -> list[PictureSpace]:
        """Return the spaces for pictures that are on the screen, row by row."""
        ...

    def start_task(self, work: Coroutine[Any, Any, None]) -> object:
        """Start background work."""
        ...

    def show_picture(self, commands: Sequence[str], *, as_text: bool) -> None:
        """Write commands to the terminal, then show a finished picture;
        `as_text`: its rows are text, as for kitty.
        """
        ...


class EncodedPicture(Struct, frozen=True):
    """An encoded picture: the output of each row,
    or for kitty the `number` under which it was uploaded.

    `problem`: why it can't be drawn.
    """

    rows: tuple[str, ...] = ()
    number: int = 0
    problem: str = ""


class Gallery:
    """Encodes and draws pictures by one of the three protocols kitty, iterm and sixel.

    `room`: the largest size of a picture. `colours`: how many the terminal has for one.
    """

    def __init__(
        self, protocol: PictureProtocol, room: PictureBox, colours: int, screen: PictureScreen
    ) -> None:
        self.protocol: PictureProtocol = protocol
        self.room = room
        self._colours = max(min(colours, DEFAULT_COLOURS), 2)
        self._screen = screen
        self._pictures: dict[PictureKey, EncodedPicture] = {}
        self._requested_keys = set[PictureKey]()
        """The pictures that are being encoded, or wait for that."""
        # One picture at a time, since encoding takes a core.
        self._encoding_lock = asyncio.Lock()
        # Other programs may have pictures in the terminal too, so the numbers begin anywhere. They
        # have 24 bits, since kitty's placeholders carry them as a colour.
        self._number = 0x100000 + secrets.randbelow(0xE00000)

    def request(self, space: PictureSpace) -> None:
        """Request that a visible picture be drawn."""
        if space.key not in self._pictures and space.key not in self._requested_keys:
            self._requested_keys.add(space.key)
            self._screen.start_task(self._load(space))

    def draw_row(self, row: PictureRow) -> list[Segment]:
        """Return the segments of a row: kitty's placeholders, or blanks to draw on,
        or why there is no picture.
        """
        space = row.space
        picture = self._pictures.get(space.key) if space is not None else None
        if space is None or picture is None or not (picture.number or picture.problem):
            return row
        if row.cache is None or row.cache[0] is not picture:
            segments = [_fill_segment(each, space, picture) for each in row]
            row.cache = (picture, segments)
        return row.cache[1]

    def find_slice(self, space: PictureSpace) -> PictureSlice | None:
        """Return the slice of a picture that a row shows;
        None: it is not encoded yet, or not drawn in slices.
        """
        picture = self._pictures.get(space.key)
        if picture is None or not picture.rows:
            return None
        return PictureSlice((*space.key, space.line), picture.rows[space.line], space.columns)

    def clear(self) -> None:
        """Drop all encoded pictures, since the terminal has lost them,
        or must draw them in another size.
        """
        self._pictures.clear()

    @property
    def exit_sequence(self) -> str:
        """The commands that free the pictures in the terminal."""
        return "".join(
            kitty.make_delete_command(each.number)
            for each in self._pictures.values()
            if each.number
        )

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
                work = partial(
                    _encode_attachment, file, self.protocol, box, self._colours, self._number
                )
                picture, commands = await asyncio.to_thread(work)
            finally:
                self._requested_keys.discard(space.key)
        # The screen was resized meanwhile: the picture is needed in another size.
        if room != self.room:
            return
        self._pictures[space.key] = picture
        self._screen.show_picture([*commands, *self._evict()], as_text=not picture.rows)

    def _evict(self) -> list[str]:
        """Drop the oldest invisible pictures; return the commands that free
        them in the terminal.
        """
        visible_keys = {each.key for each in self._screen.list_visible_spaces()}
        excess = max(len(self._pictures) - PICTURES_KEPT.value, 0)
        invisible_keys = [key for key in self._pictures if key not in visible_keys]
        evicted_pictures = [self._pictures.pop(key) for key in invisible_keys[:excess]]
        return [kitty.make_delete_command(each.number) for each in evicted_pictures if each.number]


def _encode_attachment(
    file: FilePart, protocol: PictureProtocol, box: PictureBox, colours: int, number: int
) -> tuple[EncodedPicture, Sequence[str]]:
    """Encode a picture; return it with the commands that upload it."""
    try:
        if protocol == "kitty":
            return EncodedPicture(number=number), encode_upload(read_attachment(file), box, number)
        return EncodedPicture(encode_rows(read_attachment(file), protocol, box, colours)), ()
    except ValueError as error:
        return EncodedPicture(problem=str(error)), ()


def _fill_segment(segment: Segment, space: PictureSpace, picture: EncodedPicture) -> Segment:
    """Return the segment that shows a row of a picture, if this one is reserved for it;
    else the segment itself.
    """
    if segment.style is None or "image" not in segment.style.meta:
        return segment
    if picture.number:
        return kitty.make_placeholders(picture.number, space.line, space.columns, segment.style)
    words = one_line(f"Not shown: {picture.problem}", space.columns) if space.line == 0 else ""
    return Segment(words + " " * (space.columns - cell_len(words)), segment.style)
