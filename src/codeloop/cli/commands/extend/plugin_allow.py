"""`codeloop plugin allow`: lets the user's extensions and hooks do more than their sandbox does."""

from pathlib import Path
from typing import Any

import click

from codeloop.app.extensions.hooks import PROGRAMS_FOLDER
from codeloop.cli.commands.extend.mcp_allow import add_allowance_options, add_to_sandbox
from codeloop.cli.target.project import load_settings
from codeloop.config.file_entries import choose_entry_file, read_value, write_value
from codeloop.config.forms.allowances import Allowance, widen_sandbox, write_paths
from codeloop.extend.host.host_callbacks import HOSTS_FOLDER
from codeloop.schema.errors import UsageProblem
from codeloop.workspace.sandbox.helper_refusals import forget_refusals

EXTENSION_FOLDERS = ("hooks", f"{HOSTS_FOLDER}-python", f"{HOSTS_FOLDER}-javascript")
"""The names of the own folders of the programs that have these sandboxes."""


@click.command("allow")
@click.option(
    "--project",
    "for_projects",
    is_flag=True,
    help="Let the hooks and extensions of projects, which run where commands run.",
)
@add_allowance_options
def allow(*, for_projects: bool, **flags: Any) -> None:
    """Let your plugins, own tools and hooks read or write more than their sandbox does.

    Written to `sandbox.extensions` of your configuration; counts from the next start. Those of a
    project run where commands run: with `--project` it is the sandbox of commands that is changed.
    """
    allowance = Allowance(**flags)
    if allowance.is_empty:
        raise UsageProblem("Say what they may: --read PATH, --write PATH, --host HOST, --off.")
    settings = load_settings()
    file = choose_entry_file(settings.paths, None)
    if for_projects:
        _widen_commands(file, allowance)
    else:
        place = ("sandbox", "extensions")
        present = read_value(file, place)
        if present is True and not allowance.is_off:
            raise UsageProblem(
                'With `"extensions": true` they run in the sandbox of commands, which has to allow it:'
                " codeloop plugin allow --project ..."
            )
        if (widened := widen_sandbox(present, allowance)) == present:
            click.echo("That is allowed already.")
            return
        write_value(file, place, widened)
    for name in EXTENSION_FOLDERS:
        forget_refusals(settings.paths.data / PROGRAMS_FOLDER / name)
    click.echo(f"Written to {file}.")


def _widen_commands(file: Path, allowance: Allowance) -> None:
    """Write what the sandbox of commands allows more, each key by itself."""
    if allowance.is_off:
        raise UsageProblem(
            'Commands keep their sandbox. To end it for everything: `"sandbox": "off"`.'
        )
    for key, more in (
        ("readable", write_paths(allowance.readable)),
        ("writable", write_paths(allowance.writable)),
        ("hosts", allowance.hosts),
    ):
        if more:
            add_to_sandbox(file, key, more)
