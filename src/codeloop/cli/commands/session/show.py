"""`codeloop session show`: a stored session as it ran, with the calls of its subagents."""

import click

from codeloop.cli.commands.session.export import exported
from codeloop.cli.group import completed
from codeloop.cli.output.transcript import transcript
from codeloop.cli.target.named import find
from codeloop.cli.target.opened import with_client
from codeloop.client.client import Client
from codeloop.client.local import LocalClient
from codeloop.kit.terminal_text import inert_json
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.api.session_requests import ListMessages, SessionId
from codeloop.schema.operation import SESSION_CHILDREN, SESSION_MESSAGES, SESSION_QUEUED


@click.command()
@click.argument("name", required=False, shell_complete=completed("session"))
@click.option("--thinking", is_flag=True, help="Show the model's thinking too.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, like `export`.")
def show(name: str | None, *, thinking: bool, as_json: bool) -> None:
    """Show a session (this directory's latest, or the one NAME means) as it ran.

    The calls of its subagents are indented below the call that started them.
    """

    async def command(client: LocalClient) -> None:
        found = await find(client, name)
        if as_json:
            click.echo(inert_json((await exported(client, found)).decode()))
            return
        messages = await client.call(SESSION_MESSAGES, ListMessages(session_id=found.id))
        waiting = await client.call(SESSION_QUEUED, SessionId(session_id=found.id))
        children = await _children(client, found.id)
        queued = {message.info.id for message in waiting}
        transcript(found, messages, thinking=thinking, queued=queued, children=children)

    with_client(command)


async def _children(client: Client, session_id: str) -> dict[str, list[MessageWithParts]]:
    """Return the messages of a session's subagents, and of theirs, by session id."""
    found: dict[str, list[MessageWithParts]] = {}
    children = await client.call(SESSION_CHILDREN, SessionId(session_id=session_id))
    for child in reversed(children):
        found[child.id] = await client.call(SESSION_MESSAGES, ListMessages(session_id=child.id))
        found |= await _children(client, child.id)
    return found
