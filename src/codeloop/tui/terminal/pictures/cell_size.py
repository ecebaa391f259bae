"""Finds how many pixels a cell of the terminal has: by the terminal's answer to a query,
or by its driver.
"""

import fcntl
import struct
import termios
from collections.abc import Mapping

from codeloop.tui.render.picture_rows import CellSize, PictureBox
from codeloop.tui.terminal.pictures.protocol import CELL


def find_cell_size(answers: Mapping[str, str], descriptor: int) -> CellSize | None:
    """Return the size of a cell, by the terminal's answers, each under its query, or by its driver;
    None: unknown.
    """
    # Such as `20;10`.
    height, _, width = answers.get(CELL, "").partition(";")
    if height.isdigit() and width.isdigit() and int(height) and int(width):
        return CellSize(int(width), int(height))
    try:
        rows, columns, screen_width, screen_height = _read_window_size(descriptor)
    except OSError:
        return None
    cell = CellSize(screen_width // max(columns, 1), screen_height // max(rows, 1))
    return cell if all(cell) else None


def measure_screen(descriptor: int) -> PictureBox:
    """Return the size of the screen by the terminal's driver.
    Raises OSError if it is not a terminal.
    """
    rows, columns, width, height = _read_window_size(descriptor)
    # A terminal that does not know its size, or that of its pixels, reports 0.
    rows, columns = rows or 24, columns or 80
    cell = CellSize(width // columns, height // rows)
    return PictureBox(columns, rows, cell) if all(cell) else PictureBox(columns, rows)


def _read_window_size(descriptor: int) -> tuple[int, int, int, int]:
    """Return rows and columns, then width and height in pixels, each 0 if unknown.
    Raises OSError.
    """
    rows, columns, width, height = struct.unpack(
        "HHHH", fcntl.ioctl(descriptor, termios.TIOCGWINSZ, bytes(8))
    )
    return rows, columns, width, height
