"""Draws lines over an axis as a small PNG, for `bench.session_growth`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

WIDTH, HEIGHT = 760, 380
LEFT, RIGHT, TOP, BOTTOM = 56, 20, 40, 48
GREY, BLACK = "#d8d8d8", "#202020"
TICK_COUNT = 5


@dataclass(frozen=True, slots=True)
class Line:
    """A name, a colour, and points in the order of x."""

    name: str
    color: str
    points: Sequence[tuple[float, float]]


def draw_plot(title: str, axis: str, lines: Sequence[Line], path: Path) -> None:
    """Draw all lines on one scale from 0 and write the picture. Raises OSError."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (WIDTH, HEIGHT), "white")
    draw = ImageDraw.Draw(image)
    # At least 1, since coordinates are divided by it.
    right = max((x for line in lines for x, _ in line.points), default=1) or 1
    top = _round_up_axis(max((y for line in lines for _, y in line.points), default=1))

    def scale(x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + (WIDTH - LEFT - RIGHT) * x / right,
            HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y / top,
        )

    for tick in range(TICK_COUNT + 1):
        x, y = right * tick / TICK_COUNT, top * tick / TICK_COUNT
        draw.line([scale(0, y), scale(right, y)], fill=GREY)
        draw.text((LEFT - 8, scale(0, y)[1]), f"{y:g}", fill=BLACK, anchor="rm")
        draw.text((scale(x, 0)[0], HEIGHT - BOTTOM + 8), f"{x:,.0f}", fill=BLACK, anchor="mt")
    draw.text((WIDTH / 2, 14), title, fill=BLACK, anchor="mt")
    draw.text((WIDTH / 2, HEIGHT - 14), axis, fill=BLACK, anchor="mm")
    for number, line in enumerate(lines):
        draw.line([scale(x, y) for x, y in line.points], fill=line.color, width=2)
        draw.text((LEFT + 12 + number * 160, TOP - 8), line.name, fill=line.color, anchor="lm")
    image.quantize(32).save(path, optimize=True)


def _round_up_axis(value: float) -> float:
    """Return the next multiple of half a power of ten, so that the axis ends at a round number."""
    step = 10 ** (len(str(int(value))) - 1) / 2
    return (int(value / step) + 1) * step
