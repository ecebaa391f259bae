"""How the real program gets along with its terminal."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Desk, serving, steps
from tests.support.answers import Answer, Call
from tests.support.http_connection import ReceivedRequest
from tests.tui.terminal.screen import ScreenTerminal

QUESTION = (
    '{"questions": [{"header": "Colour", "question": "Which?", "options": [{"label": '
    '"red", "description": "-"}]}]}'
)
READY = "\x1b[?2004h"


@pytest.fixture
def looked_away() -> threading.Event:
    """Set once the terminal has lost the focus: the model asks nothing before."""
    return threading.Event()


@pytest.fixture
def desk(tmp_path: Path, looked_away: threading.Event) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    answers = steps(Answer(calls=(Call("question", QUESTION),), hang=1.5), Answer(text="Done."))

    def choose(received: ReceivedRequest) -> Answer:
        looked_away.wait(60)
        return answers(received)

    with serving(choose) as server:
        desk.use(server)
        # A busy machine is slower than a user.
        (desk.home / "config" / "tui.json").write_text('{"leader_timeout": 60000}')
        yield desk
        looked_away.set()


@pytest.mark.slow
def test_it_ends_with_a_terminal_that_is_gone_although_nobody_tells_it(desk: Desk) -> None:
    deaf = ["/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh", *desk.command]
    terminal = ScreenTerminal(desk, command=deaf)
    terminal.wait_for("or describe a task")
    terminal.close()
    terminal.child.wait(timeout=60)


@pytest.mark.slow
def test_answers_of_the_terminal_are_no_keys_and_a_megabyte_is_pasted(desk: Desk) -> None:
    # A busy machine may need long from one byte to the next.
    terminal = ScreenTerminal(desk, ESCDELAY="60000")
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
def test_who_looks_elsewhere_is_called_by_the_desktop_and_the_bell(
    desk: Desk, looked_away: threading.Event
) -> None:
    terminal = ScreenTerminal(desk, "ask me", TERM="foot")
    terminal.wait_for(READY)
    terminal.type("\x1b[O")
    looked_away.set()
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
    # Who types here may stand still in the middle of the lines: they end with another key,
    # not with a pause.
    code = "from codeloop.tui.terminal.input import paste_detector; paste_detector.PASTE_PAUSE_SECONDS = 60.0"
    patient = ["-c", f"{code}; from codeloop.cli.main import main; main()"]
    terminal = ScreenTerminal(desk, command=[desk.command[0], *patient])
    terminal.wait_for(READY)
    terminal.type("".join(f"line {number}\r" for number in range(3_000)) + "\x1b[F")
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
