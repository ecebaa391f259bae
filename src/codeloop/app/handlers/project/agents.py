"""Agents and skills: what there is."""

from codeloop.agent.request.system_prompt import SAMPLING
from codeloop.app.handlers import handles
from codeloop.app.project import Project
from codeloop.extend.skills import load_skill
from codeloop.schema import operation
from codeloop.schema.agent import Agent
from codeloop.schema.api.command import Skill
from codeloop.schema.errors import CodeloopError
from codeloop.schema.operation import NoArguments


@handles(operation.AGENT_LIST)
async def agents(project: Project, _args: NoArguments) -> list[Agent]:
    """Return the agents by name, hidden ones too; not the one that only servers reach."""
    return [project.engine.agents[name] for name in sorted(project.engine.agents) if name != SAMPLING]


@handles(operation.SKILL_LIST)
async def skills(project: Project, _args: NoArguments) -> list[Skill]:
    """Return the skills by name; one that can't be read any more is left out."""
    loaded: list[Skill] = []
    for found in project.settings.skills.found.values():
        try:
            loaded.append(load_skill(found))
        except CodeloopError:
            continue
    return loaded
