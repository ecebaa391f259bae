"""Programs of the user's machine, such as a browser or an editor: no file of a
project decides what runs.
"""

import os
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

from msgspec.structs import replace

from codeloop.kit.child_process import ChildProcess, Launch
from codeloop.kit.new_file import write_new_file
from codeloop.kit.programs import find_program, make_safe_environment

TERMINAL = {0: 0, 1: 1, 2: 2}
"""Descriptors of a program that uses the terminal of this process."""
# In a process of its own: some browsers block `webbrowser.open`, or print to the terminal.
_BROWSER_CODE = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"


def make_desktop_launch(
    program: Sequence[str], folder: str = "/", *, stdin: bytes = b"", seconds: float | None = None
) -> Launch:
    """Return the launch of a program of the user's machine, without a sandbox.

    It starts in `folder` and is not looked up in projects. Signals of the terminal reach it; its
    own children outlive it. Raises FileNotFoundError if it is missing.
    """
    environment = make_safe_environment(os.environ)
    path = (
        program[0] if program[0].startswith("/") else find_program(program[0], environment["PATH"])
    )
    if path is None:
        raise FileNotFoundError(2, f"{program[0]} is not installed", program[0])
    return Launch(
        (path, *program[1:]), folder, environment, is_apart=False, stdin=stdin, seconds=seconds
    )


async def open_browser(url: str) -> bool:
    """Open an address in the user's browser; False: it was not opened,
    as over SSH or without a display.
    """
    # The address comes from the server, and `webbrowser` would also open files and other programs.
    return urlsplit(url).scheme in {"http", "https"} and await _start_browser(url)


async def open_private_link(url: str, folder: Path) -> bool:
    """Open an address that holds a secret, as `open_browser` does.

    Other users of the machine can read the arguments of programs. So the browser is given the path
    of a page in `folder`, which only its owner may enter. The page leads on to the address, and has
    to stay until it was read.
    """
    page = folder / "open.html"
    text = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={escape(url)}">\n'
    write_new_file(page, text.encode())
    return await _start_browser(page.as_uri())


async def _start_browser(url: str) -> bool:
    # Over SSH a browser would open on the machine at the other end.
    is_remote = any(os.environ.get(name) for name in ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"))
    has_screen = sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if not os.environ.get("BROWSER") and (is_remote or not has_screen):
        return False
    try:
        launch = make_desktop_launch((sys.executable, "-I", "-c", _BROWSER_CODE, url))
        browser = ChildProcess(replace(launch, descriptors=TERMINAL))
        return await browser.exited == 0
    except OSError:
        return False
