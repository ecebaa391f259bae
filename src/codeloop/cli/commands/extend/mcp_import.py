"""`codeloop mcp import`: copies MCP servers from the configuration of other programs,
each if the user says so.
"""

import click

from codeloop.cli.output.streams import can_ask_user
from codeloop.cli.target.project import load_settings
from codeloop.config.file_entries import choose_entry_file, write_entry
from codeloop.config.forms.server_entries import FoundServer
from codeloop.extend.mcp.command_lines import resolve_paths
from codeloop.extend.mcp.definition import LocalDefinition, RemoteDefinition, parse_definition
from codeloop.extend.mcp.foreign_servers import find_foreign_servers
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.errors import UsageProblem

# Characters of a command or an address on a line.
_LINE_CHARS = 160


@click.command("import")
@click.argument("names", nargs=-1)
@click.option("--all", "take_all", is_flag=True, help="Take every server that is found.")
def import_servers(names: tuple[str, ...], *, take_all: bool) -> None:
    """Take over MCP servers from .mcp.json and from the files of Claude, Cursor and VS Code.

    Names the servers that it finds, and asks about each; NAMES and --all answer for you.
    Nothing is started.
    """
    settings = load_settings()
    found_servers, problems = find_foreign_servers(
        settings.paths, settings.project_root.root, settings.project_root.directory
    )
    for line in problems:
        click.echo(f"codeloop: {escape_controls(line)}", err=True)
    if unknown := set(names) - {server.name for server in found_servers}:
        raise UsageProblem(f"Not found: {', '.join(sorted(map(escape_controls, unknown)))}.")
    file = choose_entry_file(settings.paths, None)
    names_in_use = set(settings.config.mcp)
    for server in found_servers:
        if names and server.name not in names:
            continue
        line = f"{escape_controls(server.name)}: {_describe_launch(server)} (from {server.source})"
        if server.problem:
            click.echo(f"{line}: left out, {server.problem}")
        # Also when two of the files define a server of this name: the first one is taken.
        elif server.name in names_in_use:
            click.echo(f"{line}: there is one of that name already")
        elif (
            take_all
            or names
            or (can_ask_user() and click.confirm(f"{line}: add it?", default=False))
        ):
            write_entry(
                file,
                "mcp",
                server.name,
                resolve_paths(server.entry, settings.project_root.directory),
            )
            names_in_use.add(server.name)
            click.echo(f"{line}: written to {file}")
        else:
            click.echo(line)
    if not found_servers:
        click.echo(
            "No MCP server is configured in the files of Claude, Cursor or VS Code, nor in .mcp.json.",
            err=True,
        )


def _describe_launch(server: FoundServer) -> str:
    match parse_definition(server.name, server.entry).config:
        case LocalDefinition(command=command):
            return one_line(" ".join(command), _LINE_CHARS)
        case RemoteDefinition(url=url):
            return one_line(url, _LINE_CHARS)
        case _:
            return "?"
