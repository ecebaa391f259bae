"""Subagents in the background at the end of a turn: waited for, or what becomes of them is told."""

import asyncio
from collections.abc import Iterable

from msgspec import Struct

from codeloop.cli.follow.subagents import Subagents, standing_of
from codeloop.cli.output.view import View
from codeloop.kit.terminal_text import inert
from codeloop.schema.limits import BACKGROUND_WAIT
from codeloop.schema.message import Session


class Background(Struct, frozen=True):
    """Whether `run` waits, and where the subagents work: with this process they end, on a server they go on."""

    waits: bool = True
    on_server: bool = False


async def wait_for(subagents: Subagents, ended: asyncio.Event, view: View, background: Background) -> bool:
    """Wait until none works any more, or `ended` is set; gives whether the time for that was over."""
    working = dict(subagents.background)
    if not working:
        return False
    is_over = False
    if background.waits:
        view.note(f"Waiting in the background: {_named(working.values())}. Ctrl-C, or --no-wait, ends that.")
        waits = {asyncio.create_task(subagents.at_rest.wait()), asyncio.create_task(ended.wait())}
        done, _ = await asyncio.wait(waits, timeout=BACKGROUND_WAIT.seconds, return_when=asyncio.FIRST_COMPLETED)
        is_over = not done
        for wait in waits:
            wait.cancel()
    for session in (subagents.known[session_id] for session_id in working if session_id not in subagents.background):
        standing = standing_of(session)
        how = f"{standing.state}{f' ({standing.reason})' if standing.reason else ''}" if standing else "over"
        view.note(inert(f"{session.title}: {how}. See: codeloop session show {session.id}"))
    if left := list(subagents.background.values()):
        view.note(f"{'Goes on on the server' if background.on_server else 'Stopped'}: {_named(left)}.")
    return is_over


def _named(sessions: Iterable[Session]) -> str:
    return ", ".join(inert(f"{session.title} [{session.id}]") for session in sessions)
