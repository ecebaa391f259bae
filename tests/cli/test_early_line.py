"""A question on a terminal is not answered by the end of a line that was being
typed when it appeared.
"""

import asyncio
import os

import pytest

from codeloop.cli.chat import line_terminal
from codeloop.cli.chat.line_terminal import LineTerminal
from codeloop.cli.output.streams import OutputQueue, OutputStream

LONG_SECONDS = 3_600.0


@pytest.mark.parametrize(
    ("line", "is_kept"), [("go on", True), ("y", False), ("a", False), ("", False)]
)
async def test_a_line_that_ends_as_a_question_appears_is_no_answer(
    monkeypatch: pytest.MonkeyPatch, line: str, is_kept: bool
) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading), os.fdopen(writing, "w") as stream:
        output = OutputStream(stream, OutputQueue(asyncio.get_running_loop()))
        terminal = LineTerminal(output, output, is_attended=True, thinking=False)
        monkeypatch.setattr(line_terminal, "READING_SECONDS", LONG_SECONDS)
        asking = asyncio.create_task(terminal.ask("Run it? y, n: "))
        await asyncio.sleep(0)
        terminal.lines.put(line)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not asking.done()
        monkeypatch.setattr(line_terminal, "READING_SECONDS", 0.0)
        terminal.lines.put("n")
        assert await asking == "n"
        terminal.lines.put("the next prompt")
        assert await terminal.lines.take_line() == (line if is_kept else "the next prompt")
        await output.drain()
        shown = os.read(reading, 65_536).decode()
    assert shown.count("Run it?") == 2
    assert f"“{line}” came before this could be read" in shown or not line
