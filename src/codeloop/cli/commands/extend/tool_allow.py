"""`codeloop formatter allow` and `codeloop lsp allow`: let a formatter or a language server do more
than its sandbox does.
"""

from typing import Any, Literal

import click

from codeloop.cli.commands.extend.mcp_allow import add_allowance_options
from codeloop.cli.group import CommandGroup
from codeloop.cli.target.project import load_settings
from codeloop.config.file_entries import choose_entry_file, read_value, write_value
from codeloop.config.forms.allowances import Allowance, widen_sandbox
from codeloop.kit.text.suggest import find_similar, format_suggestion
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.lsp.servers.server_row import load_server_rows
from codeloop.schema.errors import UsageProblem
from codeloop.workspace.format.formatter_rows import FORMATTER_ROWS


@click.group(cls=CommandGroup)
def formatter() -> None:
    """Let formatters do more than their sandbox does."""


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
        rows = FORMATTER_ROWS if section == "formatter" else load_server_rows()
        known = {row.name for row in rows}.union(entries if isinstance(entries, dict) else ())
        shown = escape_controls(name)
        if name not in known:
            similar = format_suggestion(find_similar(name, sorted(known)))
            raise UsageProblem(f"There is no {noun} {shown!r}.{similar}")
        file, place = choose_entry_file(settings.paths, None), (section, name, "sandbox")
        present = read_value(file, place)
        if (widened := widen_sandbox(present, allowance, network="off")) == present:
            click.echo(f"{shown}: that is allowed already.")
            return
        write_value(file, place, widened)
        click.echo(f"{shown}: written to {file}.")

    return allow


formatter.add_command(_make_command("formatter", "formatter"))
allow_server = _make_command("lsp", "language server")
