"""Draws screens of a terminal as SVG: one as a still picture,
several as a picture that moves by itself.
"""

import re
from collections.abc import Sequence
from itertools import groupby
from xml.sax.saxutils import escape

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

Line = Sequence[Segment]
CELL, LINE, MARGIN, BAR = 8.4, 18.0, 12.0, 30.0
"""Width of a character, height of a line, the edge, the title bar; in pixels at a font of 14."""
FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
WORD_RUNS = re.compile(r"\S+(?: \S+)*")
"""Without two blanks in a row, which some viewers make one."""
FRAME, FAINT = "#27272a", "#9a9aa5"


def find_colour(style: Style | None, *, background: bool) -> str:
    """Return a colour of a style as `#rrggbb`; "" where it has none."""
    given = None if style is None else style.bgcolor if background else style.color
    return "" if given is None or given.triplet is None else given.triplet.hex


def draw_line(line: Line, background: str) -> str:
    """Return the boxes and texts of one line, at the top left;
    lengths are fixed, so columns hold in any font.
    """
    drawn: list[str] = []
    column = 0
    for style, segments in groupby(line, key=lambda segment: segment.style):
        text = "".join(segment.text for segment in segments)
        start, size = column, cell_len(text)
        column += size
        below, ink = find_colour(style, background=True), find_colour(style, background=False)
        if style is not None and style.reverse:
            below, ink = ink, below
        if below and below != background:
            drawn.append(
                f'<path d="M{start * CELL:g} 0h{size * CELL:g}v{LINE:g}h{-size * CELL:g}z" fill="{below}"/>'
            )
        look = f' fill="{ink}"' if ink else ""
        look += ' font-weight="bold"' if style is not None and style.bold else ""
        look += ' font-style="italic"' if style is not None and style.italic else ""
        look += ' text-decoration="line-through"' if style is not None and style.strike else ""
        look += ' text-decoration="underline"' if style is not None and style.underline else ""
        for words in WORD_RUNS.finditer(text):
            x, size = (start + cell_len(text[: words.start()])) * CELL, cell_len(words[0])
            length = f' textLength="{size * CELL:g}"' if size > 1 else ""
            drawn.append(f'<text x="{x:g}" y="13.5"{length}{look}>{escape(words[0])}</text>')
    return "".join(drawn)


def draw_svg(frames: Sequence[tuple[Sequence[Line], float]], background: str, title: str) -> str:
    """Return the SVG document of a window that shows screens, each for some seconds;
    one alone stands still.
    """
    columns = sum(segment.cell_length for segment in frames[0][0][0])
    width, height = 2 * MARGIN + columns * CELL, BAR + 2 * MARGIN + len(frames[0][0]) * LINE
    line_ids: dict[str, str] = {}
    screens: list[str] = []
    for number, (lines, _) in enumerate(frames):
        uses: list[str] = []
        for row, line in enumerate(lines):
            if drawn := draw_line(line, background):
                name = line_ids.setdefault(drawn, f"l{len(line_ids)}")
                uses.append(f'<use href="#{name}" y="{row * LINE:g}"/>')
        screens.append(f'<g class="f f{number}">{"".join(uses)}</g>')
    lights = "".join(
        f'<circle cx="{18 + 18 * index}" cy="{BAR / 2:g}" r="5.5" fill="{fill}"/>'
        for index, fill in enumerate(("#f87171", "#facc15", "#4ade80"))
    )
    lines = "\n".join(f'<g id="{name}">{drawn}</g>' for drawn, name in line_ids.items())
    body = "\n".join(screens)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img">
<title>{escape(title)}</title>{_write_animation([seconds for _, seconds in frames])}
<rect width="{width:g}" height="{height:g}" rx="8" fill="{background}"/>
<path d="M0 {BAR:g}V8a8 8 0 0 1 8-8h{width - 16:g}a8 8 0 0 1 8 8v{BAR - 8:g}z" fill="{FRAME}"/>
{lights}
<defs>
{lines}
</defs>
<g font-family="{FONT}" font-size="13" fill="{FAINT}" text-anchor="middle">
<text x="{width / 2:g}" y="{BAR / 2 + 5:g}">codeloop</text>
</g>
<g font-family="{FONT}" font-size="14" transform="translate({MARGIN:g} {BAR + MARGIN:g})">
{body}
</g>
</svg>
"""


def _write_animation(seconds: Sequence[float]) -> str:
    """Return the rules that show one screen after the other, for ever."""
    if len(seconds) == 1:
        return ""
    whole, at = sum(seconds), 0.0
    rules = [
        f".f{{visibility:hidden;animation-duration:{whole:g}s;animation-iteration-count:infinite}}"
    ]
    for number, each in enumerate(seconds):
        begin, end = 100 * at / whole, 100 * (at + each) / whole
        before = "0%{visibility:hidden}" if number else ""
        after = f"{end:.3f}%,100%{{visibility:hidden}}" if number < len(seconds) - 1 else ""
        shown = f"{begin:.3f}%{{visibility:visible}}"
        rules.append(f"@keyframes k{number}{{{before}{shown}{after}}}")
        rules.append(f".f{number}{{animation-name:k{number};animation-timing-function:step-end}}")
        at += each
    return "<style>" + "".join(rules) + "</style>"
