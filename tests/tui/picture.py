"""Draws items as a picture: `python -m tests.tui.picture OUT.svg --theme nord --mode
light --width 140 [ITEM ...]`.
"""

import argparse
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style
from rich.terminal_theme import TerminalTheme

from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import pad_row
from codeloop.tui.render.renderer import Renderer
from codeloop.tui.themes.theme_loader import load_theme
from tests.tui.drawing import canvas
from tests.tui.gallery import ITEMS
from tests.tui.parts import NOW


def rows_of(names: Iterable[str], width: int, theme: str, mode: str) -> tuple[list[Row], Style]:
    """Return the rows of items with a blank one between, and the style of the ground."""
    colours = load_theme(theme, "light" if mode == "light" else "dark")
    place = canvas(width, colours)
    drawing = Renderer(place, lambda: NOW / 1000)
    rows: list[Row] = []
    for name in names:
        rows += [*drawing.render(ITEMS[name]), []]
    return rows, place.styles.of("text", "", "background")


def picture(rows: Sequence[Row], ground: Style, width: int) -> str:
    """Return rows as SVG."""
    console = Console(
        width=width,
        record=True,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    for row in rows:
        segments = [
            Segment(text, ground + (style or Style()))
            for text, style, _ in pad_row(row, width, ground)
        ]
        console.print(Segments([*segments, Segment.line()]), end="")
    plain = [
        (0, 0, 0),
        (205, 49, 49),
        (13, 188, 121),
        (229, 229, 16),
        (36, 114, 200),
        (188, 63, 188),
        (17, 168, 205),
    ]
    back = ground.bgcolor.triplet if ground.bgcolor else None
    theme = TerminalTheme(
        back or (16, 16, 16),
        (220, 220, 220),
        [*plain, (229, 229, 229)],
        [(102, 102, 102), *plain[1:], (255, 255, 255)],
    )
    return console.export_svg(title="", theme=theme)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("items", nargs="*")
    parser.add_argument("--theme", default="codeloop")
    parser.add_argument("--mode", default="dark")
    parser.add_argument("--width", type=int, default=80)
    given = parser.parse_args()
    rows, ground = rows_of(given.items or ITEMS, given.width, given.theme, given.mode)
    given.out.write_text(picture(rows, ground, given.width))


if __name__ == "__main__":
    main()
