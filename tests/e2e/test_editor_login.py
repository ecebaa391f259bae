"""Signing in from an editor, which opens `codeloop acp --login` in a terminal."""

from pathlib import Path

import pytest

from tests.e2e.desk import open_desk
from tests.support.programs import CODELOOP_PROGRAM
from tests.support.tmux import run_in_pane

pytestmark = pytest.mark.e2e
KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


def test_a_key_is_asked_for_hidden_and_stored(tmp_path: Path) -> None:
    with (
        open_desk(tmp_path) as desk,
        run_in_pane(
            [str(CODELOOP_PROGRAM), "acp", "--login"], desk.project, desk.environment
        ) as screen,
    ):
        screen.sees("Provider (such as anthropic")
        screen.type("anthropic", "Enter")
        screen.sees("Key for https://api.anthropic.com:")
        screen.type(KEY, "Enter")
        screen.sees("Stored the key sk-…6789 for anthropic")
        code, shown = screen.ended()
        assert (code, KEY in shown) == (0, False)
