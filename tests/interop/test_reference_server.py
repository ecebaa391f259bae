"""Our terminal UI drives the reference's server, as far as its routes go;
one that it hasn't does not break the UI.
"""

import json
import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.e2e.desk import EndToEndDesk, open_desk
from tests.e2e.model import CART_SOURCE, RIGHT_LINE
from tests.interop.stage import PASSWORD, find_reference_program
from tests.support.programs import CODELOOP_PROGRAM, LISTENING_PREFIX, run_program
from tests.support.tmux import run_in_pane

pytestmark = pytest.mark.interop


@pytest.fixture
def desk(tmp_path: Path) -> Generator[EndToEndDesk]:
    with open_desk(tmp_path) as made:
        yield made


@pytest.fixture
def url(desk: EndToEndDesk) -> Generator[str]:
    """Run the reference's server in the project, with the same model service."""
    config = desk.home / ".config" / "opencode" / "opencode.json"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps(desk.config))
    quiet = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    # Where the machine has no ripgrep, the reference would download one;
    # ours is a wheel among our requirements.
    path = f"{desk.environment['PATH']}{os.pathsep}{Path(sys.executable).parent}"
    env = desk.environment | quiet | {"OPENCODE_SERVER_PASSWORD": PASSWORD, "PATH": path}
    with run_program(
        [find_reference_program(), "serve", "--port", "0"], desk.project, env, LISTENING_PREFIX
    ) as url:
        yield url


def test_a_piece_of_work_on_the_references_server(desk: EndToEndDesk, url: str) -> None:
    command = [str(CODELOOP_PROGRAM), "attach", url, "--password", PASSWORD]
    with run_in_pane(command, desk.project, desk.environment, (120, 50)) as screen:
        screen.sees("Ask, or describe a task", "build", "ctrl+p commands")
        screen.type("please mend the total", "Enter")
        screen.sees(
            "please mend the total", "✓ read 1 file, searched 1 time", "✓ edit cart.py  +1 -1"
        )
        screen.sees(
            "Tasks", "[x] Find out", "Run a command", "python3 test_cart.py", "esc esc reject"
        )
        screen.type("", "y")
        screen.sees(
            "✓ bash python3 test_cart.py",
            "Ran 1 test",
            "the test passes",
            "4 steps",
            "Mending the total",
        )
        assert RIGHT_LINE in (desk.project / "cart.py").read_text()
        screen.type("ask me", "Enter")
        screen.sees("How should half cents be rounded?", "as shops do", "esc esc reject")
        screen.type("", "Down", "Enter")
        screen.sees(
            "→ Half up", "Then it is rounded half up.", "2 steps", without=["esc esc reject"]
        )
        screen.type("/undo", "Enter")
        screen.sees("Undone from here on", "▌ ask me")
        screen.type("", "C-x", "u")
        screen.sees("▌ please mend the total", without=["Ran 1 test"])
        assert (desk.project / "cart.py").read_text() == CART_SOURCE
        screen.type("", "C-x", "r")
        screen.sees("Ran 1 test", "▌ ask me", "Undone from here")
        assert RIGHT_LINE in (desk.project / "cart.py").read_text()
        screen.type("", "C-x", "r")
        screen.sees("→ Half up", without=["Undone from here"])
        screen.type("/settings", "Enter")
        screen.sees("Settings", "small_model", "mine/coder")
        screen.type("", "Escape")
        screen.sees("→ Half up", without=["small_model"])
        screen.type("", "C-x", "n")
        screen.sees("2 New session")
        screen.type("tell a story", "Enter")
        screen.sees("word-1 word-2", "2 * ")
        screen.type("", "C-x", "l")
        screen.sees("Sessions", "Mending the total")
        screen.type("mending", "Enter")
        screen.sees("→ Half up", without=["Sessions"])
        screen.type("", "C-x", "w")
        screen.sees("word-59 word-60")
        screen.type("", "C-d")
        assert screen.ended()[0] == 0
        screen.again([*command, "-c"])
        screen.sees("Telling a story", "word-59 word-60")
        screen.type("", "C-d")
        assert screen.ended()[0] == 0
