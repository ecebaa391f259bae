"""Asks the tmux that the program runs in about its settings and its outer terminal."""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE

from codeloop.kit.processes import start_desktop_program
from codeloop.schema.bounds.tui import PICTURE_ASK


async def query_tmux(format_text: str) -> str:
    """Return a format of tmux, such as `#{client_termtype}`, with its values; "": tmux is missing, or silent."""
    command = ("tmux", "display-message", "-p", format_text)
    try:
        process = await start_desktop_program(command, stdin=DEVNULL, output=PIPE)
    except OSError:
        return ""
    try:
        async with asyncio.timeout(PICTURE_ASK.seconds):
            output, _ = await process.communicate()
    except TimeoutError:
        # `wait` removes the killed process from the process table.
        process.kill()
        await process.wait()
        return ""
    return output.decode("utf-8", "replace")
