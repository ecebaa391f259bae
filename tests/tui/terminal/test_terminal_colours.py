"""How many colours a terminal has, and whether its ground is dark."""

from pathlib import Path

import pytest

from codeloop.schema.errors import CodeloopError
from codeloop.tui.settings.appearance import Appearance
from codeloop.tui.settings.ui_settings import UiSettings
from codeloop.tui.terminal.terminal_colours import (
    ColourDepth,
    TerminalColours,
    find_colour_depth,
    guess_dark_background,
    parse_dark_background,
)


@pytest.mark.parametrize(
    ("environment", "depth"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "truecolor"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, "none"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": ""}, "truecolor"),
        ({"TERM": "tmux-256color"}, "256"),
        ({"TERM": "xterm-kitty"}, "truecolor"),
        ({"TERM": "alacritty"}, "truecolor"),
        ({"TERM": "mlterm"}, "truecolor"),
        ({"TERM": "xterm", "XTERM_VERSION": "XTerm(379)"}, "truecolor"),
        ({"TERM": "screen", "XTERM_VERSION": "XTerm(379)"}, "standard"),
        ({"TERM": "xterm"}, "standard"),
        ({"TERM": "linux"}, "standard"),
        ({"TERM": "vt100"}, "standard"),
        ({"TERM": "screen"}, "standard"),
        ({"TERM": "one-that-the-table-knows"}, "256"),
        ({}, "standard"),
    ],
)
def test_the_environment_says_how_many_colours_there_are(
    environment: dict[str, str], depth: ColourDepth
) -> None:
    assert (
        find_colour_depth(environment, lambda term: 256 if term.startswith("one-") else 8) == depth
    )


def test_a_terminal_that_nobody_knows_has_few_colours() -> None:
    assert find_colour_depth({"TERM": "no-such-terminal"}) == "standard"


@pytest.mark.parametrize(
    ("answer", "is_dark"),
    [
        ("rgb:0000/0000/0000", True),
        ("rgb:ffff/ffff/ffff", False),
        ("rgb:fd/f6/e3", False),
        ("rgba:1e1e/1e1e/2e2e/ffff", True),
        ("rgb:f/f/f", False),
        ("nonsense", None),
        ("", None),
    ],
)
def test_a_terminal_tells_its_ground(answer: str, is_dark: bool | None) -> None:
    assert parse_dark_background(answer) is is_dark


def test_the_environment_may_tell_it() -> None:
    assert guess_dark_background({})
    assert guess_dark_background({"COLORFGBG": "15;0"})
    assert not guess_dark_background({"COLORFGBG": "0;default;15"})


@pytest.mark.parametrize(
    ("theme", "depth", "used"),
    [
        ("nord", "truecolor", "nord"),
        ("nord", "256", "nord"),
        ("nord", "standard", "system"),
        ("nord", "none", "monochrome"),
    ],
)
def test_a_theme_needs_no_more_colours_than_there_are(
    theme: str, depth: ColourDepth, used: str
) -> None:
    assert Appearance(UiSettings(theme=theme), (), TerminalColours(depth)).theme_name == used


def test_the_ground_decides_unless_the_person_has() -> None:
    look = Appearance(UiSettings(), ())
    dark = look.styles.theme.background
    assert look.set_background(is_dark=False)
    assert look.mode == "light"
    assert look.styles.theme.background != dark
    assert not look.set_background(is_dark=False)
    assert not Appearance(UiSettings(mode="dark"), ()).set_background(is_dark=False)


def test_a_theme_for_one_ground_only_stays(tmp_path: Path) -> None:
    colours = ("primary", "secondary", "accent", "text", "textMuted", "background")
    theme = ", ".join(f'"{name}": {{"dark": "#111111"}}' for name in colours)
    (tmp_path / "mine.json").write_text(f'{{"theme": {{{theme}}}}}')
    look = Appearance(UiSettings(theme="mine"), (tmp_path,))
    assert not look.problem
    assert not look.set_background(is_dark=False)
    assert look.mode == "dark"
    with pytest.raises(CodeloopError):
        look.switch_mode()
    assert look.mode == "dark"
