"""Draws a real run of `codeloop demo` in a terminal as a picture.

python -m scripts.record_demo docs/assets/demo.svg
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
from itertools import groupby
from pathlib import Path

from rich.segment import Segment
from rich.style import Style

from scripts.terminal_svg import Line, draw_svg

COLUMNS, ROWS = 100, 60
DEADLINE = 60.0
"""Seconds that the run may take."""
TEXT, BACKGROUND, DIM = "#d4d4d8", "#18181b", "#9a9aa5"
COLOURS = {2: DIM, 31: "#f87171", 32: "#4ade80", 33: "#facc15", 36: "#22d3ee"}
"""By SGR code, all that codeloop prints; 2 is faint."""
DEFAULT_STYLE = Style(color=TEXT)
ESCAPE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])|(\x1b)")
"""A control sequence, such as `ESC [31m` with its numbers and its letter;
or any other escape, which nobody reads.
"""

Cell = tuple[str, Style]


def apply_sgr(style: Style, code: int) -> Style:
    """Return a style after one more SGR code; ValueError for one that this picture can't show."""
    match code:
        case 0:
            return DEFAULT_STYLE
        case 1:
            return style + Style(bold=True)
        case _ if code in COLOURS:
            return style + Style(color=COLOURS[code])
        case _:
            raise ValueError(f"SGR code {code} has no row in COLOURS")


def run_in_terminal(command: list[str]) -> str:
    """Run a command in a terminal of its own and return what it printed;
    RuntimeError when it fails or hangs.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    # As where it is installed: its last lines name the program by its name.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment |= {"FORCE_COLOR": "1", "TERM": "xterm-256color", "PATH": path}
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    printed, end = bytearray(), time.monotonic() + DEADLINE
    try:
        while select.select([ours], [], [], max(0.0, end - time.monotonic()))[0]:
            try:
                printed += os.read(ours, 65536)
            except OSError:
                # Linux reports the end of a pseudo-terminal as EIO, not as an empty read.
                break
        if child.wait(timeout=max(0.1, end - time.monotonic())) != 0:
            raise RuntimeError(
                f"{' '.join(command)} ended with {child.returncode}:\n{printed.decode()}"
            )
    finally:
        child.kill()
        os.close(ours)
    return printed.decode()


def read_screen(printed: str) -> list[list[Cell]]:
    """Return the lines that a terminal of COLUMNS shows;
    ValueError for a control sequence that is not understood.
    """
    rows: list[list[Cell]] = [[]]
    style, column, at = DEFAULT_STYLE, 0, 0
    for found in ESCAPE.finditer(printed):
        column = write(rows, printed[at : found.start()], style, column)
        at = found.end()
        match found[2], found[1]:
            case "m", codes:
                for code in codes.split(";"):
                    style = apply_sgr(style, int(code or 0))
            case "K", "2":
                rows[-1].clear()
            case _:
                raise ValueError(f"{found[0]!r} is not understood")
    write(rows, printed[at:], style, column)
    while rows and not rows[-1]:
        rows.pop()
    return rows


def write(rows: list[list[Cell]], text: str, style: Style, column: int) -> int:
    """Write text without control sequences from a column on; return the column after it."""
    for character in text:
        # The pseudo-terminal sends "\r\n": the "\r" goes back to the first column.
        if character == "\n":
            rows.append([])
        elif character == "\r":
            column = 0
        else:
            if column == COLUMNS:
                rows.append([])
                column = 0
            row = rows[-1]
            row.extend([(" ", DEFAULT_STYLE)] * (column - len(row)))
            row[column : column + 1] = [(character, style)]
            column += 1
    return column


def join_cells(row: list[Cell]) -> Line:
    """Return a row of COLUMNS as segments, one for each run of a style."""
    filled = [*row, *[(" ", DEFAULT_STYLE)] * (COLUMNS - len(row))]
    return [
        Segment("".join(character for character, _ in cells), style)
        for style, cells in groupby(filled, key=lambda cell: cell[1])
    ]


def main(arguments: list[str]) -> int:
    """Take the file to write; return the exit code."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m scripts.record_demo FILE.svg\n")
        return 2
    printed = run_in_terminal([str(Path(sys.executable).parent / "codeloop"), "demo"])
    title = (
        "A run of codeloop demo: the agent runs the tests, reads two files, fixes one line, "
        "and runs the tests again."
    )
    lines = [join_cells(row) for row in read_screen(printed)]
    Path(arguments[0]).write_text(draw_svg([(lines, 0.0)], BACKGROUND, title), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
