"""The drawn pictures of the open conversations: encoded when they become visible."""

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
from codeloop.tui.render.pictures import PicturePlace, PictureRow
from codeloop.tui.terminal import images
from codeloop.tui.terminal.images import PictureBox, data_of
from codeloop.tui.terminal.pictures import encode, kitty, sixel
from codeloop.tui.terminal.pictures.painter import Slice

Key = tuple[str, int, int]


class PictureScreen(Protocol):
    """The screen that shows pictures."""

    def find(self, part_id: str) -> FilePart | None:
        """Return an attachment of a conversation."""
        ...

    def in_sight(self) -> Iterable[PicturePlace]:
        """Return the places that are on the screen."""
        ...

    def begin(self, work: Coroutine[Any, Any, None]) -> object:
        """Start background work."""
        ...

    def show(self, commands: Sequence[str], *, as_text: bool) -> None:
        """Write commands to the terminal, then show a finished picture, perhaps as text."""
        ...


class LoadedPicture(Struct, frozen=True):
    """A picture encoded row by row; for kitty it has a `number` instead of rows.

    `problem`: why it can't be drawn.
    """

    rows: tuple[str, ...] = ()
    number: int = 0
    problem: str = ""


class Gallery:
    """Draws pictures by one of the three protocols (kitty, iterm, sixel), one at a time and in a thread.

    `room`: the largest size of each.
    """

    def __init__(self, protocol: images.Protocol, room: PictureBox, colours: int, screen: PictureScreen) -> None:
        self.protocol: images.Protocol = protocol
        self.room = room
        self._colours = max(min(colours, sixel.COLOURS), 2)
        self._screen = screen
        self._loaded: dict[Key, LoadedPicture] = {}
        self._requested = set[Key]()
        self._turn = asyncio.Lock()
        self._number = 0x100000 + secrets.randbelow(0xE00000)  # other programs may have pictures in the terminal, too

    def request(self, picture_place: PicturePlace) -> None:
        """Request that a visible picture be drawn."""
        if picture_place.key not in self._loaded and picture_place.key not in self._requested:
            self._requested.add(picture_place.key)
            self._screen.begin(self._load(picture_place))

    def draw_row(self, row: PictureRow) -> list[Segment]:
        """Return the segments of a row: kitty's placeholder cells; else blanks."""
        picture_place = row.place
        loaded = self._loaded.get(picture_place.key) if picture_place is not None else None
        if picture_place is None or loaded is None or not (loaded.number or loaded.problem):
            return row
        if row.written is None or row.written[0] is not loaded:
            cells = [
                _fill(each, picture_place, loaded) if each.style and "image" in each.style.meta else each
                for each in row
            ]
            row.written = (loaded, cells)
        return row.written[1]

    def slice_at(self, picture_place: PicturePlace) -> Slice | None:
        """Return the slice of a picture for a row; None: not ready, or not drawn by slices."""
        loaded = self._loaded.get(picture_place.key)
        if loaded is None or not loaded.rows:
            return None
        return Slice((*picture_place.key, picture_place.line), loaded.rows[picture_place.line], picture_place.columns)

    def forget(self) -> None:
        """Drop all drawn pictures: the terminal has lost them, or they are drawn differently."""
        self._loaded.clear()

    @property
    def farewell(self) -> str:
        """The commands that free the pictures in the terminal."""
        return "".join(kitty.delete_command(each.number) for each in self._loaded.values() if each.number)

    async def _load(self, picture_place: PicturePlace) -> None:
        async with self._turn:
            room = self.room
            try:
                if picture_place.key not in {each.key for each in self._screen.in_sight()}:
                    return
                file = self._screen.find(picture_place.part_id)
                if file is None:
                    return
                self._number += 1
                box = PictureBox(picture_place.columns, picture_place.rows, room.cell)
                work = partial(_make, file, self.protocol, box, self._colours, self._number)
                loaded, commands = await asyncio.to_thread(work)
            finally:
                self._requested.discard(picture_place.key)
        if room != self.room:
            return
        self._loaded[picture_place.key] = loaded
        self._screen.show([*commands, *self._evict()], as_text=not loaded.rows)

    def _evict(self) -> list[str]:
        """Drop the oldest invisible pictures; return the commands that free them in the terminal."""
        seen = {each.key for each in self._screen.in_sight()}
        old = [key for key in self._loaded if key not in seen][: max(len(self._loaded) - PICTURES_KEPT.value, 0)]
        loaded_pictures = [self._loaded.pop(key) for key in old]
        return [kitty.delete_command(each.number) for each in loaded_pictures if each.number]


def _make(
    file: FilePart, protocol: images.Protocol, box: PictureBox, colours: int, number: int
) -> tuple[LoadedPicture, Sequence[str]]:
    """Encode a picture; return it with the commands that upload it."""
    try:
        if protocol == "kitty":
            return LoadedPicture(number=number), encode.upload_picture(data_of(file), box, number)
        return LoadedPicture(encode.rows_of(data_of(file), protocol, box, colours)), ()
    except ValueError as error:
        return LoadedPicture(problem=str(error)), ()


def _fill(segment: Segment, picture_place: PicturePlace, loaded: LoadedPicture) -> Segment:
    if loaded.number:
        return kitty.cells(loaded.number, picture_place.line, picture_place.columns, segment.style or Style())
    words = one_line(f"Not shown: {loaded.problem}", picture_place.columns) if picture_place.line == 0 else ""
    return Segment(words + " " * (picture_place.columns - cell_len(words)), segment.style)
