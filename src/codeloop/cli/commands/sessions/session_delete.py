"""`codeloop session delete`: by name, or all that are old."""

import click

from codeloop.cli.options import make_completion
from codeloop.cli.output.streams import can_ask_user
from codeloop.cli.target.run_with_client import run_with_client
from codeloop.cli.target.selection import MAX_SESSIONS, find_session
from codeloop.client.client import Client
from codeloop.client.formatting import format_time
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.session_requests import (
    SESSION_DELETE,
    SESSION_LIST,
    ListSessions,
    SessionId,
)
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.ids import now_ms
from codeloop.schema.message import Session

_MS_PER_DAY = 24 * 60 * 60 * 1000


@click.command()
@click.argument("names", nargs=-1, shell_complete=make_completion("session"))
@click.option(
    "--older-than",
    "days",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    help="Delete those of this project that were not changed for so long.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def delete(names: tuple[str, ...], *, days: float | None, yes: bool) -> None:
    """Delete sessions; the files that they changed stay as they are.

    Asks for confirmation in a terminal.
    """
    if bool(names) == (days is not None):
        raise UsageProblem("Name the sessions to delete, or say `--older-than DAYS`.")

    async def load_sessions(client: Client) -> list[Session]:
        if days is None:
            return [await find_session(client, name) for name in names]
        found = await client.call(SESSION_LIST, ListSessions(scope="project", limit=MAX_SESSIONS))
        oldest = now_ms() - days * _MS_PER_DAY
        return [each for each in found if not each.parent_id and each.time.updated < oldest]

    # By id, because two names may be those of one session.
    sessions = {session.id: session for session in run_with_client(load_sessions)}
    if not sessions:
        click.echo("No session is that old.", err=True)
        return
    if not yes and can_ask_user() and not _confirm_deletion([*sessions.values()]):
        raise CodeloopError("Nothing was deleted.")

    async def delete_sessions(client: Client) -> None:
        for session_id in sessions:
            await client.call(SESSION_DELETE, SessionId(session_id=session_id))
            click.echo(f"Deleted {session_id}.")

    run_with_client(delete_sessions)


def _confirm_deletion(sessions: list[Session]) -> bool:
    """List the sessions, and ask at the terminal whether to delete them."""
    for session in sessions:
        click.echo(
            f"{session.id}  {format_time(session.time.updated)}  {one_line(session.title, 70)}",
            err=True,
        )
    what = "this session" if len(sessions) == 1 else f"these {len(sessions)} sessions"
    try:
        return click.confirm(f"Delete {what} and their subagents' sessions permanently?", err=True)
    except click.Abort:
        # Ctrl-C or Ctrl-D at the question is a no; the line that it was asked on is still open.
        click.echo(err=True)
        return False
