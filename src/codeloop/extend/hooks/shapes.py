"""What a hook may change: by the name of the hook, the values of its output with their types."""

from typing import Annotated, Any, Literal

import msgspec

from codeloop.schema.message import Message, UserMessage
from codeloop.schema.part import Part
from codeloop.schema.wire import JSON, Wire

Amount = Annotated[float | None, msgspec.Meta(ge=0)]


class TransformedMessage(Wire):
    """One message of a request, as `experimental.chat.messages.transform` sees it."""

    info: Message
    parts: list[Part]


OUTPUTS: dict[str, dict[str, Any]] = {
    "chat.message": {"message": UserMessage, "parts": list[Part]},
    "chat.params": {
        "temperature": Amount,
        "topP": Amount,
        "topK": Amount,
        "maxOutputTokens": Annotated[int | None, msgspec.Meta(gt=0)],
        "options": JSON,
    },
    "chat.headers": {"headers": dict[str, str]},
    "permission.ask": {"status": Literal["ask", "allow", "deny"]},
    "command.execute.before": {"parts": list[JSON]},
    "tool.execute.before": {"args": JSON, "permission": Literal["ask", "allow"] | None, "context": str | None},
    "tool.execute.after": {"title": str, "output": str, "metadata": JSON},
    "tool.definition": {"description": str, "parameters": JSON},
    "shell.env": {"env": dict[str, str]},
    "experimental.chat.messages.transform": {"messages": list[TransformedMessage]},
    "experimental.chat.system.transform": {"system": list[str]},
    "experimental.session.compacting": {"context": list[str], "prompt": str | None},
    "experimental.compaction.autocontinue": {"enabled": bool},
    "experimental.text.complete": {"text": str},
    "session.start": {"context": list[str]},
    "session.stop": {"continue": str | None},
}


def check(name: str, output: JSON) -> None:
    """Raise msgspec.ValidationError, which says what is wrong, when an output has not the types of its hook."""
    for key, kind in OUTPUTS.get(name, {}).items():
        if key in output:
            try:
                msgspec.convert(output[key], kind)
            except msgspec.ValidationError as error:
                raise msgspec.ValidationError(f"{key}: {error}") from None
