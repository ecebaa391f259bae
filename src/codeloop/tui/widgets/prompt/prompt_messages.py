"""The messages that the prompt posts to the main screen and the tab: what was submitted,
and commands of its keys.
"""

from textual.message import Message

from codeloop.schema.api.session_inputs import FilePartInput
from codeloop.tui.widgets.prompt.prompt_entry import Delivery, PromptEntry


class PromptSubmitted(Message):
    """A prompt, or a shell line, was submitted."""

    def __init__(self, entry: PromptEntry, delivery: Delivery) -> None:
        super().__init__()
        self.entry = entry
        self.delivery: Delivery = delivery


class PromptSlashCommand(Message):
    """A command was submitted; `words`: what was typed after its name;
    `files`: images among them.
    """

    def __init__(self, name: str, words: str, files: tuple[FilePartInput, ...] = ()) -> None:
        super().__init__()
        self.name = name
        self.words = words
        self.files = files


class EmptySubmitted(Message):
    """Enter was pressed in an empty prompt while others wait for the turn."""


class PromptTyped(Message):
    """The prompt holds text, which is no command, after a change."""


class PromptEmptied(Message):
    """The prompt is empty after a change, or after a move of the cursor."""


class CommandPressed(Message):
    """A key of the prompt runs a command of the program; `command`: its id."""

    def __init__(self, command: str) -> None:
        super().__init__()
        self.command = command
