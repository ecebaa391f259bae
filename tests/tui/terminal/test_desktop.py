"""Links and notifications reach the user's desktop."""

import pytest

from codeloop.tui.terminal.terminal_app import find_opener, make_notification

SSH = {"SSH_CONNECTION": "10.0.0.1 22 10.0.0.2 22"}
TMUX = {"TMUX": "/tmp/tmux-0/default,1,0"}


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


@pytest.mark.parametrize(
    ("environment", "shown"),
    [
        (
            {"TERM": "xterm-kitty"},
            "\x1b]99;i=codeloop:d=0;A, B\x1b\\\x1b]99;i=codeloop:p=body;done?\x1b\\",
        ),
        ({"TERM": "foot"}, "\x1b]777;notify;A, B;done?\x1b\\"),
        ({"TERM": "xterm-256color", "WEZTERM_PANE": "0"}, "\x1b]777;notify;A, B;done?\x1b\\"),
        (
            {"TERM": "xterm-256color", "KONSOLE_VERSION": "221203"},
            "\x1b]777;notify;A, B;done?\x1b\\",
        ),
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
