"""The line at the foot of a terminal: keys edit it, and what is written meanwhile stays above it."""

import asyncio
import os
import sys
import termios
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from codeloop.cli.chat.line_editor import Editor
from codeloop.cli.output.streams import Outlet, Output
from codeloop.schema.limits import EDITOR_ESCAPE
from tests.support.project import until, within


class Pen:
    """An editor on a pseudo-terminal: `keys` types, `screen` is the last line as a terminal of 60 columns shows it."""

    def __init__(self, main: int, editor: Editor, out: Output) -> None:
        self._main = main
        self.editor = editor
        self.out = out
        self.shown = ""
        asyncio.get_running_loop().add_reader(main, self._read)

    def _read(self) -> None:
        self.shown += os.read(self._main, 65_536).decode()

    def keys(self, text: str) -> None:
        os.write(self._main, text.encode())

    def rows(self) -> list[str]:
        return [row.rpartition("\x1b[2K")[2] for row in self.shown.replace("\r\n", "\n").split("\n")]

    async def shows(self, last: str) -> None:
        await until(lambda: self.rows()[-1] == last)


@asynccontextmanager
async def pen(monkeypatch: pytest.MonkeyPatch, columns: int = 60) -> AsyncGenerator[Pen]:
    main, side = os.openpty()
    monkeypatch.setenv("COLUMNS", str(columns))
    with os.fdopen(side, "r+b", buffering=0) as raw, os.fdopen(os.dup(raw.fileno()), "w") as stream:
        monkeypatch.setattr(sys, "stdin", raw)
        before = termios.tcgetattr(raw)
        out = Output(stream, Outlet(asyncio.get_running_loop()))
        editor = Editor(out)
        editor.start()
        made = Pen(main, editor, out)
        editor.rest(quiet=True)
        await made.shows("> ")
        try:
            yield made
            editor.stop()
            assert termios.tcgetattr(raw) == before
        finally:
            asyncio.get_running_loop().remove_reader(main)
            os.close(main)


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("hello", "hello"),
        ("helo\x1b[Dl\x05!", "hello!"),
        ("world\x01hello \x1b[F.", "hello world."),
        ("one two  \x17three\x7f\x7f", "one thr"),
        ("wrong\x15right", "right"),
        ("keepdrop\x1b[D\x1b[D\x1b[D\x1b[D\x0b", "keep"),
        ("abc\x1b[H\x1b[3~\x04", "c"),
        ("äöü漢\x02\x02\x7f", "äü漢"),
        ("\x1b[200~two\r\nlines\x1b[201~", "two\nlines"),
        ("a\x1b[200~\x1b[31mred\x1b[201~b", "a\x1b[31mredb"),
        ("x\x1b[5~\x1bq\x1b[1;5Cy", "xy"),
    ],
)
async def test_keys_edit_the_line(monkeypatch: pytest.MonkeyPatch, keys: str, line: str) -> None:
    async with pen(monkeypatch) as it:
        for key in keys.encode():  # a byte at a time: characters and sequences are put together
            os.write(it._main, bytes([key]))
            await asyncio.sleep(0)
        it.keys("\r")
        assert await within(it.editor.lines.take()) == line


async def test_the_escape_key_alone_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pen(monkeypatch) as it:
        it.keys("a\x1b")
        await it.shows("> a")
        await asyncio.sleep(2 * EDITOR_ESCAPE.seconds)
        it.keys("b\r")
        assert await within(it.editor.lines.take()) == "ab"


async def test_lines_come_back_with_the_arrow_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pen(monkeypatch) as it:
        it.keys("one\rtwo\rdraft\x1b[A\x1b[A")
        await it.shows("> one")
        it.keys("\x1b[B\x1b[B")
        await it.shows("> draft")
        it.keys("\x15\x1b[A!\r")
        assert [await within(it.editor.lines.take()) for _ in range(3)] == ["one", "two", "two!"]


async def test_what_is_written_stays_above_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pen(monkeypatch) as it:
        it.keys("typed")
        await it.shows("> typed")
        it.editor.above(lambda: it.out.write("news\n"))
        await until(lambda: it.rows()[-2:] == ["news", "> typed"])


async def test_while_something_runs_the_output_waits_for_the_line_that_is_typed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with pen(monkeypatch) as it:
        it.editor.rest(quiet=False)
        it.editor.above(lambda: it.out.write("half a l"))
        await it.shows("half a l")
        it.keys("more")
        await it.shows("> more")
        it.editor.above(lambda: it.out.write("ine\n"))
        it.keys("!")
        await it.shows("> more!")
        it.keys("\r")
        await until(lambda: it.rows()[-4:] == ["half a l", "> more!", "ine", ""])
        assert await within(it.editor.lines.take()) == "more!"


async def test_a_question_is_not_answered_by_what_was_typed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pen(monkeypatch) as it:
        it.keys("y")
        await it.shows("> y")
        asking = asyncio.create_task(it.editor.ask("Allow? "))
        await it.shows("Allow? ")
        it.keys("n\r")
        assert await within(asking) == "n"
        await it.shows("> y")
        it.keys("es\r")
        assert await within(it.editor.lines.take()) == "yes"


async def test_a_long_line_is_shown_around_its_cursor_and_control_characters_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with pen(monkeypatch, columns=20) as it:
        it.keys("0123456789abcdefghij")
        await it.shows("> 3456789abcdefghij")
        it.keys("\x01")
        await until(lambda: it.rows()[-1].startswith("> 0123456789abcdefg\x1b[17D"))
        it.keys("\x15\x0b\x1b[200~\x1b]0;x\x07\u202e\x1b[201~")
        await until(lambda: "\u2407" in it.rows()[-1])
        assert "\x07" not in it.rows()[-1]


async def test_the_end_of_input_ends_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pen(monkeypatch) as it:
        it.keys("a\x04\r\x04")
        assert await within(it.editor.lines.take()) == "a"
        assert await within(it.editor.lines.take()) is None
        assert await within(it.editor.lines.answer()) is None
