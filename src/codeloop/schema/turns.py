"""Tells the prompts of the user, to which undo goes back,
from those that the program stores in the user's name.
"""

from collections.abc import Sequence

from codeloop.schema.message import Message, UserMessage
from codeloop.schema.part import CompactionPart, Part, TextPart

COMMAND_NOTE = "The user ran the following command themselves; the result below is what it printed."
"""The text before the result of a command that the user ran in the conversation;
it stands alone in its message.
"""
REPEATED_KEY = "repeated"
"""In the metadata of a prompt's part: the text of an earlier prompt, repeated after a summary."""


def begins_turn(info: Message, parts: Sequence[Part]) -> bool:
    """Return whether a message is a prompt of the user.

    False for answers, and for what the program stores as a prompt: reminders, compactions, what
    follows these, and notes on checks and hooks.
    """
    if not isinstance(info, UserMessage):
        return False
    if any(isinstance(part, CompactionPart) for part in parts):
        return False
    return not parts or any(_is_from_user(part) for part in parts)


def _is_from_user(part: Part) -> bool:
    if not isinstance(part, TextPart):
        return True
    if part.metadata and REPEATED_KEY in part.metadata:
        return False
    return not part.synthetic or part.text == COMMAND_NOTE
