"""Commands and skills as clients see them: prompts under a name, and texts that a model loads when it needs them."""

from typing import Literal

from codeloop.schema.wire import Wire


class Command(Wire):
    """A command that is called as `/name arguments`.

    `hints`: the placeholders in the template. `subtask`: a subagent carries it out.
    """

    name: str
    template: str
    hints: list[str]
    description: str | None = None
    agent: str | None = None
    model: str | None = None
    variant: str | None = None
    source: Literal["command", "mcp", "skill"] | None = None
    subtask: bool | None = None


class Skill(Wire):
    """A text that a model loads when it needs it.

    `location`: the absolute path of its SKILL.md; `content`: the text below the head.
    """

    name: str
    location: str
    content: str
    description: str | None = None
