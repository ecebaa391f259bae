"""Rows made for tests, and written down in a form that people can read and compare."""

from collections.abc import Iterable
from typing import Any

from rich.cells import cell_len
from rich.style import Style

from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.renderer import Renderer
from codeloop.tui.state.conversation_items import Item
from codeloop.tui.themes.styles import Styles
from codeloop.tui.themes.theme import ColourTheme
from tests.tui.parts import DIRECTORY, NOW

FIELDS = ColourTheme.__struct_fields__
PROBE = ColourTheme(**{name: f"#{number + 1:06x}" for number, name in enumerate(FIELDS)})
"""A theme in which each colour is its own name."""
LOOKS = ("bold", "italic", "underline", "strike", "reverse", "dim")


def canvas(width: int = 80, theme: ColourTheme = PROBE, **given: Any) -> Canvas:
    return Canvas(width=width, styles=Styles(theme), directory=DIRECTORY, **given)


def renderer(width: int = 80, **given: Any) -> Renderer:
    return Renderer(canvas(width, **given), lambda: NOW / 1000)


def draw(item: Item, width: int = 80, **given: Any) -> list[Row]:
    """Return an item's rows; none of them may be too wide."""
    rows = renderer(width, **given).render(item)
    check(rows, width)
    return rows


def check(rows: Iterable[Row], width: int) -> None:
    for row in rows:
        shown = "".join(segment.text for segment in row)
        assert cell_len(shown) <= width, shown
        assert not set(shown) & set("\n\t\r\x1b"), shown


def plain(rows: Iterable[Row]) -> str:
    """Return the text alone."""
    return "\n".join("".join(segment.text for segment in row).rstrip() for row in rows)


def styled(rows: Iterable[Row]) -> str:
    """Return each row with the style in braces where it changes:
    `{error}no{text_muted} such file`.
    """
    lines: list[str] = []
    for row in rows:
        line, last = "", ""
        for segment in row:
            name = style_name(segment.style)
            if name != last and segment.text:
                line += f"{{{name}}}"
                last = name
            line += segment.text
        lines.append(line)
    return "\n".join(lines)


def style_name(style: Style | None) -> str:
    """Return a style of the probing theme in words: `text_muted bold on background_panel`,
    and what a click does.
    """
    if style is None:
        return ""
    words: list[str] = []
    for colour, before in ((style.color, ""), (style.bgcolor, "on ")):
        if colour is not None and colour.triplet is not None:
            number = int(colour.triplet.hex[1:], 16)
            words.append(
                before + (FIELDS[number - 1] if 0 < number <= len(FIELDS) else colour.triplet.hex)
            )
        elif colour is not None and not colour.is_default:
            words.append(before + colour.name)
    words += [name for name in LOOKS if getattr(style, name)]
    words += [f"{action}={target}" for action, target in style.meta.items() if action != "gutter"]
    return " ".join(words)
