"""The commands of `codeloop session` that change one: rename, fork, compact, pin, archive, delete."""

import click

from codeloop.cli.exit_codes import UsageProblem
from codeloop.cli.group import completed
from codeloop.cli.output.style import spent, when
from codeloop.cli.run.one_shot import has_terminal
from codeloop.cli.run.result import grown
from codeloop.cli.target import named
from codeloop.cli.target.named import find
from codeloop.cli.target.opened import with_client
from codeloop.client.local import LocalClient
from codeloop.kit.terminal_text import one_line
from codeloop.schema.api.session_inputs import Summarize
from codeloop.schema.api.session_requests import ArchiveTime, SessionId, UpdatePart, UpdateSession
from codeloop.schema.errors import CodeloopError
from codeloop.schema.ids import now_ms
from codeloop.schema.message import Session
from codeloop.schema.operation import PART_UPDATE, SESSION_DELETE, SESSION_GET, SESSION_UPDATE, SUMMARIZE
from codeloop.schema.part import TextPart
from codeloop.schema.wire import replace


@click.command()
@click.argument("name", shell_complete=completed("session"))
@click.argument("title")
def rename(name: str, title: str) -> None:
    """Change the title of the session that NAME means."""

    async def command(client: LocalClient) -> None:
        found = await find(client, name)
        await client.call(SESSION_UPDATE, UpdateSession(session_id=found.id, title=title))
        click.echo(f"Renamed {found.id}.")

    with_client(command)


@click.command()
@click.argument("name", required=False, shell_complete=completed("session"))
@click.option("--at", metavar="MESSAGE", help="Copy what is before this message: its id, or N for prompt N.")
def fork(name: str | None, at: str | None) -> None:
    """Copy a session (this directory's latest, or the one NAME means), so that it can go on in two ways."""

    async def command(client: LocalClient) -> None:
        made = await named.fork(client, await find(client, name), at)
        click.echo(f"{made.id}  {one_line(made.title, 70)}")

    with_client(command)


@click.command()
@click.argument("name", required=False, shell_complete=completed("session"))
def compact(name: str | None) -> None:
    """Replace a session's conversation by a summary, so that it can go on in less room."""

    async def command(client: LocalClient) -> None:
        found = await find(client, name)
        if found.model is None:
            raise UsageProblem(f"Session {found.id} has no messages yet.")
        provider_id, model_id = found.model.provider_id, found.model.id
        try:
            await client.call(SUMMARIZE, Summarize(session_id=found.id, provider_id=provider_id, model_id=model_id))
            click.echo(f"Compacted {found.id}.")
        finally:
            tokens, cost = grown(found, await client.call(SESSION_GET, SessionId(session_id=found.id)))
            if tokens.all:
                click.echo(" · ".join(spent(tokens, cost)), err=True)

    with_client(command)


@click.command()
@click.argument("name", required=False, shell_complete=completed("session"))
@click.option("--at", metavar="MESSAGE", required=True, help="The message: its id, or N for prompt N.")
@click.option("--remove", is_flag=True, help="Unpin it.")
def pin(name: str | None, at: str, *, remove: bool) -> None:
    """Pin a message of a session: a summary of the conversation keeps its text word for word."""

    async def command(client: LocalClient) -> None:
        message = await named.message_at(client, await find(client, name), at)
        texts = [part for part in message.parts if isinstance(part, TextPart) and not part.synthetic]
        if not texts:
            raise UsageProblem(f"Message {message.info.id} has no text to pin.")
        for part in texts:
            rest = {key: value for key, value in (part.metadata or {}).items() if key != "pinned"}
            changed = replace(part, metadata=rest if remove else {**rest, "pinned": True})
            ids = {"session_id": part.session_id, "message_id": part.message_id, "part_id": part.id}
            await client.call(PART_UPDATE, UpdatePart(**ids, part=changed))
        click.echo(f"{'Unpinned' if remove else 'Pinned'} {message.info.id}.")

    with_client(command)


@click.command()
@click.argument("names", nargs=-1, required=True, shell_complete=completed("session"))
def archive(names: tuple[str, ...]) -> None:
    """Put sessions away: lists leave them out, and nothing takes them by itself; `unarchive` brings them back."""
    with_client(lambda client: _archive(client, names, now_ms()))


@click.command()
@click.argument("names", nargs=-1, required=True, shell_complete=completed("archived"))
def unarchive(names: tuple[str, ...]) -> None:
    """Bring archived sessions back."""
    with_client(lambda client: _archive(client, names, None))


async def _archive(client: LocalClient, names: tuple[str, ...], time: int | None) -> None:
    for found in [await find(client, name) for name in names]:
        await client.call(SESSION_UPDATE, UpdateSession(session_id=found.id, time=ArchiveTime(archived=time)))
        click.echo(f"{'Archived' if time else 'Unarchived'} {found.id}.")


@click.command()
@click.argument("names", nargs=-1, required=True, shell_complete=completed("session"))
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def delete(names: tuple[str, ...], *, yes: bool) -> None:
    """Delete sessions with everything they hold; files that they changed stay as they are.

    A terminal is asked first; without one nothing is asked.
    """

    async def meant(client: LocalClient) -> list[Session]:
        return [await find(client, name) for name in names]

    sessions = {each.id: each for each in with_client(meant)}
    if not yes and has_terminal() and not _is_sure([*sessions.values()]):
        raise CodeloopError("Nothing was deleted.")

    async def command(client: LocalClient) -> None:
        for each in sessions:
            await client.call(SESSION_DELETE, SessionId(session_id=each))
            click.echo(f"Deleted {each}.")

    with_client(command)


def _is_sure(sessions: list[Session]) -> bool:
    """Ask the person at the terminal."""
    for each in sessions:
        click.echo(f"{each.id}  {when(each.time.updated)}  {one_line(each.title, 70)}", err=True)
    what = "this session" if len(sessions) == 1 else f"these {len(sessions)} sessions"
    try:
        return click.confirm(f"Delete {what} for good, with the sessions of their subagents?", err=True)
    except click.Abort:
        click.echo(err=True)
        return False
