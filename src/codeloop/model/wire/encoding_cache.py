"""A cache of encoded messages and tools, so that each step of a conversation
encodes only what is new in it.
"""

from collections import OrderedDict
from collections.abc import Callable
from operator import attrgetter
from typing import Generic, NamedTuple, TypeVar

from codeloop.model.chat import ModelMessage, ModelRequest, ToolSpec
from codeloop.model.wire.encoding import EncodedMessage, merge_successive
from codeloop.schema.wire import JSON

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
