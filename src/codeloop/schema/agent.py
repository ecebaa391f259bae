"""An agent: a named way of working, as clients see it."""

from typing import Literal

from codeloop.schema.message import ModelRef
from codeloop.schema.permission import PermissionRule
from codeloop.schema.wire import JSON, Wire


class Agent(Wire):
    """A prompt, rules and a model under a name. `steps`: at most so many requests a turn.

    `fallback`: models (`provider/model`) that take over, one after the other, where the model's service fails.
    """

    name: str
    mode: Literal["primary", "subagent", "all"]
    permission: list[PermissionRule]
    options: JSON
    description: str | None = None
    native: bool | None = None
    hidden: bool | None = None
    model: ModelRef | None = None
    variant: str | None = None
    prompt: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    color: str | None = None
    steps: int | None = None
    fallback: list[str] | None = None
