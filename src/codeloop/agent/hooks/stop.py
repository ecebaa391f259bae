"""The end of a turn: extensions may send the model on, a few times."""

from codeloop.agent.engine import Engine
from codeloop.agent.loop import run
from codeloop.agent.moves import Stop
from codeloop.agent.request.window import text_of
from codeloop.schema.bounds.extension import HOOK_STOPS
from codeloop.schema.event import message_updated, part_updated
from codeloop.schema.ids import new_id
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import TextPart
from codeloop.store.conversation import Entry, next_prompt

STOP = "session.stop"


async def run_on(engine: Engine, session_id: str) -> Stop:
    """Work on a session until there is nothing more to do, and nobody sends the model on."""
    sent_on = 0
    while True:
        before = _last_answer(engine, session_id)
        stop = await run(engine, session_id)
        answer = _last_answer(engine, session_id)
        hooks = engine.hooks
        if hooks is None or not hooks.wants(STOP) or stop.reason != "done":
            return stop
        if answer is None or (before is not None and answer.info.id == before.info.id):
            return stop  # it was a command of the person's own
        if isinstance(answer.info, AssistantMessage) and answer.info.summary:
            return stop
        given = {
            "sessionID": session_id,
            "parentID": engine.store.session(session_id).parent_id,
            "active": sent_on > 0,
            "text": text_of(answer),
        }
        output = await hooks.run(STOP, given, {"continue": None})
        reason: str | None = output["continue"]
        if reason is None or output.get("ends") or sent_on == HOOK_STOPS.value:
            return stop
        _send_on(engine, session_id, reason)
        sent_on += 1


def _last_answer(engine: Engine, session_id: str) -> Entry | None:
    entries = engine.store.context_view(session_id).entries
    return next((entry for entry in reversed(entries) if isinstance(entry.info, AssistantMessage)), None)


def _send_on(engine: Engine, session_id: str, reason: str) -> None:
    """Store why the turn goes on, as the prompt that the model answers next."""
    view = engine.store.context_view(session_id)
    message = next_prompt(view)
    part = TextPart(id=new_id("prt"), session_id=session_id, message_id=message.id, text=reason, synthetic=True)
    engine.store.append(message_updated(message), part_updated(part))
