"""The next message of a conversation: a prompt that the program generates, and when a message counts as created."""

from typing import Any

from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.message import UserMessage, UserTime
from codeloop.schema.wire import replace
from codeloop.store.conversation import Conversation


def make_next_prompt(conversation: Conversation, **changes: Any) -> UserMessage:
    """Return a prompt that the program generates: a copy of the last one, with `changes` to its fields."""
    last = next(entry.info for entry in reversed(conversation.entries) if isinstance(entry.info, UserMessage))
    time = UserTime(created=choose_creation_time(conversation, now_ms()))
    return replace(last, id=new_id("msg"), time=time, summary=None, **changes)


def choose_creation_time(conversation: Conversation, now: int) -> int:
    """Return the creation time of the next message (ms): `now`, or just after the last one if the clock went back."""
    return max(now, conversation.entries[-1].info.time.created + 1) if conversation.entries else now
