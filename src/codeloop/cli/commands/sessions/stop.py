"""`codeloop stop`: stops the turn of a session, or the turns of all projects on this machine."""

import sys

import click

from codeloop.cli.options import JSON_OPTION, make_completion
from codeloop.cli.output.print_json import print_json
from codeloop.cli.target.run_with_client import run_with_client, run_with_session
from codeloop.client.client import Client
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.session_inputs import ABORT
from codeloop.schema.api.session_reports import SESSION_OVERVIEW, SessionOverviewQuery
from codeloop.schema.api.session_requests import (
    STOP_ALL,
    SessionId,
    StoppedSession,
    StoppedSessions,
)
from codeloop.schema.message import Session
from codeloop.schema.operation import NoArguments

# Characters of a session's title.
TITLE_CHARS = 60


@click.command()
@click.argument("name", required=False, shell_complete=make_completion("session"))
@click.option("--all", "everything", is_flag=True, help="Stop the turns of all projects.")
@JSON_OPTION
def stop(name: str | None, *, everything: bool, as_json: bool) -> None:
    """Stop the turn of a session, or all that your servers,
    terminals and runs on this machine work on.

    NAME: see `codeloop session --help`. What was done is kept, and each session can be resumed.
    Exit code 1: something did not stop.
    """
    if (name is None) != everything:
        raise click.UsageError("Give a session, or --all.")
    report = run_with_client(_stop_all) if name is None else run_with_session(name, _stop_session)
    if as_json:
        print_json(report)
    else:
        for word, sessions in (("stopped", report.stopped), ("still running", report.left)):
            for each in sessions:
                click.echo(
                    f"{word}  {each.id}  {one_line(each.title, TITLE_CHARS)}  {each.directory}"
                )
        if not report.stopped and not report.left:
            click.echo("Nothing was running.", err=True)
    if report.left:
        sys.exit(1)


async def _stop_all(client: Client) -> StoppedSessions:
    return await client.call(STOP_ALL, NoArguments())


async def _stop_session(client: Client, session: Session) -> StoppedSessions:
    """Stop the turn of a session, in whichever process it runs."""
    # Loaded first: afterwards nothing shows whether there was a turn to stop.
    rows = await client.call(SESSION_OVERVIEW, SessionOverviewQuery())
    was_running = any(row.id == session.id and row.state in {"running", "waits"} for row in rows)
    is_idle = await client.call(ABORT, SessionId(session_id=session.id))
    stopped_session = StoppedSession(
        id=session.id, title=session.title, directory=session.directory
    )
    if not is_idle:
        return StoppedSessions(stopped=[], left=[stopped_session])
    return StoppedSessions(stopped=[stopped_session] if was_running else [], left=[])
