"""A compaction as extensions leave it: what the note is asked for, and whether the turn goes on after it."""

import msgspec

from codeloop.agent.engine import Engine
from codeloop.agent.hooks.request import MESSAGES, sent, shown_model, transform_history
from codeloop.model.chat import ModelInfo, ModelRequest, TextPiece, UserTurn
from codeloop.schema.message import UserMessage
from codeloop.schema.wire import JSON, replace
from codeloop.store.conversation import Entry
from codeloop.tool.call_session import AskedHooks

START = "session.start"
COMPACTING, GOES_ON = "experimental.session.compacting", "experimental.compaction.autocontinue"


async def seen_entries(hooks: AskedHooks, session_id: str, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return the messages that are summarised as extensions let a model see them."""
    if not hooks.wants(MESSAGES):
        return entries
    changed = await transform_history(hooks, session_id, entries)
    return entries if changed is None else changed


async def hooked_note(
    engine: Engine, user: UserMessage, info: ModelInfo, request: ModelRequest, *, auto: bool
) -> ModelRequest:
    """Return the request for a note with what extensions add to it, or put in the place of its last words."""
    hooks = engine.hooks
    if hooks is not None and hooks.wants(COMPACTING):
        given = {"sessionID": user.session_id, "auto": auto}
        output = await hooks.run(COMPACTING, given, {"context": []})
        *before, last = request.turns
        words = [piece.text for piece in last.content if isinstance(piece, TextPiece)]
        prompt: str | None = output.get("prompt")
        text = "\n\n".join(filter(None, (*output["context"], *words) if prompt is None else (prompt,)))
        request = replace(request, turns=(*before, UserTurn((TextPiece(text),))) if text else request.turns)
    return await sent(engine, user, "compaction", info, request)


async def goes_on(engine: Engine, user: UserMessage, info: ModelInfo, *, overflow: bool) -> list[str] | None:
    """Return the texts that extensions add after a summary; None: the turn ends there.

    Raises HookRefused: it ends there, and why.
    """
    hooks = engine.hooks
    if hooks is None:
        return []
    if hooks.wants(GOES_ON) and not await _is_wanted(hooks, user, info, overflow=overflow):
        return None
    return await begun(hooks, user.session_id, "compact") if hooks.wants(START) else []


async def begun(hooks: AskedHooks, session_id: str, source: str) -> list[str]:
    """Return the texts that extensions add when a session begins, or begins anew with a summary of it.

    Raises HookRefused: the model is not to be asked.
    """
    output = await hooks.run(START, {"sessionID": session_id, "source": source}, {"context": []})
    texts: list[str] = output["context"]
    return [text for text in texts if text.strip()]


async def _is_wanted(hooks: AskedHooks, user: UserMessage, info: ModelInfo, *, overflow: bool) -> bool:
    given: JSON = {
        "sessionID": user.session_id,
        "agent": user.agent,
        "model": shown_model(info),
        "provider": {"source": "custom", "info": {"id": info.provider_id}, "options": {}},
        "message": msgspec.to_builtins(user),
        "overflow": overflow,
    }
    wanted: bool = (await hooks.run(GOES_ON, given, {"enabled": True}))["enabled"]
    return wanted
