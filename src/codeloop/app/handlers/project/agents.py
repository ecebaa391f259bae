"""Agents, skills and commands: what there is."""

from codeloop.agent.request.system_prompt import SAMPLING
from codeloop.app.handlers import handles
from codeloop.app.project import Project
from codeloop.extend.commands import COMPACT, commands_of
from codeloop.extend.skills import load_skill
from codeloop.schema import operation
from codeloop.schema.agent import Agent
from codeloop.schema.api.command import Command, Skill
from codeloop.schema.errors import CodeloopError
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import replace


@handles(operation.AGENT_LIST)
async def agents(project: Project, _args: NoArguments) -> list[Agent]:
    """Return the agents by name, hidden ones too; not the one that only servers reach."""
    return [project.engine.agents[name] for name in sorted(project.engine.agents) if name != SAMPLING]


@handles(operation.SKILL_LIST)
async def skills(project: Project, _args: NoArguments) -> list[Skill]:
    """Return the skills by name; one that can't be read any more is left out."""
    loaded: list[Skill] = []
    for skill_file in project.settings.skills.found.values():
        try:
            loaded.append(load_skill(skill_file))
        except CodeloopError:
            continue
    return loaded


@handles(operation.COMMAND_LIST)
async def list_commands(project: Project, _args: NoArguments) -> list[Command]:
    """Return the commands by name, without what is carried out; a skill's template is its text."""
    found = find_commands(project)
    return [_with_text(project, found[name]) for name in sorted(found) if found[name] != COMPACT]


def find_commands(project: Project) -> dict[str, Command]:
    """Return the commands by name; those of the user and the project take precedence over prompts of MCP servers."""
    prompts: dict[str, Command] = {}
    if (table := project.services.mcp) is not None:
        from codeloop.extend.mcp.tools.prompts import prompts_of  # with no server, nothing of this is needed

        prompts = prompts_of(table)
    return {**prompts, **commands_of(project.settings.config, project.settings.skills)}


def _with_text(project: Project, command: Command) -> Command:
    if command.source != "skill":
        return command
    try:
        return replace(command, template=load_skill(project.settings.skills.found[command.name]).content)
    except CodeloopError:
        return command
