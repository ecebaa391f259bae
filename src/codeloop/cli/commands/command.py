"""`codeloop command`: list the commands of this directory."""

from pathlib import Path

import click
import msgspec

from codeloop.app.settings import Startup, find_settings
from codeloop.cli.group import Group
from codeloop.cli.output.columns import columns
from codeloop.cli.output.origin import origin, seen_from
from codeloop.extend.commands import commands_of
from codeloop.kit.terminal_text import inert, inert_json, one_line


@click.group(cls=Group)
def command() -> None:
    """List commands, the prompts that have a name."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON, with the templates.")
def list_(*, as_json: bool) -> None:
    """List the commands of this directory: name, agent, what it does, where it comes from."""
    settings = find_settings(Startup(directory=Path.cwd()))
    for warning in settings.loaded.warnings:
        click.echo(f"codeloop: {inert(warning)}", err=True)
    found = commands_of(settings.config, settings.skills)
    shown = [found[name] for name in sorted(found)]
    if as_json:
        click.echo(inert_json(msgspec.json.encode(shown).decode()))
        return
    skills = {name: seen_from(settings, skill.file) for name, skill in settings.skills.found.items()}
    rows = [
        (
            f"/{one_line(each.name, 60)}",
            one_line(each.agent or "-", 30),
            one_line(each.description or "", 60),
            inert(skills[each.name] if each.source == "skill" else origin(settings, "command", each.name)),
        )
        for each in shown
    ]
    click.echo(columns([("name", "agent", "description", "from"), *rows]))
