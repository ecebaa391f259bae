"""A prompt that is ready to be sent; one that is being edited:
`tui/widgets/prompt/history/stored_prompt.py`.
"""

from typing import Literal

from msgspec import Struct

from codeloop.schema.api.session_inputs import AgentPartInput, FilePartInput

Mode = Literal["prompt", "shell"]
Delivery = Literal["steer", "queue"]
"""When a prompt that is sent during a turn takes effect: `steer` at the turn's next step,
`queue` after the turn.
"""


class PromptEntry(Struct, frozen=True):
    """A prompt, or a shell line, with the files and agents that it mentions or attaches."""

    text: str
    mode: Mode = "prompt"
    files: tuple[FilePartInput, ...] = ()
    agents: tuple[AgentPartInput, ...] = ()
