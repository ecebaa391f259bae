"""The pictures of the open conversations: encodes each when it becomes visible, and keeps it."""

import asyncio
import secrets
from collections.abc import Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

from msgspec import Struct
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from codeloop.kit.terminal_text import one_line
from codeloop.schema.bounds.tui import PICTURES_KEPT
from codeloop.schema.part import FilePart
from codeloop.tui.render.attachments import read_attachment
from codeloop.tui.render.picture_rows import PictureBox, PictureRow, PictureSpace
from codeloop.tui.terminal.pictures import encode, kitty, sixel
from codeloop.tui.terminal.pictures.painter import Slice
from codeloop.tui.terminal.pictures.protocol import PictureProtocol

Key = tuple[str, int, int]
"""The key of a picture: its attachment's id, and its columns and rows."""


class PictureScreen(Protocol):
    """The screen that shows pictures."""

    def find(self, part_id: str) -> FilePart | None:
        """Return an attachment of a conversation."""
        ...

    def list_visible_spaces(self) -> Iterable[PictureSpace]:
        """Return the spaces for pictures that are on the screen."""
        ...

    def start_task(self, work: Coroutine[Any, Any, None]) -> object:
        """Start background work."""
        ...

    def show(self, commands: Sequence[str], *, as_text: bool) -> None:
        """Write commands to the terminal, then show a finished picture; `as_text`: its rows are text, as for kitty."""
        ...


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

    def __init__(self, protocol: PictureProtocol, room: PictureBox, colours: int, screen: PictureScreen) -> None:
        self.protocol: PictureProtocol = protocol
        self.room = room
        self._colours = max(min(colours, sixel.COLOURS), 2)
        self._screen = screen
        self._pictures: dict[Key, LoadedPicture] = {}
        self._requested_keys = set[Key]()
        self._encoding_lock = asyncio.Lock()
        """Held while a picture is encoded: one at a time, since encoding takes a core."""
        self._number = 0x100000 + secrets.randbelow(0xE00000)  # other programs may have pictures in the terminal, too

    def request(self, space: PictureSpace) -> None:
        """Request that a visible picture be drawn."""
        if space.key not in self._pictures and space.key not in self._requested_keys:
            self._requested_keys.add(space.key)
            self._screen.start_task(self._load(space))

    def draw_row(self, row: PictureRow) -> list[Segment]:
        """Return the segments of a row: kitty's placeholder cells, else blanks, or a problem."""
        space = row.space
        picture = self._pictures.get(space.key) if space is not None else None
        if space is None or picture is None or not (picture.number or picture.problem):
            return row
        if row.cache is None or row.cache[0] is not picture:
            cells = [
                _fill_cells(each, space, picture) if each.style and "image" in each.style.meta else each for each in row
            ]
            row.cache = (picture, cells)
        return row.cache[1]

    def slice_at(self, space: PictureSpace) -> Slice | None:
        """Return the slice of a picture that a row shows; None: it is not encoded yet, or not drawn in slices."""
        picture = self._pictures.get(space.key)
        if picture is None or not picture.rows:
            return None
        return Slice((*space.key, space.line), picture.rows[space.line], space.columns)

    def forget(self) -> None:
        """Drop all encoded pictures, since the terminal has lost them, or must draw them in another size."""
        self._pictures.clear()

    @property
    def farewell(self) -> str:
        """The commands that free the pictures in the terminal."""
        return "".join(kitty.delete_command(each.number) for each in self._pictures.values() if each.number)

    async def _load(self, space: PictureSpace) -> None:
        async with self._encoding_lock:
            room = self.room
            try:
                if space.key not in {each.key for each in self._screen.list_visible_spaces()}:
                    return
                file = self._screen.find(space.part_id)
                if file is None:
                    return
                self._number += 1
                box = PictureBox(space.columns, space.rows, room.cell)
                work = partial(_encode, file, self.protocol, box, self._colours, self._number)
                picture, commands = await asyncio.to_thread(work)
            finally:
                self._requested_keys.discard(space.key)
        if room != self.room:
            return
        self._pictures[space.key] = picture
        self._screen.show([*commands, *self._evict()], as_text=not picture.rows)

    def _evict(self) -> list[str]:
        """Drop the oldest invisible pictures; return the commands that free them in the terminal."""
        visible_keys = {each.key for each in self._screen.list_visible_spaces()}
        old = [key for key in self._pictures if key not in visible_keys][
            : max(len(self._pictures) - PICTURES_KEPT.value, 0)
        ]
        loaded_pictures = [self._pictures.pop(key) for key in old]
        return [kitty.delete_command(each.number) for each in loaded_pictures if each.number]


def _encode(
    file: FilePart, protocol: PictureProtocol, box: PictureBox, colours: int, number: int
) -> tuple[LoadedPicture, Sequence[str]]:
    """Encode a picture; return it with the commands that upload it."""
    try:
        if protocol == "kitty":
            return LoadedPicture(number=number), encode.upload_picture(read_attachment(file), box, number)
        return LoadedPicture(encode.draw_rows(read_attachment(file), protocol, box, colours)), ()
    except ValueError as error:
        return LoadedPicture(problem=str(error)), ()


def _fill_cells(segment: Segment, space: PictureSpace, picture: LoadedPicture) -> Segment:
    if picture.number:
        return kitty.cells(picture.number, space.line, space.columns, segment.style or Style())
    words = one_line(f"Not shown: {picture.problem}", space.columns) if space.line == 0 else ""
    return Segment(words + " " * (space.columns - cell_len(words)), segment.style)
