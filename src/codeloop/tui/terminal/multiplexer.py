"""Queries the tmux that the program runs in."""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE

from codeloop.kit.processes import start_desktop_program
from codeloop.schema.bounds.tui import PICTURE_ASK


async def ask_tmux(format_text: str) -> str:
    """Return a format of tmux, such as `#{client_termtype}`, with its values; "": tmux is missing, or silent."""
    try:
        process = await start_desktop_program(
            ("tmux", "display-message", "-p", format_text), stdin=DEVNULL, output=PIPE
        )
    except OSError:
        return ""
    try:
        async with asyncio.timeout(PICTURE_ASK.seconds):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return ""
    return output.decode("utf-8", "replace")
