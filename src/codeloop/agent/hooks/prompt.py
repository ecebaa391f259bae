"""A prompt as extensions leave it, before it is stored: a person's, a command's, a subagent's."""

from collections.abc import Sequence

import msgspec

from codeloop.schema.message import UserMessage
from codeloop.schema.part import Part
from codeloop.schema.wire import JSON, replace
from codeloop.tool.call_session import AskedHooks

MESSAGE = "chat.message"


async def hooked_message(
    hooks: AskedHooks, message: UserMessage, parts: Sequence[Part], parent: str | None = None
) -> tuple[UserMessage, list[Part]]:
    """Return a prompt with what extensions change of it or add to it.

    `parent`: the session whose call sends it to a subagent. Raises HookRefused: it is not sent.
    """
    model = {"providerID": message.model.provider_id, "modelID": message.model.model_id}
    given: JSON = {
        "sessionID": message.session_id,
        "parentID": parent,
        "messageID": message.id,
        "agent": message.agent,
        "model": model,
        "variant": message.model.variant,
    }
    now = {"message": msgspec.to_builtins(message), "parts": msgspec.to_builtins(parts)}
    output = await hooks.run(MESSAGE, given, now)
    changed = msgspec.convert(output["message"], UserMessage)
    changed = replace(changed, id=message.id, session_id=message.session_id, time=message.time)
    return changed, msgspec.convert(output["parts"], list[Part])
