"""Tries an MCP server that is to be added: again with what its sandbox refused,
as long as the user allows it.
"""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import click
from msgspec import Struct

from codeloop.app.handlers.project.mcp import open_mcp_servers
from codeloop.app.settings import ProjectSettings
from codeloop.cli.commands.extend.mcp_summary import format_summary
from codeloop.cli.output.streams import can_ask_user
from codeloop.cli.target.project import run_with_local_client
from codeloop.client.local import LocalClient
from codeloop.config.file_entries import resolve_entry
from codeloop.config.forms.allowances import Allowance, widen_entry
from codeloop.config.forms.server_entries import FoundServer
from codeloop.extend.mcp.command_lines import resolve_paths
from codeloop.extend.mcp.definition import ServerDefinition, parse_definition
from codeloop.extend.mcp.mcp_server import McpServer
from codeloop.extend.mcp.transport.agreed_places import list_open_places, note_answer
from codeloop.extend.mcp.transport.failures import ServerFailed
from codeloop.extend.mcp.transport.server_refusals import (
    describe_access,
    find_server_refusals,
    forget_server_refusals,
    make_allow_command,
)
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON, replace
from codeloop.workspace.sandbox.helper_refusals import HelperRefusal

_MOST_TRIES = 6


class TriedServer(Struct, frozen=True):
    """The outcome of a try. `summary`: what it offers; "": it does not work, for `error`.

    `refusals`: what its sandbox refused it; `places`: paths that it names, which it may only read;
    `folder`: its own.
    """

    summary: str
    error: str = ""
    refusals: Sequence[HelperRefusal] = ()
    places: Mapping[str, Path] = {}
    folder: Path = Path()


def try_server(server: FoundServer, settings: ProjectSettings, file: Path) -> FoundServer:
    """Start a server, print what it offers, and return it with what the user has allowed.

    `file`: the one that its entry is written to. Raises CodeloopError if it does not work.
    """
    entry = server.entry
    tries = 0
    while True:
        tries += 1
        tried = _start(server.name, entry, settings, file)
        if tried.summary:
            click.echo(tried.summary)
            return replace(server, entry=_ask_for_places(server.name, entry, tried))
        may_ask = bool(tried.refusals) and tries < _MOST_TRIES and can_ask_user()
        if not may_ask or not _agrees(server.name, tried):
            # It is not in the configuration yet, so there is nothing to change there.
            allowing = f"{make_allow_command(server.name)} "
            raise CodeloopError(tried.error.replace(allowing, "add it with "))
        entry = widen_entry(entry, _make_allowance(tried.refusals))


def _start(name: str, entry: JSON, settings: ProjectSettings, file: Path) -> TriedServer:
    resolved = resolve_entry(
        resolve_paths(entry, settings.project_root.directory), file.parent, os.environ
    )
    definition = parse_definition(name, resolved)
    return run_with_local_client(partial(_connect, definition=definition))


async def _connect(client: LocalClient, definition: ServerDefinition) -> TriedServer:
    """Connect to a server; return a summary of it, or why it does not work."""
    server = await open_mcp_servers(client.project).add(definition)
    name = escape_controls(definition.name)
    dependencies = server.consent.dependencies
    try:
        listing = await server.connect()
    except ServerFailed as error:
        status = server.status
        # Both can be remedied once the server is in the configuration,
        # so they are not a reason not to write it.
        if status.state == "needs_auth":
            return TriedServer(f"{name} wants you to sign in: {status.reason}")
        if status.state == "needs_client_registration":
            reason = escape_controls(status.reason).rstrip(".")
            return TriedServer(f"{name} can't be used yet: {reason}.")
        text = f"{status.reason}\n{server.log.recent_text}"
        refusals = find_server_refusals(definition, dependencies, text)
        return TriedServer("", _describe_failure(server, error), refusals)
    # What it was refused by an earlier try is allowed now.
    forget_server_refusals(definition, dependencies)
    access = describe_access(definition, dependencies)
    return TriedServer(
        format_summary(server.name, listing),
        places=access.places if access is not None else {},
        folder=dependencies.get_server_folder(definition),
    )


def _describe_failure(server: McpServer, error: ServerFailed) -> str:
    # The error quotes the last line already.
    log = server.log.recent_text if server.log.recent_text != server.log.last_line else ""
    log_note = f"\nThe end of its log:\n{escape_controls(log)}" if log else ""
    return f"{escape_controls(str(error))} Nothing was written.{log_note}"


def _agrees(name: str, tried: TriedServer) -> bool:
    """Ask whether a server may have what it was refused."""
    click.echo(tried.error)
    verbs = {"read": "read", "write": "write", "env": "have your variable", "host": "reach"}
    wishes = [
        "run without a sandbox" if each.kind == "off" else f"{verbs[each.kind]} {each.what}"
        for each in tried.refusals
    ]
    question = f"May {name} {', '.join(wishes)}?"
    return click.confirm(escape_controls(question), default=False)


def _make_allowance(refusals: Sequence[HelperRefusal]) -> Allowance:
    def pick(kind: str) -> tuple[str, ...]:
        return tuple(each.what for each in refusals if each.kind == kind)

    return Allowance(pick("read"), pick("write"), pick("host"), pick("env"), bool(pick("off")))


def _ask_for_places(name: str, entry: JSON, tried: TriedServer) -> JSON:
    """Ask whether a server may write where its entry names files; return the entry then."""
    # A remote server names none, and one that waits for a sign-in was not started.
    if not tried.places:
        return entry
    places = list_open_places(tried.folder, tried.places.values())
    if not places:
        return entry
    wanted = [name for name, place in tried.places.items() if place in places]
    shown = escape_controls(", ".join(wanted))
    if can_ask_user():
        question = (
            f"{escape_controls(name)} names {shown}, which it may read. May it also write there?"
        )
        if click.confirm(question, default=False):
            return widen_entry(entry, Allowance(writable=tuple(wanted)))
        # It is not asked about again at the first call.
        note_answer(tried.folder, places, is_agreed=False)
        return entry
    options = " ".join(f"--write {each}" for each in wanted)
    click.echo(
        f"It may only read {shown}. To let it write there: "
        f"{escape_controls(f'{make_allow_command(name)} {options}')}"
    )
    return entry
