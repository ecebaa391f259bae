"""`codeloop session`: shows one session, its context, its cost and its changes,
or does something to it.

It renames, forks, compacts, archives, deletes and moves it, and pins one of its messages.
`session list` and `session search` are in `session_list.py`.
"""

import os
import sys
from pathlib import Path

import click

from codeloop.cli.commands.sessions.export import export_json
from codeloop.cli.commands.sessions.session_delete import delete
from codeloop.cli.commands.sessions.session_list import list_sessions, search
from codeloop.cli.group import CommandGroup
from codeloop.cli.options import (
    AT_OPTION,
    FILE_TYPE,
    JSON_OPTION,
    SESSION_ARGUMENT,
    THINKING_OPTION,
    make_completion,
)
from codeloop.cli.output.print_json import print_json
from codeloop.cli.output.style import has_colour, paint_patch_line
from codeloop.cli.target import selection
from codeloop.cli.target.run_with_client import run_with_client, run_with_session
from codeloop.cli.target.selection import find_session
from codeloop.client.client import Client
from codeloop.client.formatting import describe_spending, format_time
from codeloop.client.slash.reports import format_context_report, format_cost_report
from codeloop.kit.text.terminal_text import escape_controls, escape_json_controls, one_line
from codeloop.schema.api.session_inputs import SUMMARIZE, MessageWithParts, Summarize
from codeloop.schema.api.session_messages import (
    PART_UPDATE,
    SESSION_MESSAGES,
    SESSION_QUEUED,
    ListMessages,
    UpdatePart,
)
from codeloop.schema.api.session_reports import SESSION_CONTEXT, SESSION_COST
from codeloop.schema.api.session_requests import (
    SESSION_ADOPT,
    SESSION_CHILDREN,
    SESSION_GET,
    SESSION_UPDATE,
    AdoptFolder,
    ArchiveTime,
    SessionId,
    UpdateSession,
)
from codeloop.schema.api.session_undo import SESSION_DIFF, SessionDiffQuery
from codeloop.schema.errors import UsageProblem
from codeloop.schema.ids import now_ms
from codeloop.schema.message import Session, SnapshotFileDiff, measure_growth
from codeloop.schema.part import TextPart
from codeloop.schema.wire import replace

SESSIONS_ARGUMENT = click.argument(
    "names", nargs=-1, required=True, shell_complete=make_completion("session")
)


@click.group(cls=CommandGroup)
def session() -> None:
    """List, show and change the sessions of this project.

    NAME is a session's id, the start or end of its id,
    or its short name (default: this directory's latest session).
    """


session.add_command(list_sessions)
session.add_command(delete)
session.add_command(search)


@session.command()
@SESSION_ARGUMENT
@JSON_OPTION
def context(name: str | None, *, as_json: bool) -> None:
    """Show what fills the window of a session's model, by part; the parts are estimated."""
    report = run_with_session(
        name, lambda client, session: client.call(SESSION_CONTEXT, SessionId(session_id=session.id))
    )
    if as_json:
        print_json(report)
    else:
        click.echo(escape_controls("\n".join(format_context_report(report))))


@session.command()
@SESSION_ARGUMENT
@JSON_OPTION
def cost(name: str | None, *, as_json: bool) -> None:
    """Show what a session and its subagents have used, by model."""
    report = run_with_session(
        name, lambda client, session: client.call(SESSION_COST, SessionId(session_id=session.id))
    )
    if as_json:
        print_json(report)
    else:
        click.echo(escape_controls("\n".join(format_cost_report(report))))


@session.command()
@SESSION_ARGUMENT
@THINKING_OPTION
@click.option("--json", "as_json", is_flag=True, help="Print JSON, as `codeloop export` does.")
def show(name: str | None, *, thinking: bool, as_json: bool) -> None:
    """Show a session as it ran.

    NAME: see `codeloop session --help`. Subagents' calls are indented below the
    call that started them.
    """

    async def print_session(client: Client, session: Session) -> None:
        if as_json:
            click.echo(escape_json_controls((await export_json(client, session)).decode()))
            return
        messages = await client.call(SESSION_MESSAGES, ListMessages(session_id=session.id))
        waiting = await client.call(SESSION_QUEUED, SessionId(session_id=session.id))
        children = await _load_subagent_messages(client, session.id)
        queued_ids = {message.info.id for message in waiting}
        # Only this command needs it, and listing sessions has to be quick.
        from codeloop.cli.output.transcript import print_transcript

        print_transcript(
            session, messages, thinking=thinking, queued_ids=queued_ids, children=children
        )

    run_with_session(name, print_session)


