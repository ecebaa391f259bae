"""A prompt as the user has entered it."""

from typing import Literal

from msgspec import Struct

from codeloop.schema.api.session_inputs import AgentPartInput, FilePartInput

Mode = Literal["prompt", "shell"]
Delivery = Literal["steer", "queue"]
"""During a turn: `steer` takes effect at its next step, `queue` after it."""


class PromptEntry(Struct, frozen=True):
    """A prompt, or a shell line, with the files and agents that it mentions or attaches."""

    text: str
    mode: Mode = "prompt"
    files: tuple[FilePartInput, ...] = ()
    agents: tuple[AgentPartInput, ...] = ()
