"""`codeloop mcp`: adds, lists, tries and removes MCP servers, and signs in at them."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import Struct

from codeloop.app.handlers.project.mcp import open_mcp_servers
from codeloop.app.project import Project
from codeloop.app.settings import ProjectSettings
from codeloop.cli.commands.extend.mcp_import import import_servers
from codeloop.cli.commands.extend.mcp_serve import serve
from codeloop.cli.group import CommandGroup
from codeloop.cli.options import JSON_OPTION
from codeloop.cli.output.columns import align_columns
from codeloop.cli.output.print_json import print_json
from codeloop.cli.target.project import load_settings, run_with_local_client
from codeloop.config.file_entries import (
    choose_entry_file,
    remove_server,
    resolve_entry,
    write_entries,
)
from codeloop.config.forms.server_entries import FoundServer
from codeloop.config.trust.store import trust_changed_file
from codeloop.extend.mcp.cache.listing import Listing
from codeloop.extend.mcp.command_lines import resolve_paths, split_command_line
from codeloop.extend.mcp.definition import (
    LocalDefinition,
    RemoteDefinition,
    ServerDefinition,
    parse_definition,
)
from codeloop.extend.mcp.mcp_server import McpServer, is_sandboxed
from codeloop.extend.mcp.mcp_servers import McpServers
from codeloop.extend.mcp.sign_in.background_sign_in import BackgroundSignIn
from codeloop.extend.mcp.sign_in.callback import read_pasted_line
from codeloop.extend.mcp.snippets import looks_like_json, parse_snippet, reject_placeholders
from codeloop.extend.mcp.transport.failures import ServerFailed
from codeloop.kit.desktop_programs import open_browser
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.wire import JSON

T = TypeVar("T")
# Characters of a description or a list of names on a line.
_LINE_CHARS = 100
# Whether a server runs in a sandbox; None: it is remote.
_SANDBOX_WORDS = {True: "yes", False: "no", None: "-"}


class AddOptions(Struct, frozen=True):
    """The options of `add`."""

    variables: tuple[str, ...]
    headers: tuple[str, ...]
    cwd: str | None
    timeout: int | None
    for_project: bool
    no_try: bool


@click.group(cls=CommandGroup)
def mcp() -> None:
    """Add, list, try and remove MCP servers."""


# Options that `add` does not know are those of the server's command.
@mcp.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("launch_words", metavar="[WHAT]...", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--env",
    "variables",
    metavar="NAME=VALUE",
    multiple=True,
    help="Variable for the program. Repeatable.",
)
@click.option(
    "--header",
    "headers",
    metavar="NAME: VALUE",
    multiple=True,
    help="Header for the address. Repeatable.",
)
@click.option(
    "--cwd",
    metavar="DIRECTORY",
    help="Directory that the program works in. [default: one of its own]",
)
@click.option(
    "--timeout", type=click.IntRange(1), metavar="MS", help="How long each request may take."
)
@click.option(
    "--project",
    "for_project",
    is_flag=True,
    help="Write it to this project's file instead of your own.",
)
@click.option("--no-try", is_flag=True, help="Write it without trying it.")
def add(name: str, launch_words: tuple[str, ...], **flags: Any) -> None:
    """Add an MCP server: NAME, then its address, or `--` and the command that starts it.

    The JSON that a README gives for other programs is taken as well, with a NAME or without.
    The server is tried first, and only written to the configuration when it works;
    of several, all or none.
    """
    options = AddOptions(**flags)
    servers = _read_servers(name, launch_words, options)
    settings = load_settings()
    file = choose_entry_file(settings.paths, settings.project_root if options.for_project else None)
    for server in servers:
        _check_server(server, settings)
    for server in [] if options.no_try else servers:
        entry = resolve_entry(
            resolve_paths(server.entry, settings.project_root.directory), file.parent, os.environ
        )
        definition = parse_definition(server.name, entry)
        click.echo(_run_in_project(partial(_try_server, definition=definition)))
    # All were tried before the first is written, so the same words can be given again
    # once a failing one works.
    _write_servers(servers, settings, file, for_project=options.for_project)


def _read_servers(
    name: str, launch_words: tuple[str, ...], options: AddOptions
) -> list[FoundServer]:
    """Return the servers that the arguments of `add` describe: as JSON,
    or as an address or a command.
    """
    # JSON names its servers itself, so it may stand in the place of the name.
    if not launch_words and looks_like_json(name):
        return parse_snippet(name)
    if len(launch_words) == 1 and looks_like_json(launch_words[0]):
        return parse_snippet(launch_words[0], name)
    return [FoundServer(name, Path(), _make_entry(name, launch_words, options))]


def _check_server(server: FoundServer, settings: ProjectSettings) -> None:
    """Raise UsageProblem if a server can't be added: its entry is not valid,
    or its name is taken.
    """
    name = escape_controls(server.name)
    if server.problem:
        raise UsageProblem(f"{name} can't be added: {escape_controls(server.problem)}.")
    reject_placeholders(server.name, server.entry)
    if problem := parse_definition(server.name, server.entry).problem:
        raise UsageProblem(f"{escape_controls(problem)}.")
    if server.name in settings.config.mcp:
        raise UsageProblem(
            f"There is a server {name!r} already. Remove it first: codeloop mcp remove {name}"
        )


def _write_servers(
    servers: Sequence[FoundServer], settings: ProjectSettings, file: Path, *, for_project: bool
) -> None:
    """Write the entries of servers to a configuration file at once, and say so.
    Raises CodeloopError.
    """
    # A project's file is for others' machines, too, so its paths stay relative.
    directory = None if for_project else settings.project_root.directory
    entries = {
        each.name: resolve_paths(each.entry, directory) if directory else each.entry
        for each in servers
    }
    write_entries(file, "mcp", entries)
    # The user made the change, so it must not end the trust.
    if for_project and settings.trusted:
        trust_changed_file(
            settings.paths, settings.project_root.root, settings.project_root.directory, file
        )
    click.echo(f"Written to {file}.")
    if for_project and not settings.trusted:
        click.echo(
            "This directory is not trusted, so its servers are ignored. Trust it: codeloop trust"
        )


def _make_entry(name: str, launch_words: Sequence[str], options: AddOptions) -> JSON:
    """Return the entry of the configuration for an address or a command. Raises UsageProblem."""
    variables, headers = _parse_pairs(options.variables, "="), _parse_pairs(options.headers, ":")
    entry: JSON
    if len(launch_words) == 1 and launch_words[0].startswith(("http://", "https://")):
        if variables or options.cwd:
            raise UsageProblem(
                "--env and --cwd are for a program. For an address there is --header."
            )
        entry = {"type": "remote", "url": launch_words[0]}
        if headers:
            entry["headers"] = headers
    else:
        # The command may begin with variables, as in a shell: `KEY=value npx server`.
        words, leading_variables = split_command_line(name, launch_words)
        if headers:
            raise UsageProblem("--header is for an address. For a program there is --env.")
        entry = {"type": "local", "command": words}
        if leading_variables or variables:
            entry["environment"] = {**leading_variables, **variables}
    if options.timeout:
        entry["timeout"] = options.timeout
    if options.cwd:
        entry["cwd"] = options.cwd
    return entry


def _parse_pairs(pairs: Sequence[str], separator: str) -> dict[str, str]:
    """Return the values by name of options `NAME=VALUE` or `NAME: VALUE`. Raises UsageProblem."""
    values: dict[str, str] = {}
    for pair in pairs:
        name, found_separator, value = pair.partition(separator)
        if not found_separator or not name.strip():
            raise UsageProblem(
                f"{pair!r} has no {'name' if found_separator else 'value'}: write NAME{separator}VALUE."
            )
        # Spaces around a header mean nothing; those of a variable are part of its value.
        values[name.strip()] = value.strip() if separator == ":" else value
    return values


async def _try_server(project: Project, definition: ServerDefinition) -> str:
    """Connect to a server, and return a summary of it. Raises CodeloopError if it does not work."""
    server = await open_mcp_servers(project).add(definition)
    try:
        listing = await server.connect()
    except ServerFailed as error:
        status = server.status
        # Both can be remedied once the server is in the configuration,
        # so they are not a reason not to write it.
        if status.state == "needs_auth":
            return f"{escape_controls(definition.name)} wants you to sign in: {status.reason}"
        if status.state == "needs_client_registration":
            reason = escape_controls(status.reason).rstrip(".")
            return f"{escape_controls(definition.name)} can't be used yet: {reason}."
        # The error quotes the last line already.
        log = server.log.recent_text if server.log.recent_text != server.log.last_line else ""
        log_note = f"\nThe end of its log:\n{escape_controls(log)}" if log else ""
        raise CodeloopError(
            f"{escape_controls(str(error))} Nothing was written.{log_note}"
        ) from error
    return _format_summary(server.name, listing)


def _format_summary(name: str, listing: Listing) -> str:
    """Return a line that names the tools of a server,
    and a warning if hidden characters are in their texts.
    """
    server_note = f" ({escape_controls(listing.server)})" if listing.server else ""
    names = one_line(", ".join(tool.name for tool in listing.tools), _LINE_CHARS)
    count = _format_count(len(listing.tools), "tool")
    lines = [f"{escape_controls(name)}{server_note} works: {count}{': ' if names else ''}{names}"]
    if tool_names := _find_hidden_characters(listing):
        lines.append(
            f"Beware: hidden characters in what it says of {', '.join(tool_names)}; `mcp debug` shows them."
        )
    return "\n".join(lines)


def _find_hidden_characters(listing: Listing) -> list[str]:
    """Return the tools whose names or descriptions hold characters that nobody sees."""
    # They may hold instructions for the model.
    return [
        escape_controls(tool.name)
        for tool in listing.tools
        if any(escape_controls(text) != text for text in (tool.name, tool.description))
    ]


def _format_count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


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
        }
        for server in servers.by_name.values()
    ]


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
    click.echo(_format_summary(server.name, listing))
    for tool in listing.tools:
        click.echo(f"- {escape_controls(tool.name)}: {one_line(tool.description, _LINE_CHARS)}")
    for resource in listing.resources:
        click.echo(
            f"- resource {escape_controls(resource.uri)}: {one_line(resource.name, _LINE_CHARS)}"
        )
    for prompt in listing.prompts:
        click.echo(
            f"- prompt {escape_controls(prompt.name)}: {one_line(prompt.description, _LINE_CHARS)}"
        )
    for problem in listing.problems:
        click.echo(f"left out: {one_line(problem, _LINE_CHARS)}")
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
    return f"Signed in. {_format_summary(server.name, server.listing)}"


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


mcp.add_command(import_servers)
mcp.add_command(serve)
