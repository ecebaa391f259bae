"""Agents, commands and skills, which users define under names, as clients see them."""

from typing import Literal

from codeloop.schema.message import ModelRef
from codeloop.schema.operation import NoArguments, Operation
from codeloop.schema.permission import PermissionRule
from codeloop.schema.wire import JSON, Wire


class Agent(Wire):
    """A prompt, rules and a model under a name. `steps`: at most so many requests a turn.

    `fallback`: models (`provider/model`) that take over, one after the other,
    where the model's service fails.
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


AGENT_LIST = Operation(
    "app.agents", "GET", "/agent", NoArguments, list[Agent], "project.agents:list_agents"
)
COMMAND_LIST = Operation(
    "command.list", "GET", "/command", NoArguments, list[Command], "project.agents:list_commands"
)
SKILL_LIST = Operation(
    "app.skills", "GET", "/skill", NoArguments, list[Skill], "project.agents:list_skills"
)
