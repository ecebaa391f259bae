"""`codeloop skill`: list the skills of this directory."""

from pathlib import Path

import click
import msgspec

from codeloop.app.settings import Startup, find_settings
from codeloop.cli.group import Group
from codeloop.cli.output.columns import columns
from codeloop.cli.output.origin import seen_from
from codeloop.kit.terminal_text import inert, inert_json, one_line


@click.group(cls=Group)
def skill() -> None:
    """List skills, the texts that the model loads when a task calls for them."""


@skill.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def list_(*, as_json: bool) -> None:
    """List the skills of this directory: name, when it is used, where it is."""
    settings = find_settings(Startup(directory=Path.cwd()))
    for warning in settings.loaded.warnings:
        click.echo(f"codeloop: {inert(warning)}", err=True)
    shown = list(settings.skills.found.values())
    if as_json:
        found = [{"name": each.name, "description": each.description, "location": str(each.file)} for each in shown]
        click.echo(inert_json(msgspec.json.encode(found).decode()))
        return
    rows = [(each.name, one_line(each.description, 60), inert(seen_from(settings, each.file))) for each in shown]
    if rows:
        click.echo(columns([("name", "description", "from"), *rows]))
    else:
        click.echo("No skills yet. docs/skills.md tells how one is written.", err=True)
