"""A cache of encoded messages and tools, so that each step of a conversation encodes only what is new in it."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from codeloop.model.chat import ModelMessage, ModelRequest, ToolSpec
from codeloop.schema.wire import JSON

MessageForm = TypeVar("MessageForm")
# A session, its title, and a few subagents at once.
MAX_CACHED_CONVERSATIONS = 8


class _ConversationKey(NamedTuple):
    session_id: str
    # A session's requests for titles and summaries have other system prompts, and other messages.
    system: str


class _EncodedMessages(NamedTuple, Generic[MessageForm]):
    messages: tuple[ModelMessage, ...]
    forms: list[MessageForm]


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
        self._conversations: OrderedDict[_ConversationKey, _EncodedMessages[MessageForm]] = OrderedDict()
        self._specs: tuple[ToolSpec, ...] = ()
        self._tools: list[JSON] = []
        """The encoded `_specs`."""

    def encode_messages(self, request: ModelRequest) -> list[MessageForm]:
        """Return the encoded form of every message of the request."""
        key = _ConversationKey(request.session_id, request.system)
        # Popped and stored again below, so that the conversation used longest ago is the first to go.
        earlier = self._conversations.pop(key, None)
        forms: list[MessageForm] = []
        if earlier is not None:
            forms = earlier.forms[: _count_common(earlier.messages, request.messages)]
        forms.extend(map(self._encode_message, request.messages[len(forms) :]))
        self._conversations[key] = _EncodedMessages(request.messages, forms)
        if len(self._conversations) > MAX_CACHED_CONVERSATIONS:
            self._conversations.popitem(last=False)
        return forms

    def encode_tools(self, specs: tuple[ToolSpec, ...]) -> list[JSON]:
        """Return the encoded tools; the same objects as before when the specs are."""
        if specs is not self._specs:
            self._specs, self._tools = specs, [self._encode_tool(spec) for spec in specs]
        return self._tools


def _count_common(before: tuple[ModelMessage, ...], now: tuple[ModelMessage, ...]) -> int:
    """Count the equal messages at the start."""
    # Comparing tuples looks at the identity of the members first, in C: the usual case costs no Python code.
    if now[: len(before)] == before:
        return len(before)
    for index, (old, new) in enumerate(zip(before, now, strict=False)):
        if old is not new and old != new:
            return index
    return min(len(before), len(now))
