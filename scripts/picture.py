"""Draws a real run of `codeloop demo` in a terminal as a picture.

python scripts/picture.py docs/assets/demo.svg
"""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from xml.sax.saxutils import escape

COLUMNS, ROWS = 100, 60
DEADLINE = 60.0
"""Seconds that the run may take."""
CELL, LINE, MARGIN, BAR = 8.4, 19.0, 16.0, 34.0
"""Width of a character, height of a line, the edge, the title bar; in pixels at a font of 14."""

FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
PLAIN, BACKGROUND, FRAME = "#d4d4d8", "#18181b", "#27272a"
COLOURS = {31: "#f87171", 32: "#4ade80", 33: "#facc15", 36: "#22d3ee"}
DIM = "#9a9aa5"

WORDS = re.compile(r"\S+(?: \S+)*")
"""Without two blanks in a row, which some viewers make one."""
ESCAPE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|(\x1b)")


@dataclass(frozen=True, slots=True)
class Look:
    """How a character is shown: what the SGR codes that codeloop prints can say."""

    bold: bool = False
    dim: bool = False
    colour: int | None = None

    def then(self, code: int) -> "Look":
        """Return the look after one more SGR code; ValueError for one that this picture can't show."""
        match code:
            case 0:
                return Look()
            case 1:
                return replace(self, bold=True)
            case 2:
                return replace(self, dim=True)
            case _ if code in COLOURS:
                return replace(self, colour=code)
            case _:
                raise ValueError(f"SGR code {code} has no row in COLOURS")

    @property
    def attributes(self) -> str:
        """The SVG attributes."""
        fill = COLOURS[self.colour] if self.colour else DIM if self.dim else PLAIN
        return f'fill="{fill}"' + (' font-weight="bold"' if self.bold else "")


Cell = tuple[str, Look]


def run_in_terminal(command: list[str]) -> str:
    """Run a command with a terminal of its own and return what it printed; RuntimeError when it fails or hangs."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    environment |= {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    printed, end = bytearray(), time.monotonic() + DEADLINE
    try:
        while select.select([ours], [], [], max(0.0, end - time.monotonic()))[0]:
            try:
                printed += os.read(ours, 65536)
            except OSError:  # Linux says so when the other side has closed
                break
        if child.wait(timeout=max(0.1, end - time.monotonic())) != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {child.returncode}:\n{printed.decode()}")
    finally:
        child.kill()
        os.close(ours)
    return printed.decode()


def screen(printed: str) -> list[list[Cell]]:
    """Return the lines that a terminal of COLUMNS shows; ValueError for a control sequence that is not understood."""
    rows: list[list[Cell]] = [[]]
    look, column, at = Look(), 0, 0
    for found in ESCAPE.finditer(printed):
        column = write(rows, printed[at : found.start()], look, column)
        at = found.end()
        match found[2], found[1]:
            case "m", codes:
                for code in codes.split(";"):
                    look = look.then(int(code or 0))
            case "K", "2":
                rows[-1].clear()
            case _:
                raise ValueError(f"{found[0]!r} is not understood")
    write(rows, printed[at:], look, column)
    while rows and not rows[-1]:
        rows.pop()
    return rows


def write(rows: list[list[Cell]], text: str, look: Look, column: int) -> int:
    """Write text without control sequences from a column on; return the column after it."""
    for character in text:
        if character == "\n":
            rows.append([])
        elif character == "\r":
            column = 0
        else:
            if column == COLUMNS:
                rows.append([])
                column = 0
            row = rows[-1]
            row.extend([(" ", Look())] * (column - len(row)))
            row[column : column + 1] = [(character, look)]
            column += 1
    return column


def draw(rows: list[list[Cell]], title: str) -> str:
    """Return the SVG document of a terminal window that shows these lines."""
    width, height = 2 * MARGIN + COLUMNS * CELL, BAR + 2 * MARGIN + len(rows) * LINE
    lights = "".join(
        f'<circle cx="{20 + 20 * index}" cy="{BAR / 2:g}" r="6" fill="{fill}"/>'
        for index, fill in enumerate(("#f87171", "#facc15", "#4ade80"))
    )
    lines = "\n".join(line for number, row in enumerate(rows) for line in draw_row(row, number))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img">
<title>{escape(title)}</title>
<rect width="{width:g}" height="{height:g}" rx="8" fill="{BACKGROUND}"/>
<path d="M0 {BAR:g}V8a8 8 0 0 1 8-8h{width - 16:g}a8 8 0 0 1 8 8v{BAR - 8:g}z" fill="{FRAME}"/>
{lights}
<g font-family="{FONT}" font-size="14" xml:space="preserve">
<text x="{width / 2:g}" y="{BAR / 2 + 5:g}" text-anchor="middle" fill="{DIM}">codeloop demo</text>
{lines}
</g>
</svg>
"""


def draw_row(row: list[Cell], number: int) -> list[str]:
    """Return text elements for each run of one look; their length is fixed, so that columns hold in any font."""
    drawn: list[str] = []
    column = 0
    for look, cells in groupby(row, key=lambda cell: cell[1]):
        text = "".join(character for character, _ in cells)
        for words in WORDS.finditer(text):
            shown = words[0]
            x, y = MARGIN + (column + words.start()) * CELL, BAR + MARGIN + number * LINE + 14
            length = f' textLength="{len(shown) * CELL:g}"' if len(shown) > 1 else ""
            drawn.append(f'<text x="{x:g}" y="{y:g}"{length} {look.attributes}>{escape(shown)}</text>')
        column += len(text)
    return drawn


def main(arguments: list[str]) -> int:
    """Take the file to write; return the exit code."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python scripts/picture.py FILE.svg\n")
        return 2
    printed = run_in_terminal([str(Path(sys.executable).parent / "codeloop"), "demo"])
    title = (
        "A run of codeloop demo: the agent runs the tests, reads two files, fixes one line, and runs the tests again."
    )
    Path(arguments[0]).write_text(draw(screen(printed), title), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
