"""Runs of a weak model end with the truth on the screen of the terminal UI,
whatever the answer says.
"""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.e2e.desk import EndToEndDesk, open_desk
from tests.support.programs import CODELOOP_PROGRAM
from tests.support.tmux import run_in_pane

pytestmark = pytest.mark.e2e


@pytest.fixture
def desk(tmp_path: Path) -> Generator[EndToEndDesk]:
    with open_desk(tmp_path) as made:
        made.commit_more()
        yield made


@pytest.mark.parametrize(
    ("prompt", "sentences"),
    [
        (
            "claim without a deed",
            (
                "The answer says that checks pass, and none was run in this turn.",
                "The answer says that something was changed, and no file was changed in this",
                "no file was changed",
            ),
        ),
        (
            "throw my work away",
            ("HEAD moved ", "1 stash made.", "Uncommitted work of yours was removed", "notes.txt"),
        ),
        (
            "say that it passes",
            (
                "says that checks pass, and the last one failed.",
                "1 file changed (+1 -1)",
                "checks failed",
            ),
        ),
    ],
)
def test_what_a_weak_model_did_is_on_the_screen(
    desk: EndToEndDesk, prompt: str, sentences: tuple[str, ...]
) -> None:
    with run_in_pane([str(CODELOOP_PROGRAM)], desk.project, desk.environment) as screen:
        screen.sees("Ask, or describe a task")
        screen.type(prompt, "Enter")
        if prompt != "claim without a deed":
            screen.sees("waits for you", "esc esc reject")
            screen.type("", "y")
        screen.sees(*sentences)
