"""`codeloop formatter allow` and `codeloop lsp allow`: let a formatter or a language server do more
than its sandbox does.
"""

from typing import Any, Literal

import click

from codeloop.cli.commands.extend.mcp_allow import add_allowance_options
from codeloop.cli.group import CommandGroup
from codeloop.cli.target.project import load_settings
from codeloop.config.file_entries import choose_entry_file, write_value
from codeloop.config.forms.allowances import Allowance, widen_sandbox
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.config import ProgramSandboxConfig
from codeloop.schema.errors import UsageProblem
from codeloop.schema.wire import JSON


@click.group(cls=CommandGroup)
def formatter() -> None:
    """Let formatters do more than their sandbox does."""


def describe_sandbox(sandbox: bool | ProgramSandboxConfig | None) -> JSON | bool | None:
    """Return a value of `sandbox` as a configuration file has it."""
    if sandbox is None or isinstance(sandbox, bool):
        return sandbox
    names = ("readable", "writable", "network", "hosts")
    return {name: value for name in names if (value := getattr(sandbox, name))}


def _make_command(section: Literal["formatter", "lsp"], noun: str) -> click.Command:
    """Make the command `allow` for the entries of a section."""

    @click.command(
        "allow",
        help=f"Let a {noun} read, write or reach more than its sandbox does, or end the sandbox.\n\n"
        "Written to your own configuration: files of a project can't allow it.",
    )
    @click.argument("name")
    @add_allowance_options
    def allow(name: str, **flags: Any) -> None:
        allowance = Allowance(**flags)
        if allowance.is_empty:
            raise UsageProblem("Say what it may: --read PATH, --write PATH, --host HOST, --off.")
        settings = load_settings()
        config = settings.config
        entries = config.formatter if section == "formatter" else config.lsp
        entry = entries.get(name) if isinstance(entries, dict) else None
        present = describe_sandbox(entry.sandbox) if entry is not None else None
        file = choose_entry_file(settings.paths, None)
        write_value(file, (section, name, "sandbox"), widen_sandbox(present, allowance))
        click.echo(f"{escape_controls(name)}: written to {file}.")

    return allow


formatter.add_command(_make_command("formatter", "formatter"))
allow_server = _make_command("lsp", "language server")
