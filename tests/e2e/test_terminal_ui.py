"""A whole piece of work in a terminal, as a person does it: in this process,
and attached to a server.
"""

import subprocess
from collections.abc import Generator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.desk import EndToEndDesk, open_desk, run_server
from tests.e2e.model import CART_SOURCE, RIGHT_LINE
from tests.support.programs import CODELOOP_PROGRAM
from tests.support.tmux import Pane, run_in_pane

pytestmark = pytest.mark.e2e
NORD = "48;2;46;52;64"
"""The background of that theme, as a terminal is told."""


@pytest.fixture
def desk(tmp_path: Path) -> Generator[EndToEndDesk]:
    with open_desk(tmp_path) as made:
        yield made


@pytest.mark.parametrize("how", ["in process", "attached"])
def test_a_whole_piece_of_work(desk: EndToEndDesk, how: str) -> None:
    server = run_server(desk) if how == "attached" else nullcontext("")
    with server as url:
        command = [str(CODELOOP_PROGRAM), "attach", url] if url else [str(CODELOOP_PROGRAM)]
        with run_in_pane(command, desk.project, desk.environment) as screen:
            screen.sees("Ask, or describe a task", "build", "ctrl+p commands")
            prompts_tools_and_a_permission(screen, desk)
            undone_and_redone(screen, desk)
            a_question(screen)
            a_theme_from_the_palette(screen)
            two_sessions_at_once(screen)
            left_and_resumed(screen, command)


def prompts_tools_and_a_permission(screen: Pane, desk: EndToEndDesk) -> None:
    screen.type("please mend the total", "Enter")
    screen.sees(
        "please mend the total",
        "I look at the code and the test.",
        "✓ read 1 file, searched 1 time",
        "✓ edit cart.py  +1 -1",
    )
    assert RIGHT_LINE in (desk.project / "cart.py").read_text()
    screen.sees("Run a command", "python3 test_cart.py", "waits for you", "esc esc reject")
    screen.type("", "y")
    screen.sees(
        "✓ bash python3 test_cart.py",
        "Ran 1 test",
        "the test passes",
        "4 steps",
        without=["esc esc reject"],
    )
    screen.sees("Mending the total", "Tasks", "[x] Find out", "Changed files (1)")


def undone_and_redone(screen: Pane, desk: EndToEndDesk) -> None:
    screen.type("/undo", "Enter")
    screen.sees("Undone from here on", "▌ please mend the total")
    assert (desk.project / "cart.py").read_text() == CART_SOURCE
    screen.type("", "C-x", "r")
    screen.sees("Redone", "▌ Ask, or describe a task")
    assert RIGHT_LINE in (desk.project / "cart.py").read_text()


def a_question(screen: Pane) -> None:
    screen.type("ask me", "Enter")
    screen.sees("How should half cents be rounded?", "Half even", "as shops do", "reject")
    screen.type("", "Down", "Enter")
    screen.sees("→ Half up", "Then it is rounded half up.", without=["esc esc reject"])


def a_theme_from_the_palette(screen: Pane) -> None:
    assert NORD not in screen.screen(colours=True)
    screen.type("", "C-p")
    screen.sees("Commands", "esc")
    screen.type("switch theme")
    screen.sees("▸   Switch theme", without=["Show all commands"])
    screen.type("", "Enter")
    screen.sees("Themes", "catppuccin")
    screen.type("nord")
    screen.sees("▸   nord", without=["catppuccin"])
    screen.type("", "Enter")
    screen.sees("Then it is rounded half up.", without=["Themes"])
    screen.sees(NORD, colours=True)


def two_sessions_at_once(screen: Pane) -> None:
    screen.type("", "C-x", "n")
    screen.sees("2 New session")
    screen.type("tell a held story", "Enter")
    screen.sees("word-1 word-2", "2 * ", without=["Changed files"])
    screen.type("", "C-x", "Left")
    screen.sees("Then it is rounded half up.", "2 * ")
    screen.type("say one word", "Enter")
    screen.sees("Certainly.", "2 * ")
    screen.type("", "C-x", "Right")
    screen.sees("word-59 word-60", without=["2 * "])
    screen.type("", "C-x", "w")
    screen.sees("Certainly.", without=["word-60", "2 Telling"])