async def _load_subagent_messages(
    client: Client, session_id: str
) -> dict[str, list[MessageWithParts]]:
    """Return the messages of a session's subagents, and of their subagents, by session id."""
    messages: dict[str, list[MessageWithParts]] = {}
    children = await client.call(SESSION_CHILDREN, SessionId(session_id=session_id))
    for child in children:
        messages[child.id] = await client.call(SESSION_MESSAGES, ListMessages(session_id=child.id))
        messages |= await _load_subagent_messages(client, child.id)
    return messages


@session.command()
@SESSION_ARGUMENT
@click.option(
    "--at", metavar="MESSAGE", help="Only the turn of this prompt: an id, or N for prompt N."
)
@click.option("--stat", is_flag=True, help="Only file names and line counts.")
@JSON_OPTION
def diff(name: str | None, at: str | None, *, stat: bool, as_json: bool) -> None:
    """Show the file changes of a session.

    NAME: see `codeloop session --help`. Changes that are undone, or that others made to the files,
    are left out.
    """

    async def load_diffs(client: Client, session: Session) -> list[SnapshotFileDiff]:
        if at is None:
            return await client.call(
                SESSION_DIFF, SessionDiffQuery(session_id=session.id, whole=True)
            )
        message = await selection.find_message(client, session, at)
        return await client.call(
            SESSION_DIFF, SessionDiffQuery(session_id=session.id, message_id=message.info.id)
        )

    diffs = run_with_session(name, load_diffs)
    if as_json:
        print_json(diffs)
    elif not diffs:
        click.echo("No file was changed.", err=True)
    else:
        for file_diff in diffs:
            click.echo(_format_stat(file_diff) if stat else _format_patch(file_diff))


def _format_stat(file_diff: SnapshotFileDiff) -> str:
    file = escape_controls(file_diff.file or "")
    return f"{file_diff.status or 'modified':<8}  +{file_diff.additions} -{file_diff.deletions}  {file}"


def _format_patch(file_diff: SnapshotFileDiff) -> str:
    """Return the patch of a file, or one line if it has none (binary, too large,
    only its mode changed).
    """
    if not file_diff.patch:
        # A line with `#` is a comment to programs that apply patches.
        return f"# {_format_stat(file_diff)}"
    colour = has_colour(sys.stdout)
    lines = escape_controls(file_diff.patch).rstrip("\n").split("\n")
    return "\n".join(paint_patch_line(line, colour=colour) for line in lines)


@session.command()
@click.argument("name", shell_complete=make_completion("session"))
@click.argument("title")
def rename(name: str, title: str) -> None:
    """Change a session's title."""

    async def set_title(client: Client, session: Session) -> None:
        await client.call(SESSION_UPDATE, UpdateSession(session_id=session.id, title=title))
        click.echo(f"Renamed {session.id}.")

    run_with_session(name, set_title)


@session.command()
@SESSION_ARGUMENT
@AT_OPTION
def fork(name: str | None, at: str | None) -> None:
    """Copy a session, to continue it in two ways."""

    async def copy_session(client: Client, session: Session) -> None:
        copy = await selection.fork_session(client, session, at)
        click.echo(f"{copy.id}  {one_line(copy.title, 70)}")

    run_with_session(name, copy_session)


@session.command()
@SESSION_ARGUMENT
def compact(name: str | None) -> None:
    """Replace a session's conversation with a summary."""

    async def summarize(client: Client, session: Session) -> None:
        if session.model is None:
            raise UsageProblem(f"Session {session.id} has no messages yet.")
        provider_id, model_id = session.model.provider_id, session.model.id
        try:
            await client.call(
                SUMMARIZE,
                Summarize(session_id=session.id, provider_id=provider_id, model_id=model_id),
            )
            click.echo(f"Compacted {session.id}.")
        finally:
            # A summary that failed has cost something, too.
            tokens, cost = measure_growth(
                session, await client.call(SESSION_GET, SessionId(session_id=session.id))
            )
            if tokens.all:
                click.echo(" · ".join(describe_spending(tokens, cost)), err=True)

    run_with_session(name, summarize)


