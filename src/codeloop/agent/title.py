"""A session's title: the prompt's first line until the small model, asked beside the first turn, has a better one."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from codeloop.agent.engine import Engine
from codeloop.agent.request.system_prompt import shipped
from codeloop.agent.usage import Usage, text_answer
from codeloop.kit.lazy import load
from codeloop.model.chat import ModelInfo, ModelRequest, TextPiece, UserTurn
from codeloop.schema.errors import CodeloopError
from codeloop.schema.ids import now_ms
from codeloop.schema.limits import TITLE
from codeloop.schema.message import Session, UserMessage
from codeloop.schema.wire import replace
from codeloop.store.queries import BESIDE, Beside

UNTITLED = "New session - "
LONGEST = 80
PROMPT = 4_000
"""Characters of the prompt that the small model is shown."""


def is_untitled(title: str) -> bool:
    """Return whether a session still has the title it was made with."""
    return title.startswith(UNTITLED)


def first_line(prompt: str) -> str:
    """Return the prompt's first line, shortened, as a title; empty when there is none."""
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "")
    return line if len(line) <= LONGEST else line[: LONGEST - 1].rstrip() + "…"


def store_first_line(engine: Engine, session_id: str, prompt: str) -> None:
    """Name an untitled session by its prompt's first line."""
    _store(engine, session_id, first_line(prompt), is_untitled)


async def make_title(engine: Engine, session_id: str, prompt: str, model: str) -> None:
    """Ask the small model for a title, and store it if the session is still named by its prompt's first line."""
    with suppress(CodeloopError, TimeoutError):
        small = engine.models.small(model)
        if small is None:
            return
        title = await asyncio.wait_for(_model_title(engine, session_id, small, prompt), TITLE.seconds)
        _store(engine, session_id, title, lambda now: is_untitled(now) or now == first_line(prompt))


async def _model_title(engine: Engine, session_id: str, ref: str, prompt: str) -> str:
    """Return what the small model says; what that used is added to the session's sums, also when it is cancelled."""
    request = ModelRequest(
        system=shipped("title").strip(), turns=(UserTurn((TextPiece(prompt[:PROMPT]),)),), max_tokens=100
    )
    model = engine.models.open(ref)
    if engine.hooks is not None:
        request = await _hooked(engine, session_id, model.info, request)
    usage = Usage(model.info.prices, request)
    try:
        text, finished = await text_answer(model, request, usage)
    finally:
        _store_usage(engine, session_id, model.info, usage)
    return "" if finished.error is not None else first_line(text.strip("\"'"))


async def _hooked(engine: Engine, session_id: str, info: ModelInfo, request: ModelRequest) -> ModelRequest:
    """Return the request with the parameters and headers that extensions give it."""
    entries = engine.store.context_view(session_id).entries
    user = next((entry.info for entry in reversed(entries) if isinstance(entry.info, UserMessage)), None)
    sent: Callable[..., Awaitable[ModelRequest]] = load("agent.hooks.request:sent")
    return request if user is None else await sent(engine, user, "title", info, request)


def _store_usage(engine: Engine, session_id: str, info: ModelInfo, usage: Usage) -> None:
    """Add what a title has used to the sums, and keep it beside the session: no answer holds it."""
    if not usage.used.all or engine.store.find_session(session_id) is None:
        return
    beside = Beside(
        created=now_ms(), cost=usage.cost, tokens=usage.used, provider_id=info.provider_id, model_id=info.id
    )
    kept = {BESIDE: msgspec.to_builtins(beside)}
    engine.store.update_session(session_id, lambda now: replace(now, metadata={**(now.metadata or {}), **kept}))
    usage.append(engine.store, session_id)


def _store(engine: Engine, session_id: str, title: str, replaces: Callable[[str], bool]) -> None:
    """Name a session, if there is a title and it `replaces` the one that the session has by now."""

    def titled(session: Session) -> Session:
        if not title or not replaces(session.title):
            return session
        return replace(session, title=title, time=replace(session.time, updated=now_ms()))

    engine.store.update_session(session_id, titled)
