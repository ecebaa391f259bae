"""An answer's texts as extensions leave them."""

from codeloop.agent.engine import Engine
from codeloop.schema.event import part_updated
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import TextPart
from codeloop.schema.wire import replace

COMPLETE = "experimental.text.complete"


async def complete_texts(engine: Engine, info: AssistantMessage) -> None:
    """Store each text of an answer as extensions leave it."""
    if (hooks := engine.hooks) is None:
        return
    for part in engine.store.context_view(info.session_id).parts(info.id):
        if not isinstance(part, TextPart) or part.synthetic or not part.text:
            continue
        given = {"sessionID": info.session_id, "messageID": info.id, "partID": part.id}
        text = (await hooks.run(COMPLETE, given, {"text": part.text}))["text"]
        if text != part.text:
            engine.store.append(part_updated(replace(part, text=text)))
