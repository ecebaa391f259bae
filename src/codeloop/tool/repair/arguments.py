"""Repairs the text of a call's arguments where it is not a JSON object."""

import re
from contextlib import suppress
from typing import Any, cast

import msgspec

from codeloop.schema.wire import JSON, decode_json

REPAIRED_NOTE = "the arguments were not valid JSON and were repaired"
BARE_VALUE_NOTE = "arguments are a JSON object; this text was taken for `{}`"
_CODE_BLOCK = r"(?s)\s*```(?:json)?\s*(\{.*\})\s*```\s*"
_MARKUP_STARTS = ("{", "[", "<", '"', "'", "`")
"""The starts of JSON, tags, quotes and code blocks: such a text that can't be parsed is broken,
not a bare value.
"""
CUT_OFF_NOTE = "the arguments broke off; what was whole of them was taken"
# A bracket, a comma, a colon, a string (also one that breaks off), a number or a word of JSON.
_JSON_PIECE = r'[{}\[\],:]|"(?:[^"\\]|\\.)*(?:"|\\?$)|[^\s{}\[\],:"]+'
# Matches `name: value` and `name = value`, which are not bare values either.
_LABEL_START = r"\w+\s*[:=]\s"


def unwrap_arguments(arguments: str, schema: JSON) -> str:
    """Return the arguments without a code block or a JSON string around them; no text becomes `{}`.

    No text stays as it is if a parameter is required, since the error names that parameter.
    """
    if not arguments.strip() and "required" not in schema:
        return "{}"
    if arguments.startswith('"{'):
        with suppress(msgspec.DecodeError):
            return decode_json(arguments, str)
    block = re.fullmatch(_CODE_BLOCK, arguments)
    return block[1] if block else arguments


def repair_arguments(arguments: str, schema: JSON, notes: list[str]) -> str | None:
    """Return the JSON object that a text without one certainly means, and add a note;
    None: it is not certain.

    Understood are an object with trailing commas or in Python's form, and the bare value of the
    only required parameter, such as `src/main.py` for `{"filePath": "src/main.py"}`.
    """
    text = arguments.strip()
    if text.startswith("{"):
        # Imported late: well-formed calls do not need it.
        from codeloop.tool.repair.loose_json import read_json

        parsed = read_json(text, 0)
        if parsed is None:
            return None
        value, end = parsed
        if not isinstance(value, dict) or text[end:].strip():
            return None
        notes.append(REPAIRED_NOTE)
        return encode_arguments(cast("JSON", value))
    match schema:
        case {"required": [str(name)], "properties": {**properties}}:
            property_schema = properties.get(name)
        case _:
            return None
    bare_value: Any = _read_bare_value(text)
    match property_schema, bare_value:
        case {"type": "string"}, [dict()]:
            # A list of one object, which has the parameters by their names.
            return encode_arguments(cast("list[JSON]", bare_value)[0])
        case {"type": "string"}, str() if bare_value.strip():
            pass
        case {"type": "string"}, [str(), *others] if all(isinstance(each, str) for each in others):
            # The words of a command, which `repair_for_tool` joins.
            pass
        case {"type": "array"}, [_, *_]:
            pass
        case _:
            return None
    notes.append(BARE_VALUE_NOTE.format(name))
    return encode_arguments({name: cast("Any", bare_value)})


def close_arguments(arguments: str) -> str | None:
    """Return the arguments of a call that broke off, closed after their last whole value;
    None: they hold none.

    Only for calls that change nothing: what was cut off may have said more.
    """
    text = arguments.strip()
    if not text.startswith("{"):
        return None
    open_brackets: list[str] = []
    # The end of the last whole value or bracket, and the brackets that were open there.
    end, open_at_end = 0, ""
    for match in re.finditer(_JSON_PIECE, text):
        piece = match[0]
        if piece in "{[":
            open_brackets.append("}" if piece == "{" else "]")
        elif piece in "}]":
            if not open_brackets or open_brackets.pop() != piece:
                return None
        elif piece == ",":
            end, open_at_end = match.start(), "".join(reversed(open_brackets))
    for closed in (text + "".join(reversed(open_brackets)), text[:end] + open_at_end):
        with suppress(msgspec.DecodeError, RecursionError):
            if decode_json(closed, JSON):
                return closed
    return None


def _read_bare_value(text: str) -> Any:
    """Return the JSON value of a text, or the text itself if it is plain; None: it is neither."""
    # A text with control characters is a broken one, such as half a stream.
    if not "".join(text.split()).isprintable():
        return None
    with suppress(msgspec.DecodeError, RecursionError):
        return decode_json(text)
    return None if text.startswith(_MARKUP_STARTS) or re.match(_LABEL_START, text) else text


def encode_arguments(value: JSON) -> str | None:
    """Return arguments as JSON; None if they hold what JSON has not,
    such as Python's `...` or half a character.
    """
    with suppress(TypeError, ValueError, OverflowError, RecursionError):
        return msgspec.json.encode(value).decode()
    return None
