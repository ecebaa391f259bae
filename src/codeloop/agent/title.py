"""A session's title: made by the small model beside the first turn, else the first line of the prompt."""

import asyncio
from contextlib import aclosing

from codeloop.agent.engine import Engine
from codeloop.agent.prompt import shipped
from codeloop.agent.step import with_cost
from codeloop.model.chat import Finished, ModelRequest, TextDelta, TextPiece, UserTurn
from codeloop.schema.errors import CodeloopError
from codeloop.schema.event import SessionInfo, SessionUpdated
from codeloop.schema.ids import now_ms
from codeloop.schema.limits import TITLE
from codeloop.schema.message import Tokens
from codeloop.schema.wire import replace

UNTITLED = "New session - "
LONGEST = 80
PROMPT = 4_000
"""Characters of the prompt that the small model is shown."""


def is_untitled(title: str) -> bool:
    """Tell whether a session still has the title it was made with."""
    return title.startswith(UNTITLED)


def first_line(prompt: str) -> str:
    """Give the prompt's first line, shortened, as a title; empty when there is none."""
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "")
    return line if len(line) <= LONGEST else line[: LONGEST - 1].rstrip() + "…"


async def make_title(engine: Engine, session_id: str, prompt: str, model: str) -> None:
    """Ask the small model for a title and store it; without an answer, also when cancelled, the first line serves."""
    title = ""
    try:
        small = engine.models.small(model)
        if small is not None:
            title = await asyncio.wait_for(_asked(engine, session_id, small, prompt), TITLE.seconds)
    except (CodeloopError, TimeoutError):
        title = ""
    finally:
        _store(engine, session_id, title or first_line(prompt))


async def _asked(engine: Engine, session_id: str, ref: str, prompt: str) -> str:
    """Give what the small model says, and add what it costs to the session's sums."""
    request = ModelRequest(
        system=shipped("title").strip(), turns=(UserTurn((TextPiece(prompt[:PROMPT]),)),), max_tokens=100
    )
    pieces: list[str] = []
    model = engine.models.open(ref)
    async with aclosing(model.stream(request)) as events:
        async for event in events:
            match event:
                case TextDelta(text=text):
                    pieces.append(text)
                case Finished(error=error, tokens=tokens):
                    _count(engine, session_id, model.info.prices.cost(tokens), tokens)
                    if error is not None:
                        return ""
                case _:
                    pass
    return first_line("".join(pieces).strip().strip("\"'"))


def _count(engine: Engine, session_id: str, cost: float, tokens: Tokens) -> None:
    session = engine.store.find_session(session_id)
    if session is not None:
        session = with_cost(session, cost, tokens)
        engine.store.append(SessionUpdated(properties=SessionInfo(session_id=session_id, info=session)))


def _store(engine: Engine, session_id: str, title: str) -> None:
    session = engine.store.find_session(session_id)
    if session is None or not title or not is_untitled(session.title):
        return
    session = replace(session, title=title, time=replace(session.time, updated=now_ms()))
    engine.store.append(SessionUpdated(properties=SessionInfo(session_id=session_id, info=session)))
