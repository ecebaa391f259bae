"""Encodes parts of requests in the ways that several protocols share: messages of blocks, JSON,
options, names, ids.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

from codeloop.kit.jsonc import is_object
from codeloop.model.chat import ModelInfo, ModelMessage, ModelRequest, ToolSpec
from codeloop.model.quirks import Quirks
from codeloop.schema.wire import JSON

RESERVED_FIELDS = frozenset({"messages", "stream", "system", "tools", "model"})
"""Body fields that options never change; the `body` of a request may."""


class EncodedMessage(NamedTuple):
    """A message that consists of blocks: its role, the JSON of each block,
    and that of the message (`body`).
    """

    role: str
    blocks: list[bytes]
    body: bytes


def join_blocks(role: str, blocks: list[bytes]) -> EncodedMessage:
    """Return the message that consists of encoded blocks."""
    return EncodedMessage(
        role, blocks, b'{"role":"%b","content":[%b]}' % (role.encode(), b",".join(blocks))
    )


def merge_successive(messages: Iterable[EncodedMessage]) -> list[EncodedMessage]:
    """Join successive messages of one role, for services that want the roles to alternate;
    empty ones are left out.
    """
    merged: list[EncodedMessage] = []
    for message in messages:
        if not message.blocks:
            continue
        if merged and merged[-1].role == message.role:
            merged[-1] = join_blocks(message.role, merged[-1].blocks + message.blocks)
        else:
            merged.append(message)
    return merged


def collect_options(info: ModelInfo, request: ModelRequest, quirks: Quirks) -> JSON:
    """Return the options of model and request as body fields: in the protocol's names,
    without reserved ones.

    They are sorted, so that equal options give equal bytes: prompt caches of services
    compare from the first byte on.
    """
    fields = {
        **_rename_keys(info.options, quirks.option_names),
        **_rename_keys(request.options, quirks.option_names),
    }
    return {name: fields[name] for name in sorted(fields) if name not in RESERVED_FIELDS}


def merge_body(head: JSON, request: ModelRequest, quirks: Quirks) -> JSON:
    """Merge the request's `body` (fields in the protocol's own names) into the head of a body,
    objects key by key; what the service refuses is left out.

    The head: all fields except the messages, which are encoded on their own.
    """
    fields = {**head}
    for name, value in request.body.items():
        field = fields.get(name)
        fields[name] = {**field, **value} if is_object(field) and is_object(value) else value
    for path in quirks.omitted:
        fields = _omit(fields, path)
    return fields


def _omit(fields: JSON, path: str) -> JSON:
    """Return the fields without one, and without the objects that it leaves empty,
    or without their `type`.
    """
    name, _, inner = path.partition(".")
    if name not in fields:
        return fields
    rest = {each: value for each, value in fields.items() if each != name}
    kept = None
    if inner not in {"", "type"} and is_object(fields[name]):
        kept = _omit(fields[name], inner)
    return {**rest, name: kept} if kept else rest


def _rename_keys(options: Mapping[str, Any], names: Mapping[str, str]) -> JSON:
    return {
        names.get(name, name): _rename_keys(value, names) if is_object(value) else value
        for name, value in options.items()
    }


def sanitize_tool_name(name: str) -> str:
    """Return a tool's name in at most 64 characters that every service accepts.

    Names of ours are fine as they are, but models also call tools that don't exist,
    and such calls are sent back.
    """
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unknown"


def sanitize_call_id(call_id: str, length: int = 0) -> str:
    """Return an id that the service accepts: letters, digits, `_` and `-`,
    or exactly `length` letters and digits.
    """
    if not length:
        return re.sub(r"[^a-zA-Z0-9_-]", "_", call_id) or "call"
    if len(call_id) == length and call_id.isalnum():
        return call_id
    # Imported here: it is rarely needed.
    from hashlib import sha256

    # A hash, since a call and its result must get the same id.
    return sha256(call_id.encode("utf-8", "replace")).hexdigest()[:length]


MessageForm = TypeVar("MessageForm")
# A session, its title, and all its subagents at once.
MAX_CACHED_CONVERSATIONS = 64


class FormType(NamedTuple, Generic[MessageForm]):
    """What encoded messages are to a protocol. `merge`: makes the list that is sent
    of one for each message.

    `get_body`: returns the JSON of one of that list.
    """

    merge: Callable[[list[MessageForm]], list[MessageForm]]
    get_body: Callable[[MessageForm], bytes]


def _drop_empty(forms: list[bytes]) -> list[bytes]:
    return [form for form in forms if form]


JSON_FORM = FormType[bytes](_drop_empty, bytes)
"""Each message is JSON by itself; b"": nothing of it can be sent."""
BLOCKS_FORM = FormType[EncodedMessage](merge_successive, attrgetter("body"))
"""Successive messages of one role become one: the service wants the roles to alternate."""


class _ConversationKey(NamedTuple):
    session_id: str
    # A session's requests for titles and summaries have other system prompts, and other messages.
    system: str


class _EncodedMessages(Generic[MessageForm]):
    """What was made of the messages of a conversation's last request: the `body` of most,
    the forms of the last.
    """

    def __init__(self) -> None:
        self.messages: tuple[ModelMessage, ...] = ()
        self.body = bytearray()
        self.last_forms: list[MessageForm] = []


class EncodingCache(Generic[MessageForm]):
    """A cache of encoded messages and tools, so that each step of a conversation
    encodes only what is new in it.

    It holds the messages of the latest request of each recent conversation; a session's requests
    all offer the same tools.
    """

    def __init__(
        self,
        encode_message: Callable[[ModelMessage], MessageForm],
        encode_tool: Callable[[ToolSpec], JSON],
        form_type: FormType[MessageForm],
        open_count: int = 0,
    ) -> None:
        """`open_count`: how many forms at the end the protocol still changes, such as by marks."""
        self._encode_message = encode_message
        self._encode_tool = encode_tool
        self._form_type = form_type
        self._open_count = open_count
        self._conversations: OrderedDict[_ConversationKey, _EncodedMessages[MessageForm]] = (
            OrderedDict()
        )
        self._specs: tuple[ToolSpec, ...] = ()
        self._tools: list[JSON] = []
        """The encoded `_specs`."""

    def encode_messages(self, request: ModelRequest) -> tuple[bytearray, list[MessageForm]]:
        """Return the messages of the request: the JSON of most, comma-separated,
        and the last `open_count` forms.

        The next request of the conversation extends the JSON that is returned: nothing goes
        through earlier messages.
        """
        key = _ConversationKey(request.session_id, request.system)
        # Popped and stored again below, so that the conversation used longest
        # ago is the first to go.
        conversation = self._conversations.pop(key, None) or _EncodedMessages[MessageForm]()
        count = len(conversation.messages)
        # Comparing tuples looks at the identity of the members first,
        # in C: the usual case costs no Python code.
        if request.messages[:count] != conversation.messages:
            conversation, count = _EncodedMessages[MessageForm](), 0
        new = list(map(self._encode_message, request.messages[count:]))
        forms = self._form_type.merge([*conversation.last_forms, *new])
        settled_count = max(len(forms) - self._open_count, 0)
        for form in forms[:settled_count]:
            conversation.body += b"," if conversation.body else b""
            conversation.body += self._form_type.get_body(form)
        conversation.messages, conversation.last_forms = request.messages, forms[settled_count:]
        self._conversations[key] = conversation
        if len(self._conversations) > MAX_CACHED_CONVERSATIONS:
            self._conversations.popitem(last=False)
        return conversation.body, list(conversation.last_forms)

    def encode_tools(self, specs: tuple[ToolSpec, ...]) -> list[JSON]:
        """Return the encoded tools; the same objects as before when the specs are."""
        if specs is not self._specs:
            self._specs, self._tools = specs, [self._encode_tool(spec) for spec in specs]
        return self._tools
