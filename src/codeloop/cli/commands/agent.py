"""`codeloop agent`: list the agents, write a file for a new one."""

from pathlib import Path

import click
import msgspec

from codeloop.app.settings import Startup, find_settings
from codeloop.cli.exit_codes import UsageProblem
from codeloop.cli.group import Group
from codeloop.cli.output.columns import columns
from codeloop.cli.output.origin import origin
from codeloop.extend.agents import NATIVES, agents_of
from codeloop.extend.folders import is_name
from codeloop.extend.markdown import agent_page
from codeloop.kit.terminal_text import inert, one_line
from codeloop.permission.defaults import base_rules

MODES = ("primary", "subagent", "all")


@click.group(cls=Group)
def agent() -> None:
    """List agents and make new ones."""


@agent.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON, with rules and prompts.")
@click.option("--all", "with_hidden", is_flag=True, help="Also those that work unseen: titles, summaries.")
def list_(*, as_json: bool, with_hidden: bool) -> None:
    """List the agents of this directory: name, mode, model, what it is for, where it comes from."""
    settings = find_settings(Startup(directory=Path.cwd()))
    for warning in settings.loaded.warnings:
        click.echo(f"codeloop: {inert(warning)}", err=True)
    scratch = settings.paths.project(settings.place.project_id) / "tool-output"
    found = agents_of(settings.config, base_rules(scratch, *settings.skills.readable))
    shown = [found[name] for name in sorted(found) if with_hidden or not found[name].hidden]
    if as_json:
        click.echo(msgspec.json.encode(shown).decode())
        return
    rows = [
        (
            each.name,
            each.mode,
            f"{each.model.provider_id}/{each.model.model_id}" if each.model else "-",
            one_line(each.description or "", 60),
            inert(origin(settings, "agent", each.name)),
        )
        for each in shown
    ]
    click.echo(columns([("name", "mode", "model", "description", "from"), *rows]))


@agent.command()
@click.argument("name")
@click.option("--description", metavar="TEXT", help="What it is for, and when to use it.")
@click.option("--mode", type=click.Choice(MODES), default="all", show_default=True, help="Who may use it.")
@click.option("--global", "for_all", is_flag=True, help="For all projects instead of this one.")
def create(name: str, *, description: str | None, mode: str, for_all: bool) -> None:
    """Write a commented file for the new agent NAME (`reviewer`, or `team/reviewer`) and say where it is."""
    if not is_name(name) or name.endswith(".md"):
        raise UsageProblem(f"{name!r} can't be an agent's name: use letters, digits, `-`, `_`, and `/` between words.")
    settings = find_settings(Startup(directory=Path.cwd()))
    top = settings.paths.config if for_all else settings.place.root / ".codeloop"
    file = top / "agent" / f"{name}.md"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as written:
            written.write(agent_page(description or f"Say what {name} is for, and when to use it.", mode))
    except FileExistsError:
        raise UsageProblem(f"{file} exists already. Edit it, or choose another name.") from None
    except OSError as error:
        raise UsageProblem(f"{file} can't be written: {error.strerror}.") from error
    click.echo(f"Wrote {file}. Say in it what the agent is to do.")
    if name in NATIVES:
        click.echo(f"It changes the built-in agent {name}.")
    if not for_all and not settings.trusted:
        click.echo("This directory is not trusted, so its agents do not count yet: codeloop trust")
