"""Shows a picture on the whole screen while the UI is suspended,
or else in the desktop's viewer.
"""

import asyncio
import os
import sys
import tempfile
import termios
import tty
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

from codeloop.kit.child_process import ChildProcess
from codeloop.kit.desktop_programs import make_desktop_launch
from codeloop.kit.programs import find_program
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.part import FilePart
from codeloop.tui.render.attachments import describe_attachment, read_attachment
from codeloop.tui.render.picture_rows import PictureBox
from codeloop.tui.terminal.pictures.cell_size import measure_screen
from codeloop.tui.terminal.pictures.picture_encoding import encode_picture
from codeloop.tui.terminal.pictures.protocol import PictureProtocol, guess_protocol

_CLEAR_SCREEN = "\x1b[2J\x1b[H"
_ALTERNATE_SCREEN, _MAIN_SCREEN = "\x1b[?1049h", "\x1b[?1049l"
"""Switch to the terminal's alternate screen, which leaves the main one as it is, and back."""
_TEXT_ROWS = 4
"""Rows for the text around the picture."""
_SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}


async def show_picture(app: App[Any], part: FilePart) -> str:
    """Show a picture until a key is pressed, or in the desktop's viewer if the
    terminal can't draw it.

    Return a message for the user that says why it was not shown; "": it was.
    """
    data = await asyncio.to_thread(read_attachment, part)
    if not data:
        return f"{describe_attachment(part)} can't be read any more."
    protocol = guess_protocol(os.environ)
    if not protocol:
        return await _open_in_viewer(part, data)
    try:
        with app.suspend():
            await asyncio.to_thread(_show_until_key, part, data, protocol)
    except SuspendNotSupported:
        return await _open_in_viewer(part, data)
    except OSError as error:
        return f"{describe_attachment(part)} can't be shown: {error.strerror}."
    except ValueError as error:
        return f"{describe_attachment(part)} can't be shown: {error}."
    finally:
        app.refresh(layout=True)
    return ""


def _show_until_key(part: FilePart, data: bytes, protocol: PictureProtocol) -> None:
    """Draw a picture on the alternate screen until a key is pressed.
    Raises ValueError if it can't be decoded.
    """
    with Path("/dev/tty").open("r+b", buffering=0) as terminal:
        screen = make_picture_screen(part, data, protocol, measure_screen(terminal.fileno()))
        attributes = termios.tcgetattr(terminal.fileno())
        tty.setcbreak(terminal.fileno())
        terminal.write(f"{_ALTERNATE_SCREEN}{screen}".encode())
        terminal.read(1)
        # TCSAFLUSH drops the rest of a key's sequence, which would be taken for typed text.
        termios.tcsetattr(terminal.fileno(), termios.TCSAFLUSH, attributes)
        terminal.write(f"{_CLEAR_SCREEN}{_MAIN_SCREEN}".encode())


def make_picture_screen(
    part: FilePart, data: bytes, protocol: PictureProtocol, box: PictureBox
) -> str:
    """Return the output that clears the screen and draws a picture on it.
    Raises ValueError if it can't be decoded.
    """
    room = PictureBox(box.columns, max(box.rows - _TEXT_ROWS, 1), box.cell)
    picture = encode_picture(data, protocol, room)
    return (
        f"{_CLEAR_SCREEN}{escape_controls(describe_attachment(part))}  Press any key to go "
        f"back.\r\n\r\n{picture}\r\n"
    )


async def _open_in_viewer(part: FilePart, data: bytes) -> str:
    """Open a copy of the picture in the desktop's viewer;
    return a message if that is impossible, else "".

    The copy stays in the temporary folder, since it is unknown how long the viewer needs it.
    """
    opener = find_program(
        "open" if sys.platform == "darwin" else "xdg-open", os.environ.get("PATH")
    )
    has_desktop = (
        sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    try:
        descriptor, name = tempfile.mkstemp(prefix="picture-", suffix=_SUFFIXES.get(part.mime, ""))
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except OSError as error:
        return f"{describe_attachment(part)} can't be shown: {error.strerror}."
    if opener is None or not has_desktop or part.mime not in _SUFFIXES:
        return f"This terminal can't show pictures. A copy is at {name}."
    try:
        ChildProcess(make_desktop_launch((opener, name)))
    except OSError as error:
        return f"{opener} can't be started: {error.strerror}. A copy of the picture is at {name}."
    return ""
