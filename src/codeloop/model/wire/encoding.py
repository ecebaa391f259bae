"""Encoding of requests, shared by all protocols: cached messages, JSON, options, names and ids."""

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
# A session, its title, and a few subagents at once.
MAX_CACHED_CONVERSATIONS = 8
RESERVED_FIELDS = frozenset({"messages", "stream", "system", "tools", "model"})
"""Body fields that options never change; the `body` of a request may."""


class EncodingCache(Generic[MessageForm]):
    """A cache of encoded messages and tools, so that each step of a conversation encodes only what is new in it.

    It holds the messages of the latest request of each recent conversation; a session's requests all offer the same
    tools.
    """

    def __init__(
        self, encode_message: Callable[[ModelMessage], MessageForm], encode_tool: Callable[[ToolSpec], JSON]
    ) -> None:
        self._encode_message = encode_message
        self._encode_tool = encode_tool
        self._messages: OrderedDict[tuple[str, str], tuple[tuple[ModelMessage, ...], list[MessageForm]]] = OrderedDict()
        self._tools: tuple[tuple[ToolSpec, ...], list[JSON]] = ((), [])

    def encode_messages(self, request: ModelRequest) -> list[MessageForm]:
        """Return the encoded form of every message of the request."""
        key, messages = (request.session_id, request.system), request.messages
        # Popped and stored again below, so that the conversation used longest ago is the first to go.
        before, forms_before = self._messages.pop(key, ((), []))
        same = _count_common(before, messages)
        forms = forms_before[:same]
        forms.extend(map(self._encode_message, messages[same:]))
        self._messages[key] = (messages, forms)
        if len(self._messages) > MAX_CACHED_CONVERSATIONS:
            self._messages.popitem(last=False)
        return forms

    def encode_tools(self, specs: tuple[ToolSpec, ...]) -> list[JSON]:
        """Return the encoded tools; the same objects as before when the specs are."""
        if specs is not self._tools[0]:
            self._tools = (specs, [self._encode_tool(spec) for spec in specs])
        return self._tools[1]


class EncodedMessage(NamedTuple):
    """A message that consists of blocks: its role, the JSON of each block, and that of the message (`body`)."""

    role: str
    blocks: list[bytes]
    body: bytes


def encode_message(role: str, blocks: list[bytes]) -> EncodedMessage:
    """Join encoded blocks to a message."""
    return EncodedMessage(role, blocks, b'{"role":"%b","content":[%b]}' % (role.encode(), b",".join(blocks)))


def _count_common(before: tuple[ModelMessage, ...], now: tuple[ModelMessage, ...]) -> int:
    """Count the equal messages at the start."""
    # Comparing tuples looks at the identity of the members first, in C: the usual case costs no Python code.
    if now[: len(before)] == before:
        return len(before)
    for at, (old, new) in enumerate(zip(before, now, strict=False)):
        if old is not new and old != new:
            return at
    return min(len(before), len(now))


def to_json(value: Any) -> bytes:
    """Encode a value as JSON. Lone surrogates, which no service accepts, become question marks."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        # Surrogates are rare (names of files that are not UTF-8), so they are only looked for after a failure.
        return msgspec.json.encode(_replace_surrogates(value))


def _replace_surrogates(value: Any) -> Any:
    """Return the value as plain JSON values with every lone surrogate replaced."""
    import json

    text = json.dumps(value, ensure_ascii=False, default=msgspec.to_builtins)
    return json.loads(text.encode("utf-8", "replace"))


def collect_options(info: ModelInfo, request: ModelRequest, quirks: Quirks) -> JSON:
    """Return the options of model and request as body fields: in the protocol's names, without reserved ones.

    They are sorted, so that equal options give equal bytes: prompt caches of services compare from the first byte on.
    """
    fields = {**_rename_keys(info.options, quirks.option_names), **_rename_keys(request.options, quirks.option_names)}
    return {name: fields[name] for name in sorted(fields) if name not in RESERVED_FIELDS}


def merge_body(head: JSON, request: ModelRequest) -> JSON:
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


def sanitize_tool_name(name: str) -> str:
    """Return a tool's name in characters that every service accepts: models also call tools that don't exist."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unknown"


def sanitize_call_id(name: str, length: int = 0) -> str:
    """Return an id that the service accepts: letters, digits, `_` and `-`, or exactly `length` letters and digits."""
    if not length:
        return re.sub(r"[^a-zA-Z0-9_-]", "_", name) or "call"
    if len(name) == length and name.isalnum():
        return name
    from hashlib import sha256

    # A hash, since a call and its result must get the same id.
    return sha256(name.encode("utf-8", "replace")).hexdigest()[:length]


def lowercase_names(headers: dict[str, str]) -> dict[str, str]:
    """Return the headers with lower-case names, so that later ones replace earlier ones."""
    return {name.lower(): value for name, value in headers.items()}
