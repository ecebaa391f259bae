"""The real program on terminals that draw pictures: a strict one takes what it writes,
and its pixels are looked at.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops

from tests.cli.program import Desk, call, serving
from tests.support.answers import Answer
from tests.support.http_connection import ReceivedRequest
from tests.tui.terminal.picture_terminal import DrawingTerminal
from tests.tui.terminal.screen import ScreenTerminal

pytestmark = pytest.mark.slow
ANSWERS = {
    "kitty": "\x1bP>|kitty(0.35.2)\x1b\\\x1b[6;20;10t\x1b[?62;c",
    "iterm": "\x1bP>|WezTerm 20240203\x1b\\\x1b[6;20;10t\x1b[?65;4;6;18;22c",
    "sixel": "\x1bP>|XTerm(379)\x1b\\\x1b[?1;0;256S\x1b[6;20;10t\x1b[?64;1;4;22c",
}
SIZE = (300, 160)
"""Pixels: 30 columns and 8 rows, a third of 24."""


class Played:
    """A program on such a terminal, which answers what it is asked."""

    def __init__(self, desk: Desk, kind: str, *words: str, **environment: Any) -> None:
        self.terminal = ScreenTerminal(desk, *words, **environment)
        self.drawing = DrawingTerminal()
        self._answer = ANSWERS[kind]
        self._fed = 0

    def until(self, holds: Callable[[], bool], seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, self.drawing.screen()
            self.read()

    def read(self, seconds: float = 0.1) -> None:
        self.terminal.read(seconds)
        text = self.terminal._all
        if "\x1b[>q" in text[max(self._fed - 10, 0) :] and self._answer:
            self.terminal.type(self._answer)
            self._answer = ""
        self.drawing.feed(text[self._fed :])
        self._fed = len(text)

    def type(self, keys: str) -> None:
        self.terminal.type(keys)

    @property
    def rows(self) -> list[int]:
        return sorted({row for row, _ in self.drawing.tiles()})

    def is_idle(self) -> bool:
        """Return whether all of a picture is there; frames come in pieces."""
        return len(self.drawing.tiles()) == 30 * 8

    def resize(self, columns: int, rows: int) -> None:
        self.read()
        self.drawing = DrawingTerminal(columns, rows, images=self.drawing.images)
        self.terminal.resize(columns, rows)
        os.killpg(self.terminal.child.pid, signal.SIGWINCH)

    def end(self) -> None:
        self.terminal.child.send_signal(signal.SIGTERM)
        assert self.terminal.end() == 0
        self.read(0)
        assert self.terminal.lost() == ""


def gradient() -> Image.Image:
    image = Image.new("RGB", SIZE)
    width, height = SIZE
    image.putdata(
        [(x * 255 // width, y * 255 // height, 90) for y in range(height) for x in range(width)]
    )
    return image


def off(shown: Image.Image | None) -> float:
    assert shown is not None
    assert shown.size == SIZE
    bands = ImageChops.difference(shown.convert("RGB"), gradient()).tobytes()
    return sum(bands) / len(bands)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    gradient().save(desk.work / "shot.png")
    left = [call("read", filePath="shot.png"), Answer(text="It is here.")]

    def choose(received: ReceivedRequest) -> Answer:
        if b'"tools"' not in received.body:
            return Answer(text="A title")
        return left.pop(0) if left else Answer(text="\n\n".join(f"line {at}" for at in range(12)))

    with serving(choose) as server:
        desk.use(server)
        # A busy machine is slower than a user.
        (desk.home / "config" / "tui.json").write_text('{"leader_timeout": 60000}')
        yield desk


@pytest.mark.parametrize("kind", ["kitty", "iterm", "sixel"])
def test_a_picture_is_drawn_moves_with_its_rows_and_leaves_nothing(desk: Desk, kind: str) -> None:
    played = Played(desk, kind, "look at it")
    played.until(lambda: played.is_idle() and "It is here." in played.drawing.screen())
    assert off(played.drawing.picture()) <= (9 if kind == "sixel" else 0)
    first = played.rows[0]
    assert "[image shot.png" in played.drawing.screen().split("\n")[first - 1]

    played.type("\x10")
    played.until(lambda: "Commands" in played.drawing.screen())
    played.until(lambda: played.rows == [])
    played.type("\x1b")
    played.until(played.is_idle)
    assert off(played.drawing.picture()) <= (9 if kind == "sixel" else 0)

    played.type("more\r")
    played.until(lambda: "line 11" in played.drawing.screen() and played.rows == [])
    played.type("\x07")  # to the first message
    played.until(lambda: played.is_idle() and played.rows[0] == first)
    assert off(played.drawing.picture()) <= (9 if kind == "sixel" else 0)

    played.resize(60, 15)
    played.until(lambda: len(played.drawing.tiles()) == 19 * 5)
    played.resize(80, 24)
    played.until(played.is_idle)
    played.type("\x18n")  # a new session's tab
    played.until(lambda: played.rows == [])
    played.end()
    assert played.drawing.images == {}


def test_without_colours_or_an_answer_there_is_a_line_of_text(desk: Desk) -> None:
    played = Played(desk, "sixel", "look at it", NO_COLOR="1")
    played.until(lambda: "It is here." in played.drawing.screen())
    played.end()
    assert "\x1b[>q" not in played.terminal._all
    assert played.drawing.taken == {}
