"""How the real program gets along with its terminal."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Desk, serving, steps
from tests.support.answers import Answer, Call
from tests.tui.terminal.screen import ScreenTerminal

QUESTION = (
    """{"questions": [{"header": "Colour", "question": "Which?", "options": [{"label": "red", "description": "-"}]}]}"""
)
READY = "\x1b[?2004h"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    with serving(steps(Answer(calls=(Call("question", QUESTION),), hang=1.5), Answer(text="Done."))) as server:
        desk.use(server)
        yield desk


@pytest.mark.slow
def test_it_ends_with_a_terminal_that_is_gone_although_nobody_tells_it(desk: Desk) -> None:
    deaf = ["/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh", *desk.command]
    terminal = ScreenTerminal(desk, command=deaf)
    terminal.wait_for("or describe a task")
    terminal.close()
    terminal.child.wait(timeout=60)


@pytest.mark.slow
def test_answers_of_the_terminal_are_no_keys_and_a_megabyte_is_pasted(desk: Desk) -> None:
    terminal = ScreenTerminal(desk)
    terminal.wait_for(READY)
    for piece in "\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?62;4c":
        terminal.type(piece)  # however slow the line is
    terminal.type(f"\x1b[200~{'lorem ipsum ' * 90_000}\x1b[201~")
    while "[Pasted 1080000 characters]" not in terminal.shown:
        assert terminal.read(60)
    assert "rgb:" not in terminal.shown
    terminal.child.send_signal(signal.SIGTERM)
    assert terminal.end() == 0
    assert terminal.lost() == ""


@pytest.mark.slow
def test_who_looks_elsewhere_is_called_by_the_desktop_and_the_bell(desk: Desk) -> None:
    terminal = ScreenTerminal(desk, "ask me", TERM="foot")
    terminal.wait_for(READY)
    terminal.type("\x1b[O")
    terminal.wait_for("\x1b]777;notify;codeloop: ")
    terminal.wait_for(";A question is asked\x1b\\\x07")
    terminal.child.send_signal(signal.SIGTERM)
    assert terminal.end() == 0


@pytest.mark.slow
def test_an_editor_that_is_interrupted_and_fails_gives_the_terminal_back(desk: Desk) -> None:
    editor = desk.home / "editor"
    editor.write_text("#!/bin/sh\ntrap '' INT\nkill -INT 0\nexit 3\n")
    editor.chmod(0o755)
    # Wide enough for the whole note, which begins with the path of the editor.
    terminal = ScreenTerminal(desk, columns=200, VISUAL=str(editor))
    terminal.wait_for(READY)
    terminal.type("keep this\x18e")
    terminal.wait_for("code 3: the prompt is as it was.")
    assert terminal.lost()
    terminal.child.send_signal(signal.SIGINT)
    assert terminal.end() == 0
    assert terminal.lost() == ""


@pytest.mark.slow
def test_lines_without_the_marks_of_a_paste_are_one_and_a_flood_is_stopped(desk: Desk) -> None:
    terminal = ScreenTerminal(desk)
    terminal.wait_for(READY)
    terminal.type("".join(f"line {number}\r" for number in range(3_000)))
    terminal.wait_for("[Pasted 3000 lines]")
    terminal.type("\x03")
    for _ in range(30):
        terminal.type("ab cd " * 200)
        while terminal.read(0.01):
            pass
    terminal.type("\x1b")
    terminal.wait_for("keys that waited")
    terminal.child.send_signal(signal.SIGTERM)
    assert terminal.end() == 0
    assert "Resume with" not in terminal.shown
