"""`codeloop plugin allow`: lets the user's extensions and hooks do more than their sandbox does."""

from typing import Any

import click

from codeloop.app.extensions.hooks import PROGRAMS_FOLDER
from codeloop.cli.commands.extend.mcp_allow import add_allowance_options
from codeloop.cli.target.project import load_settings
from codeloop.config.file_entries import choose_entry_file, write_value
from codeloop.config.forms.allowances import Allowance, widen_sandbox
from codeloop.extend.host.host_callbacks import HOSTS_FOLDER
from codeloop.schema.errors import UsageProblem
from codeloop.schema.wire import JSON
from codeloop.workspace.sandbox.helper_refusals import forget_refusals

EXTENSION_FOLDERS = ("hooks", f"{HOSTS_FOLDER}-python", f"{HOSTS_FOLDER}-javascript")
"""The names of the own folders of the programs that have these sandboxes."""


@click.command("allow")
@add_allowance_options
def allow(**flags: Any) -> None:
    """Let your plugins, own tools and hooks read or write more than their sandbox does.

    Written to `sandbox.extensions` of your configuration; counts from the next start. Those of a
    project run where commands run.
    """
    allowance = Allowance(**flags)
    if allowance.is_empty:
        raise UsageProblem("Say what they may: --read PATH, --write PATH, --host HOST, --off.")
    settings = load_settings()
    file = choose_entry_file(settings.paths, None)
    extensions = settings.config.sandbox.extensions
    present: JSON | bool | None = (
        {
            key: value
            for key in ("readable", "writable", "network", "hosts")
            if (value := getattr(extensions, key))
        }
        if extensions is not None and not isinstance(extensions, bool)
        else extensions
    )
    write_value(file, ("sandbox", "extensions"), widen_sandbox(present, allowance))
    for name in EXTENSION_FOLDERS:
        forget_refusals(settings.paths.data / PROGRAMS_FOLDER / name)
    click.echo(f"Written to {file}.")
