"""Copies reach the user's desktop by whatever way there is."""

import base64
from pathlib import Path

import pytest

from codeloop.schema.bounds.tui import PROMPT_CLIPBOARD
from codeloop.schema.wire import replace
from codeloop.tui.terminal.clipboard import find_copy_commands, make_copy_sequence, write_clipboard
from codeloop.tui.terminal.multiplexer import pass_through

SSH = {"SSH_CONNECTION": "10.0.0.1 22 10.0.0.2 22"}
TMUX = {"TMUX": "/tmp/tmux-0/default,1,0"}


def test_the_terminal_is_told_what_to_copy() -> None:
    assert (
        make_copy_sequence("hé", {}) == f"\x1b]52;c;{base64.b64encode('hé'.encode()).decode()}\x07"
    )


def test_tmux_gets_a_copy_for_itself_and_one_to_hand_on() -> None:
    plain = make_copy_sequence("x", {})
    assert make_copy_sequence("x", TMUX) == f"{plain}\x1bPtmux;\x1b{plain}\x1b\\"


def test_screen_hands_a_long_one_on_in_pieces() -> None:
    assert (
        pass_through("y" * 600, {"STY": "1.tty"}) == f"\x1bP{'y' * 512}\x1b\\\x1bP{'y' * 88}\x1b\\"
    )


@pytest.mark.parametrize(
    ("environment", "platform", "names"),
    [
        ({}, "linux", []),
        ({"DISPLAY": ":0"}, "linux", ["xclip", "xsel"]),
        ({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}, "linux", ["wl-copy"]),
        ({}, "darwin", ["pbcopy"]),
        ({"WSL_DISTRO_NAME": "Debian"}, "linux", ["clip.exe"]),
        ({**SSH, "DISPLAY": ":10"}, "linux", []),
        ({**SSH, **TMUX}, "linux", ["tmux"]),
        ({**TMUX, "DISPLAY": ":0"}, "linux", ["tmux", "xclip", "xsel"]),
    ],
)
def test_programs_are_those_of_the_persons_desktop(
    environment: dict[str, str], platform: str, names: list[str]
) -> None:
    assert [program[0] for program in find_copy_commands(environment, platform)] == names


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may need long on a busy machine, longer than a user waits."""
    monkeypatch.setattr(
        "codeloop.tui.terminal.clipboard.PROMPT_CLIPBOARD", replace(PROMPT_CLIPBOARD, value=60_000)
    )


@pytest.mark.usefixtures("patience")
async def test_a_program_gets_the_text_and_one_that_fails_is_followed_by_the_next(
    tmp_path: Path,
) -> None:
    file = tmp_path / "copied"
    programs = [("false",), ("tee", str(file)), ("xsel", "never")]
    await write_clipboard("the text", programs)
    assert file.read_text() == "the text"


@pytest.mark.usefixtures("patience")
async def test_what_tmux_has_taken_is_given_to_the_desktop_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("tmux", "xsel"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\nexec /bin/cat > {tmp_path}/{name}.copied\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    await write_clipboard("the text", find_copy_commands({**TMUX, "DISPLAY": ":0"}, "linux"))
    assert (tmp_path / "tmux.copied").read_text() == "the text"
    assert (tmp_path / "xsel.copied").read_text() == "the text"
