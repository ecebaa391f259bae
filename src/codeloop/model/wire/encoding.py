"""Shared encoding of requests: caching of encoded messages, and names and ids that services accept."""

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from codeloop.model.chat import ModelInfo, ModelMessage, ModelRequest, ToolSpec
from codeloop.model.quirks import Quirks
from codeloop.model.wire.response import is_json_object
from codeloop.schema.wire import JSON

Encoded = TypeVar("Encoded")
SESSIONS = 8
"""Conversations whose encoded messages are kept at a time: a session, its subagents, its title."""
OURS = frozenset({"messages", "stream", "system", "tools", "model"})
"""Body fields that options never change."""


class EncodingCache(Generic[Encoded]):
    """The encoded form of messages and tools that were sent before, so that a long conversation costs no more a step.

    Only what the latest request of a conversation held is kept, and only of the conversations used last; a session's
    requests all offer the same tools.
    """

    def __init__(
        self, encode_message: Callable[[ModelMessage], Encoded], encode_tool: Callable[[ToolSpec], JSON]
    ) -> None:
        self._encode_message = encode_message
        self._encode_tool = encode_tool
        self._messages: OrderedDict[tuple[str, str], tuple[tuple[ModelMessage, ...], list[Encoded]]] = OrderedDict()
        self._tools: tuple[tuple[ToolSpec, ...], list[JSON]] = ((), [])

    def messages(self, request: ModelRequest) -> list[Encoded]:
        """Return the encoded form of every message of the request."""
        key, messages = (request.session_id, request.system), request.messages
        before, known = self._messages.pop(key, ((), []))
        same = _common(before, messages)
        encoded = known[:same]
        encoded.extend(map(self._encode_message, messages[same:]))
        self._messages[key] = (messages, encoded)
        if len(self._messages) > SESSIONS:
            self._messages.popitem(last=False)
        return encoded

    def tools(self, specs: tuple[ToolSpec, ...]) -> list[JSON]:
        """Return the encoded tools; the same objects as before when the specs are."""
        if specs is not self._tools[0]:
            self._tools = (specs, [self._encode_tool(spec) for spec in specs])
        return self._tools[1]


class EncodedMessage(NamedTuple):
    """A message of blocks: its role, the JSON of each block, and of the whole."""

    role: str
    blocks: list[bytes]
    body: bytes


def encode_message(role: str, blocks: list[bytes]) -> EncodedMessage:
    """Put the blocks together."""
    return EncodedMessage(role, blocks, b'{"role":"%b","content":[%b]}' % (role.encode(), b",".join(blocks)))


def _common(before: tuple[ModelMessage, ...], now: tuple[ModelMessage, ...]) -> int:
    """Count the equal messages at the start; comparing tuples looks at identity first, without Python code."""
    if now[: len(before)] == before:
        return len(before)
    for at, (old, new) in enumerate(zip(before, now, strict=False)):
        if old is not new and old != new:
            return at
    return min(len(before), len(now))


def to_json(value: Any) -> bytes:
    """Encode; lone surrogates, which no service accepts, become question marks."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_scrub(value))


def _scrub(value: Any) -> Any:
    """Return the value as plain JSON values with every lone surrogate replaced."""
    import json

    text = json.dumps(value, ensure_ascii=False, default=msgspec.to_builtins)
    return json.loads(text.encode("utf-8", "replace"))


def options_of(info: ModelInfo, request: ModelRequest, quirks: Quirks) -> JSON:
    """Return the further body fields of model and request under the wire's names, sorted, without our own."""
    merged = {**_rename_keys(info.options, quirks.names), **_rename_keys(request.options, quirks.names)}
    return {name: merged[name] for name in sorted(merged) if name not in OURS}


def with_body(head: JSON, request: ModelRequest) -> JSON:
    """Return the head of a body with the fields that the request has in the wire's own names, merged into objects."""
    merged = {**head}
    for name, value in request.body.items():
        before = merged.get(name)
        merged[name] = {**before, **value} if is_json_object(before) and is_json_object(value) else value
    return merged


def _rename_keys(options: Mapping[str, Any], names: Mapping[str, str]) -> JSON:
    data: JSON = {}
    for name, value in options.items():
        inner = _rename_keys(value, names) if is_json_object(value) else value
        data[names.get(name, name)] = inner
    return data


def tool_name(name: str) -> str:
    """Return a name that every service accepts in a history, whatever the model once called."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unknown"


def call_id(name: str, length: int = 0) -> str:
    """Return an id that the service accepts: letters, digits, `_` and `-`, or exactly `length` letters and digits."""
    if not length:
        return re.sub(r"[^a-zA-Z0-9_-]", "_", name) or "call"
    if len(name) == length and name.isalnum():
        return name
    from hashlib import sha256

    return sha256(name.encode("utf-8", "replace")).hexdigest()[:length]


def lower_names(headers: dict[str, str]) -> dict[str, str]:
    """Return the headers with lower-case names, so that one set replaces another."""
    return {name.lower(): value for name, value in headers.items()}
