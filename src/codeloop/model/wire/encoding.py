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

MessageForm = TypeVar("MessageForm")
SESSIONS = 8
"""Conversations whose encoded messages are cached: a session, its subagents, its title."""
RESERVED_FIELDS = frozenset({"messages", "stream", "system", "tools", "model"})
"""Body fields that options never change."""


class EncodingCache(Generic[MessageForm]):
    """Encoded messages and tools of earlier requests, so that each step encodes only what is new.

    It holds the turns of the latest request of each conversation that was used lately; a session's requests all offer
    the same tools.
    """

    def __init__(
        self, encode_message: Callable[[ModelMessage], MessageForm], encode_tool: Callable[[ToolSpec], JSON]
    ) -> None:
        self._encode_message = encode_message
        self._encode_tool = encode_tool
        self._messages: OrderedDict[tuple[str, str], tuple[tuple[ModelMessage, ...], list[MessageForm]]] = OrderedDict()
        self._tools: tuple[tuple[ToolSpec, ...], list[JSON]] = ((), [])

    def messages(self, request: ModelRequest) -> list[MessageForm]:
        """Return the encoded form of every message of the request."""
        key, messages = (request.session_id, request.system), request.messages
        # Popped and stored again below, so that the conversation used longest ago is the first to go.
        before, forms_before = self._messages.pop(key, ((), []))
        same = _count_common(before, messages)
        forms = forms_before[:same]
        forms.extend(map(self._encode_message, messages[same:]))
        self._messages[key] = (messages, forms)
        if len(self._messages) > SESSIONS:
            self._messages.popitem(last=False)
        return forms

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
    """Join the blocks to a message."""
    return EncodedMessage(role, blocks, b'{"role":"%b","content":[%b]}' % (role.encode(), b",".join(blocks)))


def _count_common(before: tuple[ModelMessage, ...], now: tuple[ModelMessage, ...]) -> int:
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
    """Return the options of model and request as body fields: in the protocol's names, sorted, none reserved."""
    fields = {**_rename_keys(info.options, quirks.names), **_rename_keys(request.options, quirks.names)}
    return {name: fields[name] for name in sorted(fields) if name not in RESERVED_FIELDS}


def with_body(head: JSON, request: ModelRequest) -> JSON:
    """Merge the request's `body` (fields in the protocol's own names) into the head of a body, objects key by key."""
    fields = {**head}
    for name, value in request.body.items():
        before = fields.get(name)
        fields[name] = {**before, **value} if is_json_object(before) and is_json_object(value) else value
    return fields


def _rename_keys(options: Mapping[str, Any], names: Mapping[str, str]) -> JSON:
    data: JSON = {}
    for name, value in options.items():
        inner = _rename_keys(value, names) if is_json_object(value) else value
        data[names.get(name, name)] = inner
    return data


def tool_name(name: str) -> str:
    """Return a name that every service accepts in a history, whatever name the model called."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unknown"


def call_id(name: str, length: int = 0) -> str:
    """Return an id that the service accepts: letters, digits, `_` and `-`, or exactly `length` letters and digits."""
    if not length:
        return re.sub(r"[^a-zA-Z0-9_-]", "_", name) or "call"
    if len(name) == length and name.isalnum():
        return name
    from hashlib import sha256

    # A hash, since a call and its result must get the same id.
    return sha256(name.encode("utf-8", "replace")).hexdigest()[:length]


def lower_names(headers: dict[str, str]) -> dict[str, str]:
    """Return the headers with lower-case names, so that later ones replace earlier ones."""
    return {name.lower(): value for name, value in headers.items()}
