"""Themes load from files of the reference's format, and say what is wrong with one."""

import json
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from codeloop.tui.themes.palette_256 import fit_to_palette, name_colour
from codeloop.tui.themes.styles import Styles
from codeloop.tui.themes.textual_theme import make_textual_theme, measure_luminance
from codeloop.tui.themes.theme_loader import ThemeError, list_themes, load_theme

SMALL = {
    "primary": "#111111", "secondary": 4, "accent": "none", "text": "ink",
    "textMuted": {"dark": "#fff", "light": "ink"}, "background": "#00000A",
}  # fmt: skip


def measure_contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours (`#rrggbb`), 1 to 21, as WCAG defines it."""
    low, high = sorted((measure_luminance(first), measure_luminance(second)))
    return (high + 0.05) / (low + 0.05)


def write(folder: Path, theme: object, defs: object = None, name: str = "mine") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"
    file.write_text(
        json.dumps({"defs": {"ink": "#222222"} if defs is None else defs, "theme": theme})
    )
    return file


def test_values_are_colours_numbers_references_and_one_for_each_mode(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    dark, light = load_theme("mine", "dark", [tmp_path]), load_theme("mine", "light", [tmp_path])
    assert (dark.primary, dark.secondary, dark.accent, dark.text) == (
        "#111111",
        "ansi_blue",
        "",
        "#222222",
    )
    assert (dark.text_muted, light.text_muted) == ("#ffffff", "#222222")
    assert dark.background == "#00000a"


def test_what_a_file_leaves_out_follows_from_what_it_has(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    theme = load_theme("mine", "dark", [tmp_path])
    assert theme.markdown_heading == theme.error == theme.accent
    assert theme.border_active == theme.syntax_function == theme.primary
    assert theme.diff_added_line_number_bg == theme.background


def test_keys_that_mean_nothing_here_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path, SMALL | {"selectedListItemText": "nowhere", "thinkingOpacity": 0.6})
    assert load_theme("mine", "dark", [tmp_path]).text == "#222222"


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"primary": None}, "theme.primary"),
        ({"text": "inc"}, "theme.text"),
        ({"text": 256}, "theme.text"),
        ({"text": {"dark": "#123456"}}, "theme.text.light"),
        ({"error": "#12345"}, "theme.error"),
        ({"error": "warning", "warning": "error"}, "theme.error"),
    ],
)
def test_a_broken_theme_is_refused_with_its_file_and_key(
    tmp_path: Path, change: dict[str, object], key: str
) -> None:
    file = write(tmp_path, SMALL | change)
    with pytest.raises(ThemeError) as caught:
        load_theme("mine", "light", [tmp_path])
    assert str(file) in str(caught.value)
    assert f"`{key}`" in str(caught.value)


def test_a_required_key_that_is_missing_is_named(tmp_path: Path) -> None:
    write(tmp_path, {key: value for key, value in SMALL.items() if key != "text"})
    with pytest.raises(ThemeError, match=r"has no `theme\.text`"):
        load_theme("mine", "dark", [tmp_path])


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"theme": 1}', '{"theme": {}, "defs": []}'])
def test_a_file_that_is_no_theme_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "odd.json").write_text(content)
    with pytest.raises(ThemeError, match=r"odd\.json"):
        load_theme("odd", "dark", [tmp_path])


def test_an_unknown_name_is_answered_with_those_that_there_are(tmp_path: Path) -> None:
    for name in ("nowhere", "../codeloop"):
        with pytest.raises(ThemeError, match=r"There are: .*codeloop.*system"):
            load_theme(name, "dark", [tmp_path])


def test_the_last_folder_wins(tmp_path: Path) -> None:
    write(tmp_path / "a", SMALL | {"primary": "#aaaaaa"}, name="codeloop")
    write(tmp_path / "b", SMALL | {"primary": "#bbbbbb"}, name="codeloop")
    assert load_theme("codeloop", "dark", [tmp_path / "a", tmp_path / "b"]).primary == "#bbbbbb"
    assert list_themes([tmp_path / "a"]) == list_themes()


def test_numbers_are_the_terminals_sixteen_and_then_the_cube_and_the_greys() -> None:
    assert [name_colour(at) for at in (1, 8, 15)] == [
        "ansi_red",
        "ansi_bright_black",
        "ansi_bright_white",
    ]
    assert [name_colour(at) for at in (16, 21, 196, 231, 232, 255)] == [
        "#000000", "#0000ff", "#ff0000", "#ffffff", "#080808", "#eeeeee",
    ]  # fmt: skip


@pytest.mark.parametrize("name", list_themes())
@pytest.mark.parametrize("mode", ["dark", "light"])
def test_widgets_get_each_colour_as_a_variable(name: str, mode: str) -> None:
    theme = load_theme(name, "dark" if mode == "dark" else "light")
    made = make_textual_theme(theme, name)
    variables = made.to_color_system().generate() | made.variables
    assert variables["text-muted"] == (theme.text_muted or "ansi_default")
    assert variables["background-panel"] == (theme.background_panel or "ansi_default")
    if theme.background:
        assert made.dark == (mode == "dark")


def test_without_colours_what_is_muted_is_dim() -> None:
    styles = Styles(load_theme("monochrome", "dark"))
    assert styles.of("text_muted").dim
    assert not styles.of("text").dim
    assert not Styles(load_theme("codeloop", "dark")).of("text_muted").dim


GROUNDS = ("background", "background_panel", "background_element")
MUTED = ("text_muted", "markdown_block_quote", "syntax_comment", "markdown_horizontal_rule")
NO_TEXT = (
    "background",
    "border",
    "_bg",
    "highlight",
    "diff_context",
    "diff_line_number",
    "diff_hunk_header",
)


@pytest.mark.parametrize("mode", ["dark", "light"])
@pytest.mark.parametrize("name", list_themes())
def test_text_can_be_read_on_every_ground_of_every_theme(name: str, mode: str) -> None:
    theme = load_theme(name, "dark" if mode == "dark" else "light")
    if not theme.background.startswith("#"):
        pytest.skip("the terminal's own colours")
    strong = 7.0 if name.startswith("high-contrast") else 4.5
    colours: dict[str, str] = msgspec.structs.asdict(theme)
    pairs = [
        (
            colour,
            ground,
            3.0
            if colour in MUTED and strong == 4.5
            else min(strong, 4.5)
            if colour in MUTED
            else strong,
        )
        for colour in colours
        if not any(word in colour for word in NO_TEXT)
        for ground in GROUNDS
    ]
    pairs += [
        (colour, f"diff_{side}_bg", 4.5)
        for colour in ("text", "syntax_string")
        for side in ("added", "removed")
    ]
    pairs += [(f"diff_{side}", f"diff_{side}_bg", 4.5) for side in ("added", "removed")]
    pairs += [("text", f"diff_highlight_{side}", 4.5) for side in ("added", "removed")]
    pairs += [
        ("diff_line_number", f"diff_{side}_line_number_bg", 3.0) for side in ("added", "removed")
    ]
    pairs += [
        (colour, "background", 3.0)
        for colour in ("diff_context", "diff_line_number", "diff_hunk_header")
    ]
    poor = {
        f"{colour} on {ground}": round(found, 2)
        for colour, ground, least in pairs
        if (found := measure_contrast(colours[colour], colours[ground])) < least
    }
    assert poor == {}


XTERM = {
    "": "#ffffff",
    "red": "#cd0000",
    "green": "#00cd00",
    "blue": "#0000ee",
    "magenta": "#cd00cd",
    "bright_black": "#7f7f7f",
}
"""Colours that xterm gives the names; "" is the ground."""


def test_with_sixteen_colours_text_is_legible_on_white() -> None:
    colours: dict[str, str] = msgspec.structs.asdict(load_theme("system", "light"))
    text = {key: XTERM[value.removeprefix("ansi_")] for key, value in colours.items() if value}
    poor = {key for key, colour in text.items() if measure_contrast(colour, XTERM[""]) < 3.9}
    assert poor == {"success"}, "a tick or a dot, with words beside it"


@pytest.mark.parametrize("mode", ["dark", "light"])
@pytest.mark.parametrize("name", ["codeloop", "github", "nord", "dracula", "gruvbox"])
def test_with_256_colours_a_diff_is_legible_and_its_sides_differ(
    name: str, mode: Literal["dark", "light"]
) -> None:
    theme = fit_to_palette(load_theme(name, mode), is_dark=mode == "dark")
    grounds = [
        theme.diff_added_bg,
        theme.diff_removed_bg,
        theme.diff_highlight_added,
        theme.diff_highlight_removed,
    ]
    assert len({*grounds, theme.background}) == 5
    for ground in grounds[:2]:
        assert measure_contrast(theme.text, ground) >= 4.5
        assert measure_contrast(theme.diff_line_number, ground) >= 2.5
