"""`codeloop mcp`: lists, tries and removes MCP servers, and signs in at them."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import click

from codeloop.app.handlers.project.mcp import open_mcp_servers
from codeloop.app.project import Project
from codeloop.app.settings import ProjectSettings
from codeloop.cli.commands.extend.mcp_add import add
from codeloop.cli.commands.extend.mcp_allow import allow
from codeloop.cli.commands.extend.mcp_import import import_servers
from codeloop.cli.commands.extend.mcp_serve import serve
from codeloop.cli.commands.extend.mcp_summary import LINE_CHARS, format_summary
from codeloop.cli.group import CommandGroup
from codeloop.cli.options import JSON_OPTION
from codeloop.cli.output.columns import align_columns
from codeloop.cli.output.print_json import print_json
from codeloop.cli.target.project import load_settings, run_with_local_client
from codeloop.config.file_entries import remove_server
from codeloop.config.trust.store import trust_changed_file
from codeloop.extend.mcp.definition import LocalDefinition, RemoteDefinition, ServerDefinition
from codeloop.extend.mcp.mcp_server import McpServer, is_sandboxed
from codeloop.extend.mcp.mcp_servers import McpServers
from codeloop.extend.mcp.sign_in.background_sign_in import BackgroundSignIn
from codeloop.extend.mcp.sign_in.callback import read_pasted_line
from codeloop.extend.mcp.transport.failures import ServerFailed
from codeloop.extend.mcp.transport.server_refusals import describe_access, make_allow_command
from codeloop.kit.desktop_programs import open_browser
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.wire import JSON
from codeloop.workspace.sandbox.helper_refusals import describe_refusals

T = TypeVar("T")
# Whether a server runs in a sandbox; None: it is remote.
_SANDBOX_WORDS = {True: "yes", False: "no", None: "-"}


@click.group(cls=CommandGroup)
def mcp() -> None:
    """Add, list, try and remove MCP servers."""


# First: `--help` shows the commands in this order.
mcp.add_command(add)


@mcp.command("list")
@JSON_OPTION
def list_servers(*, as_json: bool) -> None:
    """List the servers, and what each is doing. Starts none of them."""
    rows = _run_in_project(_describe_servers)
    if as_json:
        print_json(rows)
    elif rows:
        cells = [
            (
                row["name"],
                row["state"],
                str(row["tools"]),
                _SANDBOX_WORDS[row["sandbox"]],
                one_line(row["how"], 60),
                one_line(row["reason"], 400),
            )
            for row in rows
        ]
        click.echo(
            align_columns(
                [("name", "state", "tools", "sandbox", "command or address", "reason"), *cells]
            )
        )
        for row in rows:
            for line in (row["may"], row["refused"]):
                if line:
                    click.echo(f"{row['name']}: {one_line(line, 400)}")
    else:
        click.echo(
            "No MCP server is configured. Add one: codeloop mcp add NAME -- COMMAND", err=True
        )


async def _describe_servers(project: Project) -> list[JSON]:
    """Return a row for each configured server."""
    if not project.settings.config.mcp:
        return []
    servers = open_mcp_servers(project)
    # Whether sandboxes work here is only known after one was made.
    if any(is_sandboxed(server) for server in servers.by_name.values()):
        await servers.program_sandboxes.probe()
    return [
        {
            "name": escape_controls(server.name),
            "state": server.status.state,
            "reason": server.status.reason,
            "tools": len(server.listing.tools) if server.listing is not None else "-",
            "sandbox": is_sandboxed(server),
            "how": _describe_launch(server.definition),
            **_describe_access(server),
        }
        for server in servers.by_name.values()
    ]


def _describe_access(server: McpServer) -> JSON:
    """Return what a server may do beyond the usual, and what it was refused; "": nothing."""
    access = describe_access(server.definition, server.consent.dependencies)
    if access is None:
        return {"may": "", "refused": ""}
    may = access.describe() if access.writable or access.readable else ""
    home = Path(server.consent.dependencies.environment.get("HOME") or "/nonexistent")
    refused = (
        describe_refusals(access.refused, make_allow_command(server.name), home)
        if access.refused
        else ""
    )
    return {"may": escape_controls(may), "refused": escape_controls(refused)}


def _describe_launch(definition: ServerDefinition) -> str:
    match definition.config:
        case LocalDefinition(command=command):
            return " ".join(command)
        case RemoteDefinition(url=url):
            return url
        case _:
            return "-"


@mcp.command()
@click.argument("name")
def remove(name: str) -> None:
    """Remove a server from the configuration file that it is written in."""
    settings = load_settings()
    file = _find_file(settings, name)
    remove_server(file, name)
    if file.is_relative_to(settings.project_root.root) and settings.trusted:
        trust_changed_file(
            settings.paths, settings.project_root.root, settings.project_root.directory, file
        )
    click.echo(f"Removed {escape_controls(name)} from {file}.")


def _find_file(settings: ProjectSettings, name: str) -> Path:
    """Return the configuration file that set a value of a server last. Raises UsageProblem."""
    if name not in settings.config.mcp:
        raise UsageProblem(f"There is no server {escape_controls(name)!r}. {_list_names(settings)}")
    return Path(settings.loaded.list_origins(("mcp", name))[-1].layer.source)


def _list_names(settings: ProjectSettings) -> str:
    names = ", ".join(map(escape_controls, settings.config.mcp))
    return f"There are: {names}." if names else "None is configured."


@mcp.command()
@click.argument("name")
def debug(name: str) -> None:
    """Start a server, and show what it offers, what has changed since it was agreed to,
    and its log.
    """
    settings = load_settings()
    if name not in settings.config.mcp:
        raise UsageProblem(f"There is no server {escape_controls(name)!r}. {_list_names(settings)}")
    _run_in_project(lambda project: _show_server(open_mcp_servers(project).by_name[name]))


async def _show_server(server: McpServer) -> None:
    """Start a server, and print its definition, what it offers, changes and its log.
    Raises CodeloopError.
    """
    click.echo(escape_controls(server.definition.text).rstrip())
    needs = await server.find_needs()
    if needs:
        click.echo("You have not agreed to this yet, so a call asks first:")
        click.echo(escape_controls(str(needs[0].metadata["diff"])).rstrip())
    try:
        listing = await server.connect()
    except ServerFailed as error:
        _show_log(server)
        raise CodeloopError(escape_controls(str(error))) from error
    sandbox_note = ", without a sandbox" if is_sandboxed(server) is False else ""
    click.echo(
        f"state: {server.status.state}, over {listing.transport}, protocol {listing.protocol}{sandbox_note}"
    )
    for line in _describe_access(server).values():
        if line:
            click.echo(f"sandbox: {line}")
    click.echo(format_summary(server.name, listing))
    for tool in listing.tools:
        click.echo(f"- {escape_controls(tool.name)}: {one_line(tool.description, LINE_CHARS)}")
    for resource in listing.resources:
        click.echo(
            f"- resource {escape_controls(resource.uri)}: {one_line(resource.name, LINE_CHARS)}"
        )
    for prompt in listing.prompts:
        click.echo(
            f"- prompt {escape_controls(prompt.name)}: {one_line(prompt.description, LINE_CHARS)}"
        )
    for problem in listing.problems:
        click.echo(f"left out: {one_line(problem, LINE_CHARS)}")
    if server.pending_patch:
        click.echo("Its tools have changed since they were agreed to, so a call asks first:")
        click.echo(escape_controls(server.pending_patch).rstrip())
    _show_log(server)


def _show_log(server: McpServer) -> None:
    if server.log.recent_text:
        click.echo(
            f"The end of its log ({server.log.file}):\n{escape_controls(server.log.recent_text)}"
        )


@mcp.command()
@click.argument("name")
@click.option("--no-browser", is_flag=True, help="Only print the address to open.")
def auth(name: str, *, no_browser: bool) -> None:
    """Sign in at a remote server that asks for it, and connect it.

    Opens the server's page in a browser. Where there is none, open the address on any machine,
    and paste where it leads.
    """
    click.echo(
        _run_in_project(
            lambda project: _sign_in(
                _find_server(project, name), open_mcp_servers(project), no_browser=no_browser
            )
        )
    )


async def _sign_in(server: McpServer, servers: McpServers, *, no_browser: bool) -> str:
    """Sign in at a server and connect it; return what to tell the user. Raises CodeloopError."""
    sign_in = servers.begin_sign_in(server)
    url = await sign_in.wait_for_address()
    is_open = not no_browser and await open_browser(url)
    click.echo(
        f"{'If no browser opens, open' if is_open else 'Open'} this address to sign in:\n{escape_controls(url)}"
    )
    if sys.stdin.isatty():
        click.echo(
            "If that browser is on another machine, paste the address that it ends at (or the code) here:"
        )
        await _read_pasted_code(sign_in)
    await sign_in.wait()
    status = server.status
    if status.state != "connected" or server.listing is None:
        raise CodeloopError(
            f"Signed in at {escape_controls(server.name)}, but it can't be used: "
            f"{escape_controls(status.reason).rstrip('.')}."
        )
    return f"Signed in. {format_summary(server.name, server.listing)}"


async def _read_pasted_code(sign_in: BackgroundSignIn) -> None:
    """Read lines from the terminal until one completes the sign-in,
    or the browser has completed it.
    """
    end_of_sign_in = asyncio.ensure_future(sign_in.wait())
    while not end_of_sign_in.done():
        line = asyncio.ensure_future(read_pasted_line())
        await asyncio.wait({end_of_sign_in, line}, return_when=asyncio.FIRST_COMPLETED)
        if not line.done():
            line.cancel()
            return
        # The end of the input, or an empty line: the caller waits for the browser alone.
        if not line.result():
            return
        try:
            sign_in.paste(line.result())
        except CodeloopError as error:
            click.echo(f"{escape_controls(str(error)).capitalize()}.", err=True)
            continue
        await asyncio.wait({end_of_sign_in})


@mcp.command()
@click.argument("name")
def logout(name: str) -> None:
    """Forget a sign-in at a server, and have its provider end it."""
    outcome = _run_in_project(
        lambda project: open_mcp_servers(project).sign_out(_find_server(project, name))
    )
    if outcome is None:
        raise CodeloopError(f"You are not signed in at {escape_controls(name)}.")
    click.echo(escape_controls(outcome))


def _find_server(project: Project, name: str) -> McpServer:
    server = open_mcp_servers(project).by_name.get(name)
    if server is None:
        raise UsageProblem(
            f"There is no server {escape_controls(name)!r}. {_list_names(project.settings)}"
        )
    return server


def _run_in_project(command: Callable[[Project], Awaitable[T]]) -> T:
    """Open the current directory's project, run `command` on it,
    and close it with the servers that were started.
    """
    return run_with_local_client(lambda client: command(client.project))


mcp.add_command(allow)
mcp.add_command(import_servers)
mcp.add_command(serve)
