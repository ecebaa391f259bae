"""`codeloop agent`, `codeloop command` and `codeloop skill`: list those of this directory,
and create agents.
"""

from functools import partial
from pathlib import Path

import click

from codeloop.app.models.open_models import find_newest_model, make_providers
from codeloop.app.settings import ProjectSettings
from codeloop.cli.group import CommandGroup
from codeloop.cli.options import JSON_OPTION
from codeloop.cli.output.columns import align_columns
from codeloop.cli.output.print_json import print_json
from codeloop.cli.target.project import load_settings
from codeloop.config.sources import format_keys
from codeloop.config.trust.store import trust_changed_file
from codeloop.extend.agents import BUILT_IN_AGENTS
from codeloop.extend.commands import build_commands
from codeloop.extend.homes import is_valid_name
from codeloop.extend.pages.new_agent_page import make_agent_page
from codeloop.extend.rulebook import Rulebook
from codeloop.kit.new_file import write_new_file
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.errors import UsageProblem

AGENT_MODES = ("primary", "subagent", "all")


@click.group(cls=CommandGroup)
def agent() -> None:
    """List and create agents."""


@agent.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with rules and prompts.")
@click.option(
    "--all",
    "includes_hidden",
    is_flag=True,
    help="Include internal agents, such as those for titles.",
)
def list_agents(*, as_json: bool, includes_hidden: bool) -> None:
    """List agents, and where each is defined."""
    settings = load_settings()
    scratch = settings.project_root.get_scratch_folder(settings.home)
    newest = partial(find_newest_model, settings, make_providers(settings))
    agents = Rulebook(settings.loaded, scratch, settings.skills.readable).build_agents(newest)
    shown_agents = [
        agents[name] for name in sorted(agents) if includes_hidden or not agents[name].hidden
    ]
    if as_json:
        print_json(shown_agents)
        return
    rows = [
        (
            agent.name,
            agent.mode,
            f"{agent.model.provider_id}/{agent.model.model_id}" if agent.model else "-",
            one_line(agent.description or "", 60),
            _find_origin(settings, "agent", agent.name),
        )
        for agent in shown_agents
    ]
    click.echo(align_columns([("name", "mode", "model", "description", "from"), *rows]))


@agent.command()
@click.argument("name")
@click.option("--description", metavar="TEXT", help="What it is for, and when to use it.")
@click.option(
    "--mode",
    type=click.Choice(AGENT_MODES),
    default="all",
    show_default=True,
    help="How it can be used.",
)
@click.option(
    "--global", "for_all", is_flag=True, help="Create it for all projects instead of this one."
)
def create(name: str, *, description: str | None, mode: str, for_all: bool) -> None:
    """Create an agent.

    Writes a commented file for NAME (such as `reviewer` or `team/reviewer`).
    """
    if not is_valid_name(name) or name.endswith(".md"):
        raise UsageProblem(
            f"{name!r} can't be an agent's name: use letters, digits, `-`, `_`, and `/` between words."
        )
    settings = load_settings()
    config_folder = settings.paths.config if for_all else settings.project_root.root / ".codeloop"
    file = config_folder / "agent" / f"{name}.md"
    try:
        page = make_agent_page(description or f"Say what {name} is for, and when to use it.", mode)
        base = config_folder if for_all else settings.project_root.root
        base.mkdir(parents=True, exist_ok=True)
        # It fails if the file exists, also if another process has just written it.
        write_new_file(file, page.encode(), base=base, mode=0o666, replace=False)
    except FileExistsError:
        raise UsageProblem(f"{file} already exists. Edit it, or choose another name.") from None
    except OSError as error:
        raise UsageProblem(f"{file} can't be written: {error.strerror}.") from error
    # The user made the change, so it must not end the trust.
    if not for_all and settings.trusted:
        trust_changed_file(
            settings.paths, settings.project_root.root, settings.project_root.directory, file
        )
    click.echo(f"Wrote {file}. Describe in it what the agent should do.")
    if name in BUILT_IN_AGENTS:
        click.echo(f"It changes the built-in agent {name}.")
    if not for_all and not settings.trusted:
        click.echo(
            "This directory is not trusted, so its agents are ignored. Trust it: codeloop trust"
        )


@click.group(cls=CommandGroup)
def command() -> None:
    """List commands: prompts that you run by name."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the templates.")
def list_commands(*, as_json: bool) -> None:
    """List commands, and where each is defined."""
    settings = load_settings()
    commands = build_commands(settings.config, settings.skills)
    shown_commands = [commands[name] for name in sorted(commands)]
    if as_json:
        print_json(shown_commands)
        return
    # Skills can be called as commands, too; no key of the configuration says where they are from.
    skills = {
        name: _shorten_path(settings, skill.file) for name, skill in settings.skills.by_name.items()
    }
    rows = [
        (
            f"/{one_line(command.name, 60)}",
            one_line(command.agent or "-", 30),
            one_line(command.description or "", 60),
            skills[command.name]
            if command.source == "skill"
            else _find_origin(settings, "command", command.name),
        )
        for command in shown_commands
    ]
    click.echo(align_columns([("name", "agent", "description", "from"), *rows]))


@click.group(cls=CommandGroup)
def skill() -> None:
    """List skills: instructions that the model loads when needed."""


@skill.command("list")
@JSON_OPTION
def list_skills(*, as_json: bool) -> None:
    """List skills, and where each is defined."""
    settings = load_settings()
    skills = list(settings.skills.by_name.values())
    if as_json:
        print_json(
            [
                {"name": skill.name, "description": skill.description, "location": str(skill.file)}
                for skill in skills
            ]
        )
    elif skills:
        rows = [
            (skill.name, one_line(skill.description, 60), _shorten_path(settings, skill.file))
            for skill in skills
        ]
        click.echo(align_columns([("name", "description", "from"), *rows]))
    else:
        click.echo(
            "No skills yet. Write one as .codeloop/skill/NAME/SKILL.md; it begins with `name` and `description`.",
            err=True,
        )


def _find_origin(settings: ProjectSettings, section: str, name: str) -> str:
    """Return the file that set a value of an entry of a section last, "built-in" if none did."""
    start = format_keys((section, name)) + "."
    sources = [
        origin.layer.source
        for key, origin in settings.loaded.provenance.items()
        if key.startswith(start)
    ]
    return _shorten_path(settings, Path(sources[-1])) if sources else "built-in"


def _shorten_path(settings: ProjectSettings, path: Path) -> str:
    """Return a path as text: relative to the current directory if it is below that, else whole."""
    directory = settings.project_root.directory
    return escape_controls(
        str(path.relative_to(directory)) if path.is_relative_to(directory) else str(path)
    )
