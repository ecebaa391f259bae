"""Reads and writes the clipboard of the user's desktop,
with the programs that are installed for that.

A text is also copied by a sequence of the terminal, which reaches the user's desktop over ssh too.
"""

import asyncio
import base64
import os
import sys
from collections.abc import Mapping
from contextlib import suppress

from codeloop.kit.desktop_programs import make_desktop_launch
from codeloop.kit.program import run_program
from codeloop.kit.programs import find_program
from codeloop.schema.bounds.tui import PROMPT_CLIPBOARD
from codeloop.schema.limits import CLIENT_FILE
from codeloop.schema.wire import replace
from codeloop.tui.terminal.multiplexer import pass_through

_PNG_SIGNATURE = b"\x89PNG"
_APPLESCRIPT_PREFIX = "«data PNGf"
# Tried in this order until one of them has a text.
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


async def read_clipboard_text() -> str:
    """Return the text in the clipboard; "": there is none, or no program that reads it."""
    for command in _TEXT_COMMANDS:
        data = await _read_output(command)
        if data:
            return data.decode("utf-8", "replace")
    return ""


async def read_clipboard_image() -> bytes | None:
    """Return the image in the clipboard as PNG;
    None: there is none, or no program that reads it.
    """
    for command in _IMAGE_COMMANDS:
        data = await _read_output(command)
        if data.startswith(_PNG_SIGNATURE):
            return data
        # AppleScript prints bytes as hexadecimal digits, such as «data PNGf89504E47».
        if data.startswith(_APPLESCRIPT_PREFIX.encode()):
            with suppress(ValueError):
                return bytes.fromhex(
                    data.decode().strip().removeprefix(_APPLESCRIPT_PREFIX).removesuffix("»")
                )
    return None


def can_read_clipboard() -> bool:
    """Return whether a program that reads the clipboard is installed."""
    return any(find_program(command[0], os.environ.get("PATH")) for command in _TEXT_COMMANDS)


async def _read_output(command: tuple[str, ...]) -> bytes:
    """Return the output of a program; empty if it is missing, fails, takes too long,
    or writes too much.
    """
    try:
        launch = make_desktop_launch(command, seconds=PROMPT_CLIPBOARD.seconds)
        # AppleScript takes two digits for each byte of an image.
        result = await run_program(replace(launch, max_bytes=2 * CLIENT_FILE.value))
    except OSError:
        return b""
    return b"" if result.code or result.stop_reason else result.stdout


def make_copy_sequence(text: str, environment: Mapping[str, str]) -> str:
    """Return the sequence that copies a text to the terminal's clipboard, also over ssh."""
    sequence = f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07"
    # By its settings, tmux stores a plain sequence, passes it on, or ignores it;
    # a wrapped one it only passes on.
    if environment.get("TMUX"):
        return sequence + pass_through(sequence, environment)
    return pass_through(sequence, environment)


def find_copy_commands(
    environment: Mapping[str, str], platform: str = sys.platform
) -> list[tuple[str, ...]]:
    """Return the commands that write the desktop's clipboard;
    on a remote machine, only that of tmux.
    """
    commands: list[tuple[str, ...]] = []
    if environment.get("TMUX"):
        commands.append(("tmux", "load-buffer", "-w", "-"))
    # The other programs would write the clipboard of the remote machine,
    # which the user does not see.
    if environment.get("SSH_CONNECTION") or environment.get("SSH_TTY"):
        return commands
    if platform == "darwin":
        commands.append(("pbcopy",))
    elif environment.get("WAYLAND_DISPLAY"):
        commands.append(("wl-copy",))
    elif environment.get("DISPLAY"):
        commands += [
            ("xclip", "-selection", "clipboard", "-in"),
            ("xsel", "--clipboard", "--input"),
        ]
    if environment.get("WSL_DISTRO_NAME"):
        commands.append(("clip.exe",))
    return commands


async def write_clipboard(text: str, commands: list[tuple[str, ...]], delay: float = 0.0) -> None:
    """Write a text, after `delay` seconds, to each program that is installed;
    xsel is only a substitute for xclip.
    """
    await asyncio.sleep(delay)
    is_written_by_xclip = False
    for command in commands:
        program = command[0]
        if is_written_by_xclip and program == "xsel":
            continue
        # Windows takes bytes without a byte order mark for its old code page.
        data = text.encode("utf-16") if program == "clip.exe" else text.encode()
        with suppress(OSError):
            launch = make_desktop_launch(command, stdin=data, seconds=PROMPT_CLIPBOARD.seconds)
            result = await run_program(launch)
            is_written_by_xclip |= program == "xclip" and result.code == 0
