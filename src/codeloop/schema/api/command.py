"""A command: a prompt under a name, as clients see it."""

from typing import Literal

from codeloop.schema.wire import Wire


class Command(Wire):
    """`/name arguments`. `hints`: the placeholders in the template. `subtask`: a subagent does it."""

    name: str
    template: str
    hints: list[str]
    description: str | None = None
    agent: str | None = None
    model: str | None = None
    variant: str | None = None
    source: Literal["command", "mcp", "skill"] | None = None
    subtask: bool | None = None
