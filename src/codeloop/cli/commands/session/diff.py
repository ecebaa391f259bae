"""`codeloop session diff`: what a session changed in files."""

import sys

import click
import msgspec

from codeloop.cli.group import completed
from codeloop.cli.output.style import Look, has_colour, paint
from codeloop.cli.target import named
from codeloop.cli.target.named import find
from codeloop.cli.target.opened import with_client
from codeloop.client.local import LocalClient
from codeloop.kit.terminal_text import inert, inert_json
from codeloop.schema.api.session_requests import SessionDiffQuery
from codeloop.schema.message import SnapshotFileDiff
from codeloop.schema.operation import SESSION_DIFF

LOOKS: dict[str, Look] = {"+": "green", "-": "red", "@": "cyan"}


@click.command()
@click.argument("name", required=False, shell_complete=completed("session"))
@click.option("--at", metavar="MESSAGE", help="Only the turn of this prompt: its id, or N for prompt N.")
@click.option("--stat", is_flag=True, help="Only the files, with how many lines changed.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def diff(name: str | None, at: str | None, *, stat: bool, as_json: bool) -> None:
    """Show what a session (this directory's latest, or the one NAME means) changed in files, without what is undone.

    What others did to the files is not in it, before or after.
    """

    async def command(client: LocalClient) -> list[SnapshotFileDiff]:
        session = await find(client, name)
        if at is None:
            return await client.call(SESSION_DIFF, SessionDiffQuery(session_id=session.id, whole=True))
        message = await named.message_at(client, session, at)
        return await client.call(SESSION_DIFF, SessionDiffQuery(session_id=session.id, message_id=message.info.id))

    found = with_client(command)
    if as_json:
        click.echo(inert_json(msgspec.json.encode(found).decode()))
    elif not found:
        click.echo("No file was changed.", err=True)
    for each in () if as_json else found:
        click.echo(_line(each) if stat else _patch(each))


def _line(each: SnapshotFileDiff) -> str:
    return f"{each.status or 'modified':<8}  +{each.additions} -{each.deletions}  {inert(each.file or '')}"


def _patch(each: SnapshotFileDiff) -> str:
    """Return the patch; of a file that has none to show (binary, too large, only its mode) one line."""
    if not each.patch:
        return f"# {_line(each)}"
    colour = has_colour(sys.stdout)
    lines = inert(each.patch).rstrip("\n").split("\n")
    return "\n".join(paint(line, LOOKS[line[0]], colour=colour) if line[:1] in LOOKS else line for line in lines)
