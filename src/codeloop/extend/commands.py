"""Builds the slash commands of a project: built-in ones, configured ones,
and one for each skill.
"""

from pathlib import Path

from codeloop.extend.skills import Skills
from codeloop.extend.template import list_placeholders
from codeloop.schema.api.agents import Command
from codeloop.schema.config import CommandConfig, Config
from codeloop.schema.installation import check_package_file

PROMPTS_FOLDER = Path(__file__).with_name("prompts")
BUILT_IN_COMMANDS: dict[str, str] = {
    "init": "Write or improve AGENTS.md: what an agent needs to know about this project.",
    "remember": "Keep a note for later sessions in .codeloop/memory.",
    "review": "Review uncommitted changes, a commit, a branch, or what you name.",
}
"""The built-in commands that are prompts, each with its `.md` in `prompts`."""
COMPACT_COMMAND = Command(
    name="compact",
    template="",
    hints=[],
    description="Summarise the conversation so far, to make room.",
    source="command",
)
"""Not a prompt but run directly; not listed,
because clients have their own command of this name.
"""


def build_commands(config: Config, skills: Skills) -> dict[str, Command]:
    """Return the commands by name. A configured one replaces a built-in one of its name,
    and either one a skill.
    """
    commands = {
        "compact": COMPACT_COMMAND,
        **{
            name: _make_built_in_command(name, description)
            for name, description in BUILT_IN_COMMANDS.items()
        },
    }
    commands |= {name: _make_command(name, own) for name, own in config.command.items()}
    for skill in skills.by_name.values():
        # A command of the same name was written on purpose; the skill stays available to the model.
        if skill.name not in commands:
            commands[skill.name] = Command(
                name=skill.name,
                template="",
                hints=[],
                description=skill.description,
                source="skill",
            )
    return commands


def _make_built_in_command(name: str, description: str) -> Command:
    template = check_package_file(PROMPTS_FOLDER / f"{name}.md").read_text(encoding="utf-8").strip()
    return Command(
        name=name,
        template=template,
        hints=list_placeholders(template),
        description=description,
        source="command",
    )


def _make_command(name: str, own: CommandConfig) -> Command:
    return Command(
        name=name,
        template=own.template,
        hints=list_placeholders(own.template),
        description=own.description,
        agent=own.agent,
        model=own.model,
        variant=own.variant,
        source="command",
        subtask=own.subtask,
    )
