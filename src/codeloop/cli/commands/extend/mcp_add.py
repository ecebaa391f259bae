"""`codeloop mcp add`: tries MCP servers, and writes those that work to the configuration."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from codeloop.app.settings import ProjectSettings
from codeloop.cli.commands.extend.mcp_allow import add_allowance_options
from codeloop.cli.commands.extend.mcp_try import try_server
from codeloop.cli.target.project import load_settings
from codeloop.config.file_entries import choose_entry_file, write_entries
from codeloop.config.forms.allowances import Allowance, widen_entry
from codeloop.config.forms.server_entries import FoundServer
from codeloop.config.trust.store import trust_changed_file
from codeloop.extend.mcp.command_lines import resolve_paths, split_command_line
from codeloop.extend.mcp.definition import parse_definition
from codeloop.extend.mcp.snippets import looks_like_json, parse_snippet, reject_placeholders
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.errors import UsageProblem
from codeloop.schema.wire import JSON, replace

_ALLOWANCE_FLAGS = ("readable", "writable", "hosts", "is_off")


class AddOptions(Struct, frozen=True):
    """The options of `add`."""

    variables: tuple[str, ...]
    headers: tuple[str, ...]
    cwd: str | None
    timeout: int | None
    for_project: bool
    no_try: bool


# Options that `add` does not know are those of the server's command.
@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("launch_words", metavar="[WHAT]...", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--env",
    "variables",
    metavar="NAME[=VALUE]",
    multiple=True,
    help="Variable for the program; without a value, yours. Repeatable.",
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
@add_allowance_options
@click.option("--no-try", is_flag=True, help="Write it without trying it.")
def add(name: str, launch_words: tuple[str, ...], **flags: Any) -> None:
    """Add an MCP server: NAME, then its address, or `--` and the command that starts it.

    The JSON that a README gives for other programs is taken as well, with a NAME or without.
    The server is tried first, and only written to the configuration when it works;
    of several, all or none. What its sandbox refuses it is named, and you are asked about it.
    """
    allowance = Allowance(**{key: flags.pop(key) for key in _ALLOWANCE_FLAGS})
    options = AddOptions(**flags)
    servers = _read_servers(name, launch_words, options)
    settings = load_settings()
    file = choose_entry_file(settings.paths, settings.project_root if options.for_project else None)
    for server in servers:
        _check_server(server, settings)
        for note in server.notes:
            click.echo(f"{escape_controls(server.name)}: {escape_controls(note)}", err=True)
    servers = [replace(each, entry=_allow(each.entry, allowance)) for each in servers]
    if not options.no_try:
        servers = [try_server(each, settings, file) for each in servers]
    # All were tried before the first is written, so the same words can be given again
    # once a failing one works.
    _write_servers(servers, settings, file, for_project=options.for_project)


def _allow(entry: JSON, allowance: Allowance) -> JSON:
    """Return an entry with what the options allow; a remote server has no sandbox."""
    if entry["type"] == "remote" and not allowance.is_empty:
        raise UsageProblem("--read, --write, --host and --off are for a program, not an address.")
    return widen_entry(entry, allowance)


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
    for server in servers:
        if server.allowed:
            rules = ", ".join(f'"{server.name}_{each}": "allow"' for each in server.allowed)
            click.echo(
                f"Its entry allows tools without a question. Here that is a rule of your own: "
                f'"permission": {{{escape_controls(rules)}}}'
            )
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
        if separator == "=" and not found_separator and name.isidentifier():
            found_separator, value = "=", f"{{env:{name}}}"
        if not found_separator or not name.strip():
            raise UsageProblem(
                f"{pair!r} has no {'name' if found_separator else 'value'}: write NAME{separator}VALUE."
            )
        # Spaces around a header mean nothing; those of a variable are part of its value.
        values[name.strip()] = value.strip() if separator == ":" else value
    return values
