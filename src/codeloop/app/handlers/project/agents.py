"""Handlers that list the agents, skills and commands of a project."""

from codeloop.agent.request.system_prompt import SAMPLING_AGENT
from codeloop.app.project import Project
from codeloop.extend.commands import COMPACT_COMMAND, build_commands
from codeloop.extend.skills import load_skill
from codeloop.schema.api.agents import Agent, Command, Skill
from codeloop.schema.errors import CodeloopError
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import replace


async def list_agents(project: Project, _args: NoArguments) -> list[Agent]:
    """Return the agents sorted by name, including hidden ones,
    except the internal one for sampling by MCP servers.
    """
    return [
        project.engine.agents[name]
        for name in sorted(project.engine.agents)
        if name != SAMPLING_AGENT
    ]


async def list_skills(project: Project, _args: NoArguments) -> list[Skill]:
    """Return the skills sorted by name, without unreadable ones."""
    loaded: list[Skill] = []
    for skill_file in project.settings.skills.by_name.values():
        try:
            loaded.append(load_skill(skill_file))
        except CodeloopError:
            continue
    return loaded


async def list_commands(project: Project, _args: NoArguments) -> list[Command]:
    """Return the commands sorted by name, without `compact`, which is not a prompt.
    A skill's template is its text.
    """
    commands = sorted(find_commands(project).items())
    return [
        _add_skill_text(project, command) for _, command in commands if command != COMPACT_COMMAND
    ]


def find_commands(project: Project) -> dict[str, Command]:
    """Return the commands by name; those of the user and the project take precedence
    over prompts of MCP servers.
    """
    prompts: dict[str, Command] = {}
    if (table := project.services.mcp) is not None:
        from codeloop.extend.mcp.tools.prompts import list_prompt_commands

        prompts = list_prompt_commands(table)
    return {**prompts, **build_commands(project.settings.config, project.settings.skills)}


def _add_skill_text(project: Project, command: Command) -> Command:
    if command.source != "skill":
        return command
    try:
        return replace(
            command, template=load_skill(project.settings.skills.by_name[command.name]).content
        )
    except CodeloopError:
        return command
