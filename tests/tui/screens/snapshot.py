"""Screens written down in a form that people can read and compare: their text,
then the runs of their styles.
"""

from collections.abc import Sequence
from itertools import groupby, zip_longest
from string import ascii_letters

from rich.segment import Segment
from rich.style import Style

Line = Sequence[Segment]
LOOKS = ("bold", "italic", "underline", "strike", "reverse", "dim")
NAMES = [*ascii_letters, *(f"{first}{second}" for first in "abcdef" for second in ascii_letters)]


def written(dark: Sequence[Line], light: Sequence[Line]) -> str:
    """Return a screen in two themes: its text, which has to be the same, its runs of styles,
    and what those are.
    """
    known: dict[tuple[str, str], str] = {}
    texts, runs = list[str](), list[str]()
    for one, other in zip_longest(dark, light, fillvalue=()):
        cells = list(zip_longest(_cells(one), _cells(other), fillvalue=("", "")))
        texts_of = ["".join(cell[0] for cell in side) for side in zip(*cells, strict=True)]
        assert len({*texts_of}) < 2, f"its text depends on the theme: {texts_of}"
        texts.append("".join(a[0] for a, _ in cells).rstrip())
        row: list[str] = []
        for pair, run in groupby((a[1], b[1]) for a, b in cells):
            name = known.setdefault(pair, NAMES[len(known)])
            row.append(f"{name}{len(list(run))}")
        runs.append(" ".join(row))
    legend = [f"{name}: {dark} | {light}" for (dark, light), name in known.items()]
    return (
        "\n".join(
            [
                "\n".join(texts).rstrip("\n"),
                "--- styles",
                *_counted(runs),
                "--- dark | light",
                *legend,
            ]
        )
        + "\n"
    )


def _counted(rows: Sequence[str]) -> list[str]:
    """Return rows, with how often where they follow each other."""
    return [f"{count}x {row}" for row, run in groupby(rows) for count in [len(list(run))]]


def _cells(line: Line) -> list[tuple[str, str]]:
    return [(character, _name(segment.style)) for segment in line for character in segment.text]


def _name(style: Style | None) -> str:
    if style is None:
        return ""
    ink, ground = (None if each is None else each.name for each in (style.color, style.bgcolor))
    return " ".join(
        filter(
            None,
            [ink, ground and f"on {ground}", *(each for each in LOOKS if getattr(style, each))],
        )
    )