@session.command()
@SESSION_ARGUMENT
@click.option(
    "--at", metavar="MESSAGE", required=True, help="Message to pin: an id, or N for prompt N."
)
@click.option("--remove", is_flag=True, help="Unpin it.")
def pin(name: str | None, at: str, *, remove: bool) -> None:
    """Pin a message, so that summaries keep its text word for word."""

    async def set_pinned(client: Client, session: Session) -> None:
        message = await selection.find_message(client, session, at)
        texts = [
            part for part in message.parts if isinstance(part, TextPart) and not part.synthetic
        ]
        if not texts:
            raise UsageProblem(f"Message {message.info.id} has no text to pin.")
        for part in texts:
            other_metadata = {
                key: value for key, value in (part.metadata or {}).items() if key != "pinned"
            }
            new_part = replace(
                part, metadata=other_metadata if remove else {**other_metadata, "pinned": True}
            )
            ids = {"session_id": part.session_id, "message_id": part.message_id, "part_id": part.id}
            await client.call(PART_UPDATE, UpdatePart(**ids, part=new_part))
        click.echo(f"{'Unpinned' if remove else 'Pinned'} {message.info.id}.")

    run_with_session(name, set_pinned)


@session.command()
@click.argument("folder", type=click.Path())
def adopt(folder: str) -> None:
    """Take over the sessions of FOLDER, which is gone, with their undo: it is this folder now.

    A folder that was renamed or moved is mostly found by itself.
    """
    path = os.path.normpath(Path.cwd() / folder)
    for each in run_with_client(
        lambda client: client.call(SESSION_ADOPT, AdoptFolder(directory=path))
    ):
        click.echo(f"{each.id}  {format_time(each.time.updated)}  {one_line(each.title, 70)}")


@session.command()
@SESSIONS_ARGUMENT
def archive(names: tuple[str, ...]) -> None:
    """Archive sessions: lists omit them, and nothing resumes them by default."""
    _set_archived(names, now_ms())


@session.command()
@click.argument("names", nargs=-1, required=True, shell_complete=make_completion("archived"))
def unarchive(names: tuple[str, ...]) -> None:
    """Restore archived sessions."""
    _set_archived(names, None)


async def _find_sessions(client: Client, names: tuple[str, ...]) -> list[Session]:
    return [await find_session(client, name) for name in names]


def _set_archived(names: tuple[str, ...], time: int | None) -> None:
    """Archive sessions; `time`: when (ms since the epoch), None to restore them."""

    async def update_sessions(client: Client) -> None:
        # All names are looked up first, so that a wrong one changes nothing.
        for session in await _find_sessions(client, names):
            await client.call(
                SESSION_UPDATE,
                UpdateSession(session_id=session.id, time=ArchiveTime(archived=time)),
            )
            click.echo(f"{'Archived' if time else 'Unarchived'} {session.id}.")

    run_with_client(update_sessions)


@session.command()
@SESSION_ARGUMENT
@click.option(
    "-o",
    "--output",
    type=FILE_TYPE,
    help="Write the session and its files to FILE, and archive it here.",
)
@click.option(
    "-i",
    "--import",
    "source",
    type=FILE_TYPE,
    help="Take the session of FILE over, into a new work tree.",
)
@click.option("--cancel", is_flag=True, help="Let a session that was moved go on here after all.")
def move(name: str | None, output: Path | None, source: Path | None, *, cancel: bool) -> None:
    """Move a session to another machine, with its files: commits that no remote has,
    uncommitted and untracked ones.

    A turn that runs is stopped after its step. From then on the session goes on
    only where FILE is imported.
    """
    if (output is not None) + (source is not None) + cancel != 1:
        raise click.UsageError(
            "Give --output FILE here, or --import FILE in a clone of the repository there."
        )
    # It loads the git and archive code, which no other subcommand needs.
    from codeloop.cli.commands.sessions import move as moving

    if source is not None:
        moving.import_session(source)
    elif output is not None:
        moving.pack_session(name, output)
    else:
        moving.cancel_move(name)
