"""Reaches the terminal that tmux or GNU screen runs in: passes sequences on to it, and asks tmux about it."""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping

from codeloop.kit.run_program import start_outside_project
from codeloop.schema.bounds.tui import PICTURE_ASK

# GNU screen passes a longer sequence through in pieces only.
_SCREEN_CHUNK_LENGTH = 512


def pass_through(sequence: str, environment: Mapping[str, str]) -> str:
    """Return a sequence wrapped so that tmux or screen passes it to the outer terminal; unchanged outside of these."""
    if environment.get("TMUX"):
        # Within the wrapper, tmux wants each escape doubled; the outer terminal gets it once.
        return f"\x1bPtmux;{sequence.replace(chr(27), chr(27) * 2)}\x1b\\"
    if environment.get("STY"):
        chunks = (sequence[at : at + _SCREEN_CHUNK_LENGTH] for at in range(0, len(sequence), _SCREEN_CHUNK_LENGTH))
        return "".join(f"\x1bP{chunk}\x1b\\" for chunk in chunks)
    return sequence


async def query_tmux(format_text: str) -> str:
    """Return a format of tmux, such as `#{client_termtype}`, with its values; "": tmux is missing, or silent."""
    command = ("tmux", "display-message", "-p", format_text)
    try:
        process = await start_outside_project(command, stdin=DEVNULL, output=PIPE)
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
