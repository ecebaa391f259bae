"""The types of hooks' outputs, and the check of a handler's answer against them."""

from typing import Annotated, Any, Literal

import msgspec

from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.api.session_inputs import PartInput
from codeloop.schema.ids import new_id
from codeloop.schema.message import Message, UserMessage
from codeloop.schema.part import Part
from codeloop.schema.wire import JSON, Wire

HeaderName = Annotated[str, msgspec.Meta(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
HeaderValue = Annotated[str, msgspec.Meta(pattern=r"^[^\x00-\x1f\x7f]*$")]
VariableName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
VariableValue = Annotated[str, msgspec.Meta(pattern=r"^[^\x00]*$")]
NonNegativeNumber: Any = Annotated[float, msgspec.Meta(ge=0)]
PositiveInteger: Any = Annotated[int, msgspec.Meta(gt=0)]


class TransformedMessage(Wire):
    """One message of a request, as `experimental.chat.messages.transform` sees it."""

    info: Message
    parts: list[Part]


# By hook: the types of the values in its output.
OUTPUT_TYPES: dict[str, dict[str, Any]] = {
    "chat.message": {"message": UserMessage, "parts": list[Part]},
    "chat.params": {
        "temperature": NonNegativeNumber | None,
        "topP": NonNegativeNumber | None,
        "topK": NonNegativeNumber | None,
        "maxOutputTokens": PositiveInteger | None,
        "options": JSON,
    },
    "chat.headers": {"headers": dict[HeaderName, HeaderValue]},
    "permission.ask": {"status": Literal["ask", "allow", "deny"]},
    "command.execute.before": {"parts": list[PartInput]},
    "tool.execute.before": {
        "args": JSON,
        "permission": Literal["ask", "allow"] | None,
        "context": str | None,
    },
    "tool.execute.after": {"title": str, "output": str, "metadata": JSON, "ends": str | None},
    "tool.definition": {"description": str, "parameters": JSON},
    "shell.env": {"env": dict[VariableName, VariableValue]},
    "experimental.chat.messages.transform": {"messages": list[TransformedMessage]},
    "experimental.chat.system.transform": {"system": list[str]},
    "experimental.session.compacting": {"context": list[str], "prompt": str | None},
    "experimental.compaction.autocontinue": {"enabled": bool},
    "experimental.text.complete": {"text": str},
    "experimental.provider.small_model": {"model": JSON | None},
    "session.start": {"context": list[str]},
    "session.stop": {"continue": str | None, "ends": bool},
}


# What these answer decides about an action: half an answer would decide by chance.
_STRICT_HOOKS = frozenset(("permission.ask", "tool.execute.before"))


def keep_valid(name: str, answer: JSON, before: JSON) -> tuple[JSON, list[str]]:
    """Return an answer without values that are not of their types, and what was left out, by
    fields. A part of a message is left out alone; another value stays as it was `before`.

    Raises msgspec.ValidationError if nothing of it can be taken.
    """
    try:
        return check_output(name, answer), []
    except (msgspec.ValidationError, KeyError, TypeError) as error:
        if name in _STRICT_HOOKS:
            raise
        whole_error = error
    kept, problems = dict(answer), list[str]()
    if is_list(messages := kept.get("messages")):
        kept["messages"] = [
            _drop_parts(each, f"messages[{index}].parts", problems) if is_object(each) else each
            for index, each in enumerate(messages)
        ]
    if is_list(kept.get("parts")):
        kind = PartInput if name == "command.execute.before" else Part
        kept = _drop_parts(kept, "parts", problems, kind)
    for key in kept.keys() & OUTPUT_TYPES.get(name, {}).keys():
        try:
            # Of a prompt, its message has the ids of the parts.
            others = {"message": kept["message"]} if key == "parts" and "message" in kept else {}
            check_output(name, {**before, **others, key: kept[key]})
        except (msgspec.ValidationError, KeyError, TypeError) as error:
            problems.append(str(error))
            kept.pop(key)
            kept |= {key: before[key]} if key in before else {}
    if not problems:
        raise whole_error
    return check_output(name, kept), problems


def _drop_parts(message: JSON, place: str, problems: list[str], kind: Any = Part) -> JSON:
    """Return a message, or a prompt, without parts that are none; with none left, it stays."""
    parts = message.get("parts")
    if not is_list(parts):
        return message
    kept: list[Any] = []
    ids = {"id": "prt_0", "sessionID": "ses_0", "messageID": "msg_0"}
    for index, part in enumerate(parts):
        try:
            msgspec.convert({**ids, **part} if is_object(part) else part, kind)
        except msgspec.ValidationError as error:
            problems.append(f"{place}[{index}]: {error}")
        else:
            kept.append(part)
    return {**message, "parts": kept} if kept else message


def check_output(name: str, output: JSON) -> JSON:
    """Return an output, with ids for the parts of a prompt that lack them.

    Raises msgspec.ValidationError, which says what is wrong,
    when a value does not have its type of OUTPUT_TYPES.
    """
    if name == "chat.message":
        output = {**output, "parts": _complete_parts(output)}
    if name == "experimental.chat.messages.transform":
        output = {**output, "messages": _complete_messages(output["messages"])}
    for key, kind in OUTPUT_TYPES.get(name, {}).items():
        if key in output:
            try:
                # Converted only to check it: the value itself is passed on as it is.
                msgspec.convert(output[key], kind)
            except msgspec.ValidationError as error:
                raise msgspec.ValidationError(f"{key}: {error}") from None
    return output


def _complete_messages(messages: Any) -> list[JSON]:
    """Return the messages of a request; parts that an extension has added may lack their ids."""
    completed: list[JSON] = []
    for message in msgspec.convert(messages, list[JSON]):
        info = msgspec.convert(message.get("info"), JSON)
        ids = {"sessionID": info.get("sessionID"), "messageID": info.get("id")}
        parts = msgspec.convert(message.get("parts"), list[JSON])
        completed.append(
            {**message, "parts": [{"id": new_id("prt"), **ids, **part} for part in parts]}
        )
    return completed


def _complete_parts(output: JSON) -> list[JSON]:
    """Return the parts of a prompt as parts of that message;
    those that an extension has added may lack their ids.
    """
    message = msgspec.convert(output["message"], UserMessage)
    # An extension must not move its parts to another message or session.
    ids = {"sessionID": message.session_id, "messageID": message.id}
    return [
        {"id": new_id("prt"), **part, **ids}
        for part in msgspec.convert(output["parts"], list[JSON])
    ]
