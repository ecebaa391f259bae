"""Reads the desktop's clipboard, with the programs that Linux and macOS have for that."""

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress

from codeloop.kit.processes import find_program, start_desktop_program
from codeloop.schema.bounds.tui import PROMPT_CLIPBOARD
from codeloop.schema.limits import CLIENT_FILE

_PNG = b"\x89PNG"
_TEXT_COMMANDS = (
    ("wl-paste", "--no-newline", "--type", "text"),
    ("xclip", "-selection", "clipboard", "-out"),
    ("pbpaste",),
)
_IMAGE_COMMANDS = (
    ("wl-paste", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("osascript", "-e", "the clipboard as «class PNGf»"),
)


async def read_text() -> str:
    """Return the text in the clipboard; "": there is none, or no program that reads it."""
    for command in _TEXT_COMMANDS:
        data = await _run(command)
        if data:
            return data.decode("utf-8", "replace")
    return ""


async def read_image() -> bytes | None:
    """Return the image in the clipboard as PNG; None: there is none, or no program that reads it."""
    for command in _IMAGE_COMMANDS:
        data = await _run(command)
        if data.startswith(_PNG):
            return data
        if data.startswith("«data PNGf".encode()):  # AppleScript writes bytes in hexadecimal digits
            with suppress(ValueError):
                return bytes.fromhex(data.decode().strip().removeprefix("«data PNGf").removesuffix("»"))
    return None


def can_read() -> bool:
    """Return whether a program that reads the clipboard is installed."""
    return any(find_program(command[0], os.environ.get("PATH")) for command in _TEXT_COMMANDS)


async def _run(command: tuple[str, ...]) -> bytes:
    try:
        process = await start_desktop_program(command, stdin=DEVNULL, output=PIPE)
    except OSError:
        return b""
    try:
        async with asyncio.timeout(PROMPT_CLIPBOARD.seconds):
            data, _ = await process.communicate()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        return b""
    return data if process.returncode == 0 and len(data) <= 2 * CLIENT_FILE.value else b""
