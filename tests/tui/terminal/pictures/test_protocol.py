"""How a terminal draws pictures, by what it answers."""

import os
import stat
from pathlib import Path

import pytest

from codeloop.tui.terminal.pictures.cell_size import find_cell_size
from codeloop.tui.terminal.pictures.protocol import (
    PictureProtocol,
    find_protocol,
    guess_protocol,
    query_outer_terminal,
)


@pytest.mark.parametrize(
    ("version", "attributes", "protocol"),
    [
        ("kitty(0.35.2)", "62;", "kitty"),
        ("kitty(0.26.5)", "62;", ""),
        ("ghostty 1.2.0", "62;22", "kitty"),
        ("WezTerm 20240203-110809", "65;4;6;18;22", "iterm"),
        ("iTerm2 3.5.10", "64;1;2;4;6", "iterm"),
        ("XTerm(379)", "64;1;2;4;6;9", "sixel"),
        ("XTerm(379)", "64;1;2;6;9", ""),
        ("foot(1.13.1)", "62;4;22", "sixel"),
        ("", "62;4;22", "sixel"),
        ("Konsole 23.08.1", "62;1;4", ""),
        ("", "4", ""),
        ("", "", ""),
    ],
)
def test_a_terminal_says_how(version: str, attributes: str, protocol: PictureProtocol) -> None:
    assert find_protocol({"version": version, "attributes": attributes}) == protocol


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("kitty(0.35.2)\\n256,RGB,title\\non", "kitty(0.35.2)"),
        ("kitty(0.35.2)\\n256,RGB,title\\n1", "kitty(0.35.2)"),
        ("kitty(0.35.2)\\n256,RGB,title\\noff", None),
        ("kitty(0.35.2)\\n256,title\\non", None),
        ("XTerm(379)\\n256,RGB\\non", None),
        ("", None),
    ],
)
async def test_tmux_hands_on_what_kitty_draws(
    said: str, version: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "tmux"
    program.write_text(f"#!/bin/sh\nprintf '{said}'\n")
    program.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert (await query_outer_terminal()).get("version") == version


def test_a_cell_is_as_the_terminal_says() -> None:
    with Path(os.devnull).open() as nothing:
        assert find_cell_size({"cell": "20;10"}, nothing.fileno()) == (10, 20)
        for answer in ("", "0;0", "x;y", "20"):
            assert find_cell_size({"cell": answer}, nothing.fileno()) is None


@pytest.mark.parametrize(
    ("environment", "protocol"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-ghostty"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "iterm"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "iterm"),
        ({"TERM": "foot"}, "sixel"),
        ({"TERM": "xterm"}, ""),
        ({"TERM": "xterm-256color", "KONSOLE_VERSION": "230800"}, "kitty"),
        ({"TERM": "tmux-256color", "TMUX": "/tmp/x", "TERM_PROGRAM": "iTerm.app"}, ""),
        ({"TERM": "xterm-256color"}, ""),
        ({}, ""),
    ],
)
def test_variables_name_a_terminal_that_draws(environment: dict[str, str], protocol: str) -> None:
    assert guess_protocol(environment) == protocol
