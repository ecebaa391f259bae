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


@formatter.command("allow")
@click.argument("name")
@add_allowance_options
def allow_formatter(name: str, **flags: Any) -> None:
    """Let a formatter read, write or reach more than its sandbox does, or end the sandbox.

    Written to your own configuration: files of a project can't allow it.
    """
    entries = load_settings().config.formatter
    entry = entries.get(name) if isinstance(entries, dict) else None
    _write("formatter", name, entry.sandbox if entry is not None else True, Allowance(**flags))


@click.command("allow")
@click.argument("name")
@add_allowance_options
def allow_server(name: str, **flags: Any) -> None:
    """Let a language server read, write or reach more than its sandbox does, or end the sandbox.

    Written to your own configuration: files of a project can't allow it.
    """
    entries = load_settings().config.lsp
    entry = entries.get(name) if isinstance(entries, dict) else None
    _write("lsp", name, entry.sandbox if entry is not None else True, Allowance(**flags))


def describe_sandbox(sandbox: bool | ProgramSandboxConfig | None) -> JSON | bool | None:
    """Return a value of `sandbox` as a configuration file has it."""
    if sandbox is None or isinstance(sandbox, bool):
        return sandbox
    names = ("readable", "writable", "network", "hosts")
    return {name: value for name in names if (value := getattr(sandbox, name))}


def _write(
    section: Literal["formatter", "lsp"],
    name: str,
    sandbox: bool | ProgramSandboxConfig,
    allowance: Allowance,
) -> None:
    if allowance.is_empty:
        raise UsageProblem("Say what it may: --read PATH, --write PATH, --host HOST, --off.")
    file = choose_entry_file(load_settings().paths, None)
    widened = widen_sandbox(describe_sandbox(sandbox), allowance)
    write_value(file, (section, name, "sandbox"), widened)
    click.echo(f"{escape_controls(name)}: written to {file}.")
