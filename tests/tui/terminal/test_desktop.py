"""Copies reach the user's desktop, and so do calls, by whatever way there is."""

import base64
from pathlib import Path

import pytest

from codeloop.tui.terminal.desktop import (
    find_copy_programs,
    find_opener,
    make_clipboard_sequence,
    make_notification,
    pass_through,
    write_clipboard,
)

SSH = {"SSH_CONNECTION": "10.0.0.1 22 10.0.0.2 22"}
TMUX = {"TMUX": "/tmp/tmux-0/default,1,0"}


def test_the_terminal_is_told_what_to_copy() -> None:
    assert make_clipboard_sequence("hé", {}) == f"\x1b]52;c;{base64.b64encode('hé'.encode()).decode()}\x07"


def test_tmux_gets_a_copy_for_itself_and_one_to_hand_on() -> None:
    plain = make_clipboard_sequence("x", {})
    assert make_clipboard_sequence("x", TMUX) == f"{plain}\x1bPtmux;\x1b{plain}\x1b\\"


def test_screen_hands_a_long_one_on_in_pieces() -> None:
    assert pass_through("y" * 600, {"STY": "1.tty"}) == f"\x1bP{'y' * 512}\x1b\\\x1bP{'y' * 88}\x1b\\"


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
    assert [program[0] for program in find_copy_programs(environment, platform)] == names


@pytest.mark.parametrize(
    ("link", "environment", "platform", "program"),
    [
        ("https://a.example", {"DISPLAY": ":0"}, "linux", "xdg-open"),
        ("mailto:a@b.example", {"WAYLAND_DISPLAY": "wayland-0"}, "linux", "xdg-open"),
        ("http://a.example", {}, "darwin", "open"),
        ("http://a.example", {"WSL_DISTRO_NAME": "Debian"}, "linux", "wslview"),
        ("http://a.example", {}, "linux", ""),
        ("http://a.example", {**SSH, "DISPLAY": ":10"}, "linux", ""),
        ("--version", {"DISPLAY": ":0"}, "linux", ""),
        ("file:///etc/passwd", {}, "darwin", ""),
        ("src/main.py", {}, "darwin", ""),
    ],
)
def test_a_link_is_opened_on_the_desktop_or_not_at_all(
    link: str, environment: dict[str, str], platform: str, program: str
) -> None:
    assert find_opener(link, environment, platform) == ((program, link) if program else ())


async def test_a_program_gets_the_text_and_one_that_fails_is_followed_by_the_next(tmp_path: Path) -> None:
    file = tmp_path / "copied"
    programs = [("false",), ("tee", str(file)), ("xsel", "never")]
    await write_clipboard("the text", programs)
    assert file.read_text() == "the text"


@pytest.mark.parametrize(
    ("environment", "shown"),
    [
        ({"TERM": "xterm-kitty"}, "\x1b]99;i=codeloop:d=0;A, B\x1b\\\x1b]99;i=codeloop:p=body;done?\x1b\\"),
        ({"TERM": "foot"}, "\x1b]777;notify;A, B;done?\x1b\\"),
        ({"TERM": "xterm-256color", "WEZTERM_PANE": "0"}, "\x1b]777;notify;A, B;done?\x1b\\"),
        ({"TERM": "xterm-256color", "KONSOLE_VERSION": "221203"}, "\x1b]777;notify;A, B;done?\x1b\\"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "\x1b]9;A, B: done?\x07"),
        ({"TERM": "xterm-256color"}, ""),
    ],
)
def test_each_terminal_has_its_way_to_notify(environment: dict[str, str], shown: str) -> None:
    assert make_notification("A; B", "done?", environment) == shown


def test_what_a_title_says_can_not_steer_the_terminal() -> None:
    shown = make_notification("a\x1b]52;c;eA==\x07", "b\x07", {"TERM": "foot"})
    assert shown.count("\x1b") == 2
    assert "\x07" not in shown


def test_a_notification_goes_through_tmux() -> None:
    shown = make_notification("A", "B", {**TMUX, "TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"})
    assert shown.startswith("\x1bPtmux;\x1b\x1b]99;")