def left_and_resumed(screen: Pane, command: list[str]) -> None:
    screen.type("", "C-d")
    code, said = screen.ended()
    assert (code, "Resume with: codeloop" in said) == (0, True)
    screen.again([*command, "-c"])
    screen.sees("Telling a story", "word-59 word-60")
    screen.sees(NORD, colours=True)
    screen.type("", "C-x", "l")
    screen.sees("Sessions", "▸", "Telling a story", "Mending the total")
    screen.type("mending", "Enter")
    screen.sees("Certainly.", "Changed files (1)", "1 Telling a story   2 Mending the total")
    screen.type("tell a held story again", "Enter")
    screen.sees("tell a held story again", "word-1 ", "2 * ")
    screen.type("", "C-c")
    goes_on = "attach" in command  # a server's turns go on by themselves
    asked = "Press ctrl+c again to exit" if goes_on else "Press again to leave and stop the turn"
    screen.sees(asked, without=["ctrl+q"])
    screen.type("", "C-c")
    assert screen.ended()[0] == 0


def test_a_turn_goes_on_in_the_background_and_is_found_again_when_it_asks(
    desk: EndToEndDesk,
) -> None:
    notices = desk.folder / "notices.txt"
    programs = desk.folder / "programs"
    programs.mkdir()
    notifier = programs / "notify-send"
    notifier.write_text(f'#!/bin/sh\necho "$@" >> {notices}\n')
    notifier.chmod(0o755)
    environment = desk.environment | {"PATH": f"{programs}:{desk.environment['PATH']}"}
    command = [str(CODELOOP_PROGRAM)]
    with run_in_pane(command, desk.project, environment) as screen:
        screen.sees("Ask, or describe a task", "ctrl+p commands")
        screen.type("/background", "Enter")
        screen.sees("No turn runs here.")
        screen.type("watch the clock", "Enter")
        screen.sees("esc esc reject")
        screen.type("", "y")
        screen.sees("It ticks in the background.", "1 in background", "ctrl+p commands")
        screen.type("", "C-c")
        screen.sees("Press again to leave and end what runs in the background (1)")
        screen.type("tell a long story", "Enter")
        screen.sees("word-3", "esc twice stops")
        screen.type("/background", "Enter")
        screen.sees("What runs in the background (1) is ended; this turn goes on.")
        screen.type("", "y")
        code, said = screen.ended()
        assert code == 0
        assert "works in the background." in said
        screen.again([*command, "status", "--watch"])
        screen.sees("1 waits", "bash python3 test_cart.py")
        screen.again([*command, "-c"])
        screen.sees("tell a long story", "python3 test_cart.py", "esc esc reject")
        screen.type("", "y")
        screen.sees("Ran 1 test", "It went on without a terminal.", without=["esc esc reject"])
        screen.again([*command, "status", "--watch"])
        screen.sees("1 finished")
    told = notices.read_text()
    assert "waits for you" in told
    assert "is done" in told


def test_whose_sessions_are_resumed_is_asked_where_a_folder_was_renamed(desk: EndToEndDesk) -> None:
    before, after = desk.folder / "before", desk.folder / "after"
    before.mkdir()
    command = [str(CODELOOP_PROGRAM)]
    options: dict[str, Any] = {
        "env": desk.environment,
        "stdin": subprocess.DEVNULL,
        "capture_output": True,
    }
    subprocess.run(
        [*command, "run", "say one word"], cwd=before, check=True, timeout=120, **options
    )
    before.rename(after)
    with run_in_pane([*command, "-c"], after, desk.environment) as screen:
        screen.sees("which is gone.", "Is that folder this one now?", "y yes   n cancel")
        screen.type("", "n")
        code, said = screen.ended()
        assert code != 0
        assert "codeloop session adopt" in said
        screen.again([*command, "-c"])
        screen.sees("Is that folder this one now?")
        screen.type("", "y")
        screen.sees("say one word", "Certainly.", without=["Is that folder"])
        screen.type("", "C-d")
        screen.ended()
        screen.again([*command, "-c"])
        screen.sees("say one word", "Certainly.")
