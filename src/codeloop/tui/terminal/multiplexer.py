"""Queries tmux."""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE

from codeloop.kit.processes import start_desktop_program
from codeloop.schema.bounds.tui import PICTURE_ASK


async def ask_tmux(form: str) -> str:
    """Return an expanded format of the surrounding tmux; "": there is none, or it does not answer."""
    try:
        process = await start_desktop_program(("tmux", "display-message", "-p", form), stdin=DEVNULL, output=PIPE)
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
