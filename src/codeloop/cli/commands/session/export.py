"""`codeloop export`: a session as JSON."""

from pathlib import Path

import click
import msgspec

from codeloop.cli.group import completed
from codeloop.cli.target.named import find
from codeloop.cli.target.opened import with_client
from codeloop.client.client import Client
from codeloop.client.local import LocalClient
from codeloop.kit.terminal_text import inert_json
from codeloop.schema.api.session_requests import ListMessages
from codeloop.schema.message import Session
from codeloop.schema.operation import SESSION_MESSAGES


@click.command()
@click.argument("name", required=False, shell_complete=completed("session"))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file, not to stdout.")
def export(name: str | None, output: Path | None) -> None:
    """Write a session (this directory's latest, or the one NAME means) as JSON: its info, its messages with parts."""

    async def command(client: LocalClient) -> bytes:
        return await exported(client, await find(client, name))

    data = with_client(command)
    if output is None:
        click.echo(inert_json(data.decode()))
        return
    try:
        output.write_bytes(data + b"\n")
    except OSError as error:
        raise click.FileError(str(output), hint=error.strerror) from error


async def exported(client: Client, session: Session) -> bytes:
    """Return a session as the JSON that `codeloop import` reads."""
    messages = await client.call(SESSION_MESSAGES, ListMessages(session_id=session.id))
    return msgspec.json.format(msgspec.json.encode({"info": session, "messages": messages}), indent=2)
