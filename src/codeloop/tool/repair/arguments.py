"""Repairs arguments that came as another text than one JSON object."""

import re
from contextlib import suppress
from typing import Any, cast

import msgspec

from codeloop.schema.wire import JSON

REPAIRED = "the arguments were not valid JSON and were repaired"
BARE = "arguments are a JSON object; this text was taken for `{}`"
_FENCE = re.compile(r"\s*```(?:json)?\s*(\{.*\})\s*```\s*", re.DOTALL)
_MARKUP = ("{", "[", "<", '"', "'", "`")
"""How JSON, tags, quotes and code blocks begin: a text that does, and could not be read, is broken, not bare."""
_LABEL = re.compile(r"\w+\s*[:=]\s")


def repair_text(arguments: str, schema: JSON) -> str:
    """Return the JSON object in a model's arguments: nothing, a code block, or a JSON string."""
    if not arguments.strip() and "required" not in schema:
        return "{}"
    if arguments.startswith('"{'):
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(arguments, type=str)
    block = _FENCE.fullmatch(arguments)
    return block[1] if block else arguments


def read_loosely(arguments: str, schema: JSON, notes: list[str]) -> str | None:
    """Return the JSON object that arguments which are none certainly mean, and add a note; None: they mean none.

    These are an object with trailing commas or in Python's form, and the bare value of the only required parameter.
    """
    text = arguments.strip()
    if text.startswith("{"):
        from codeloop.tool.repair.loose_json import read_json  # well-formed calls need none of it

        read = read_json(text, 0)
        if read is None or not isinstance(read[0], dict) or text[read[1] :].strip():
            return None
        notes.append(REPAIRED)
        return _encode(cast("JSON", read[0]))
    match schema:
        case {"required": [str(name)], "properties": {**properties}}:
            kind = properties.get(name)
        case _:
            return None
    value: Any = _read_bare(text)
    match kind, value:
        case {"type": "string"}, [dict()]:
            return _encode(cast("list[JSON]", value)[0])
        case {"type": "string"}, str() if value.strip():
            pass
        case {"type": "string"}, [str(), *others] if all(isinstance(each, str) for each in others):
            pass  # a command's words
        case {"type": "array"}, [_, *_]:
            pass
        case _:
            return None
    notes.append(BARE.format(name))
    return _encode({name: cast("Any", value)})


def _read_bare(text: str) -> Any:
    """Return the JSON value of a text, or the text itself where it is plain; None: it is neither."""
    if not "".join(text.split()).isprintable():
        return None
    with suppress(msgspec.DecodeError, RecursionError):
        return msgspec.json.decode(text)
    return None if text.startswith(_MARKUP) or _LABEL.match(text) else text


def _encode(value: JSON) -> str | None:
    with suppress(
        TypeError, ValueError, OverflowError, RecursionError
    ):  # of Python's literals, JSON has no sets and no bytes
        return msgspec.json.encode(value).decode()
    return None
