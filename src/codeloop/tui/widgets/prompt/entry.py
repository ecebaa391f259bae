"""What the user says with the prompt."""

from typing import Literal

from msgspec import Struct

from codeloop.schema.api.session_inputs import AgentPartInput, FilePartInput

Mode = Literal["prompt", "shell"]
Delivery = Literal["steer", "queue"]
"""During a turn: `steer` takes effect at its next step, `queue` after it."""


class PromptEntry(Struct, frozen=True):
    """A prompt, or a line for the shell, with the files and agents that it mentions or brings along."""

    text: str
    mode: Mode = "prompt"
    files: tuple[FilePartInput, ...] = ()
    agents: tuple[AgentPartInput, ...] = ()
