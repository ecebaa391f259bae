"""`codeloop session`: list, show and change the sessions of this project."""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from codeloop.cli.commands.sessions.export import export_json
from codeloop.cli.group import Group
from codeloop.cli.options import AT, FILE, JSON, NAME, THINKING, make_completion
from codeloop.cli.output.result import measure_growth
from codeloop.cli.output.streams import has_terminal
from codeloop.cli.output.style import Look, has_colour, paint, print_json
from codeloop.cli.target import selection
from codeloop.cli.target.selection import EVERY, find, with_session
from codeloop.cli.target.target import with_client
from codeloop.client.client import Client
from codeloop.client.numbers import describe_spending, format_cost, format_time
from codeloop.client.slash.reports import context_lines, cost_lines
from codeloop.config.project_root import GLOBAL_PROJECT_ID
from codeloop.kit.terminal_text import escape_controls, escape_json_controls, one_line
from codeloop.schema.api.session_inputs import MessageWithParts, Summarize
from codeloop.schema.api.session_requests import (
    ArchiveTime,
    ListAllSessions,
    ListMessages,
    ListSessions,
    SearchSessions,
    SessionDiffQuery,
    SessionId,
    UpdatePart,
    UpdateSession,
)
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.ids import now_ms
from codeloop.schema.message import Session, SnapshotFileDiff
from codeloop.schema.operation import (
    PART_UPDATE,
    PATH_GET,
    SESSION_CHILDREN,
    SESSION_CONTEXT,
    SESSION_COST,
    SESSION_DELETE,
    SESSION_DIFF,
    SESSION_EVERYTHING,
    SESSION_GET,
    SESSION_LIST,
    SESSION_MESSAGES,
    SESSION_QUEUED,
    SESSION_SEARCH,
    SESSION_UPDATE,
    SUMMARIZE,
    NoArguments,
)
from codeloop.schema.part import TextPart
from codeloop.schema.wire import replace

FC = TypeVar("FC", bound=Callable[..., Any] | click.Command)
NAMES = click.argument("names", nargs=-1, required=True, shell_complete=make_completion("session"))
LOOKS: dict[str, Look] = {"+": "green", "-": "red", "@": "cyan"}


def _limit(default: int) -> Callable[[FC], FC]:
    kind = click.IntRange(min=1)
    return click.option("-n", "--limit", type=kind, default=default, show_default=True, help="Maximum number to show.")


@click.group(cls=Group)
def session() -> None:
    """List, show and change the sessions of this project.

    NAME is a session's id, the start or end of its id, or its short name (default: this directory's latest session).
    """


@session.command("list")
@JSON
@_limit(50)
@click.option("--all", "everything", is_flag=True, help="Include all projects.")
@click.option("--archived", is_flag=True, help="Include archived sessions.")
@click.option("--children", is_flag=True, help="Include subagents' sessions, each below its parent.")
def list_(*, as_json: bool, limit: int, everything: bool, archived: bool, children: bool) -> None:
    """List sessions, most recently changed first.

    Shown are id, time, cost, short name and title, and the directory if a session belongs to another one.
    """

    async def command(client: Client) -> tuple[list[Session], str]:
        path_info = await client.call(PATH_GET, NoArguments())
        if everything:
            return await client.call(SESSION_EVERYTHING, ListAllSessions(limit=EVERY)), ""
        in_project = await client.call(SESSION_LIST, ListSessions(scope="project", limit=EVERY))
        return [each for each in in_project if _is_of(each, path_info.directory)], path_info.directory

    sessions, here = with_client(command)
    roots = [each for each in sessions if each.parent_id is None and (archived or not each.time.archived)]
    below: dict[str, list[Session]] = {}
    for each in sessions if children else ():
        below.setdefault(each.parent_id or "", []).append(each)
    rows = [row for root in roots[:limit] for row in _family(root, below, 0)]
    if as_json:
        print_json([each for _, each in rows])
    else:
        _show_rows(rows, here)
    if len(roots) > limit:
        click.echo(f"{limit} of {len(roots)} sessions are shown. Add -n {len(roots)} to show all.", err=True)
    elif not rows and not as_json:
        what = " except archived ones (--archived)" if any(not each.parent_id for each in sessions) else ""
        click.echo(f'No sessions yet{what}. Start one: codeloop run "what is this project about?"', err=True)


def _is_of(session: Session, directory: str) -> bool:
    """Return whether a session is one of this directory's project; without a repository, a directory is its own."""
    return session.project_id != GLOBAL_PROJECT_ID or session.directory == directory


def _family(session: Session, below: dict[str, list[Session]], depth: int) -> Iterator[tuple[int, Session]]:
    """Yield a session and its subagents' sessions, oldest first, each with its depth."""
    yield depth, session
    for child in reversed(below.get(session.id, ())):
        yield from _family(child, below, depth + 1)


def _show_rows(rows: Sequence[tuple[int, Session]], here: str) -> None:
    """Print one line for each session, with directories unless all are `here`."""
    elsewhere = any(each.directory != here for _, each in rows)
    slugs = max((len(escape_controls(each.slug)) for _, each in rows), default=0)
    for depth, each in rows:
        where = f"  {escape_controls(each.directory)}" if elsewhere else ""
        title = one_line(("[archived] " if each.time.archived else "") + each.title, 70)
        sums = f"{format_time(each.time.updated)}  {format_cost(each.cost or 0, each.tokens):>9}"
        click.echo(f"{'  ' * depth}{each.id}  {sums}  {escape_controls(each.slug):<{slugs}}  {title}{where}")


@session.command()
@click.argument("words", nargs=-1, required=True)
@JSON
@_limit(20)
def search(words: tuple[str, ...], *, as_json: bool, limit: int) -> None:
    """Find sessions whose title or messages contain WORDS, as they are written."""
    query = " ".join(words)
    result = with_client(lambda client: client.call(SESSION_SEARCH, SearchSessions(query=query, limit=limit)))
    if as_json:
        print_json(result)
        return
    for hit in result.hits:
        click.echo(f"{hit.session.id}  {format_time(hit.session.time.updated)}  {one_line(hit.session.title, 70)}")
        for excerpt in hit.excerpts:
            click.echo(f"    {'>' if excerpt.role == 'user' else ' '} {one_line(excerpt.text, 160)}")
    if not result.complete:
        click.echo("There may be more: search for longer words, or raise the limit with -n.", err=True)
    elif not result.hits:
        click.echo(f'No session matches "{one_line(query, 60)}".', err=True)


@session.command()
@NAME
@JSON
def context(name: str | None, *, as_json: bool) -> None:
    """Show what fills the window of a session's model, by part; the parts are estimated."""
    report = with_session(name, lambda client, session: client.call(SESSION_CONTEXT, SessionId(session_id=session.id)))
    if as_json:
        print_json(report)
    else:
        click.echo(escape_controls("\n".join(context_lines(report))))


@session.command()
@NAME
@JSON
def cost(name: str | None, *, as_json: bool) -> None:
    """Show what a session and its subagents have used, by model."""
    report = with_session(name, lambda client, session: client.call(SESSION_COST, SessionId(session_id=session.id)))
    if as_json:
        print_json(report)
    else:
        click.echo(escape_controls("\n".join(cost_lines(report))))


@session.command()
@NAME
@THINKING
@click.option("--json", "as_json", is_flag=True, help="Print JSON, as `codeloop export` does.")
def show(name: str | None, *, thinking: bool, as_json: bool) -> None:
    """Show a session as it ran.

    NAME: see `codeloop session --help`. Subagents' calls are indented below the call that started them.
    """

    async def command(client: Client, session: Session) -> None:
        if as_json:
            click.echo(escape_json_controls((await export_json(client, session)).decode()))
            return
        messages = await client.call(SESSION_MESSAGES, ListMessages(session_id=session.id))
        waiting = await client.call(SESSION_QUEUED, SessionId(session_id=session.id))
        children = await _children(client, session.id)
        queued_ids = {message.info.id for message in waiting}
        from codeloop.cli.output.transcript import transcript

        transcript(session, messages, thinking=thinking, queued_ids=queued_ids, children=children)

    with_session(name, command)


async def _children(client: Client, session_id: str) -> dict[str, list[MessageWithParts]]:
    """Return the messages of a session's subagents, and of theirs, by session id."""
    messages: dict[str, list[MessageWithParts]] = {}
    children = await client.call(SESSION_CHILDREN, SessionId(session_id=session_id))
    for child in reversed(children):
        messages[child.id] = await client.call(SESSION_MESSAGES, ListMessages(session_id=child.id))
        messages |= await _children(client, child.id)
    return messages


@session.command()
@NAME
@click.option("--at", metavar="MESSAGE", help="Only the turn of this prompt: an id, or N for prompt N.")
@click.option("--stat", is_flag=True, help="Only file names and line counts.")
@JSON
def diff(name: str | None, at: str | None, *, stat: bool, as_json: bool) -> None:
    """Show the file changes of a session.

    NAME: see `codeloop session --help`. Changes that are undone, or that others made to the files, are left out.
    """

    async def command(client: Client, session: Session) -> list[SnapshotFileDiff]:
        if at is None:
            return await client.call(SESSION_DIFF, SessionDiffQuery(session_id=session.id, whole=True))
        message = await selection.message_at(client, session, at)
        return await client.call(SESSION_DIFF, SessionDiffQuery(session_id=session.id, message_id=message.info.id))

    diffs = with_session(name, command)
    if as_json:
        print_json(diffs)
    elif not diffs:
        click.echo("No file was changed.", err=True)
    for each in () if as_json else diffs:
        click.echo(_stat(each) if stat else _patch(each))


def _stat(each: SnapshotFileDiff) -> str:
    return f"{each.status or 'modified':<8}  +{each.additions} -{each.deletions}  {escape_controls(each.file or '')}"


def _patch(each: SnapshotFileDiff) -> str:
    """Return the patch, or one line for a file without one (binary, too large, only its mode changed)."""
    if not each.patch:
        return f"# {_stat(each)}"
    colour = has_colour(sys.stdout)
    lines = escape_controls(each.patch).rstrip("\n").split("\n")
    return "\n".join(paint(line, LOOKS[line[0]], colour=colour) if line[:1] in LOOKS else line for line in lines)


@session.command()
@click.argument("name", shell_complete=make_completion("session"))
@click.argument("title")
def rename(name: str, title: str) -> None:
    """Change a session's title."""

    async def command(client: Client, session: Session) -> None:
        await client.call(SESSION_UPDATE, UpdateSession(session_id=session.id, title=title))
        click.echo(f"Renamed {session.id}.")

    with_session(name, command)


@session.command()
@NAME
@AT
def fork(name: str | None, at: str | None) -> None:
    """Copy a session, to continue it in two ways."""

    async def command(client: Client, session: Session) -> None:
        copy = await selection.fork(client, session, at)
        click.echo(f"{copy.id}  {one_line(copy.title, 70)}")

    with_session(name, command)


@session.command()
@NAME
def compact(name: str | None) -> None:
    """Replace a session's conversation with a summary."""

    async def command(client: Client, session: Session) -> None:
        if session.model is None:
            raise UsageProblem(f"Session {session.id} has no messages yet.")
        provider_id, model_id = session.model.provider_id, session.model.id
        try:
            await client.call(SUMMARIZE, Summarize(session_id=session.id, provider_id=provider_id, model_id=model_id))
            click.echo(f"Compacted {session.id}.")
        finally:
            tokens, cost = measure_growth(session, await client.call(SESSION_GET, SessionId(session_id=session.id)))
            if tokens.all:
                click.echo(" · ".join(describe_spending(tokens, cost)), err=True)

    with_session(name, command)


@session.command()
@NAME
@click.option("--at", metavar="MESSAGE", required=True, help="Message to pin: an id, or N for prompt N.")
@click.option("--remove", is_flag=True, help="Unpin it.")
def pin(name: str | None, at: str, *, remove: bool) -> None:
    """Pin a message, so that summaries keep its text word for word."""

    async def command(client: Client, session: Session) -> None:
        message = await selection.message_at(client, session, at)
        texts = [part for part in message.parts if isinstance(part, TextPart) and not part.synthetic]
        if not texts:
            raise UsageProblem(f"Message {message.info.id} has no text to pin.")
        for part in texts:
            other_metadata = {key: value for key, value in (part.metadata or {}).items() if key != "pinned"}
            new_part = replace(part, metadata=other_metadata if remove else {**other_metadata, "pinned": True})
            ids = {"session_id": part.session_id, "message_id": part.message_id, "part_id": part.id}
            await client.call(PART_UPDATE, UpdatePart(**ids, part=new_part))
        click.echo(f"{'Unpinned' if remove else 'Pinned'} {message.info.id}.")

    with_session(name, command)


@session.command()
@NAMES
def archive(names: tuple[str, ...]) -> None:
    """Archive sessions: lists omit them, and nothing resumes them by default."""
    _archive(names, now_ms())


@session.command()
@click.argument("names", nargs=-1, required=True, shell_complete=make_completion("archived"))
def unarchive(names: tuple[str, ...]) -> None:
    """Restore archived sessions."""
    _archive(names, None)


async def _find_all(client: Client, names: tuple[str, ...]) -> list[Session]:
    return [await find(client, name) for name in names]


def _archive(names: tuple[str, ...], time: int | None) -> None:
    async def command(client: Client) -> None:
        for session in await _find_all(client, names):
            await client.call(SESSION_UPDATE, UpdateSession(session_id=session.id, time=ArchiveTime(archived=time)))
            click.echo(f"{'Archived' if time else 'Unarchived'} {session.id}.")

    with_client(command)


@session.command()
@NAMES
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def delete(names: tuple[str, ...], *, yes: bool) -> None:
    """Delete sessions; the files that they changed stay as they are.

    Asks for confirmation in a terminal.
    """
    sessions = {each.id: each for each in with_client(lambda client: _find_all(client, names))}
    if not yes and has_terminal() and not _is_sure([*sessions.values()]):
        raise CodeloopError("Nothing was deleted.")

    async def command(client: Client) -> None:
        for each in sessions:
            await client.call(SESSION_DELETE, SessionId(session_id=each))
            click.echo(f"Deleted {each}.")

    with_client(command)


def _is_sure(sessions: list[Session]) -> bool:
    """Ask at the terminal whether to delete."""
    for each in sessions:
        click.echo(f"{each.id}  {format_time(each.time.updated)}  {one_line(each.title, 70)}", err=True)
    what = "this session" if len(sessions) == 1 else f"these {len(sessions)} sessions"
    try:
        return click.confirm(f"Delete {what} and their subagents' sessions permanently?", err=True)
    except click.Abort:
        click.echo(err=True)
        return False


@session.command()
@NAME
@click.option("-o", "--output", type=FILE, help="Write the session and its files to FILE, and archive it here.")
@click.option("-i", "--import", "source", type=FILE, help="Take the session of FILE over, into a new work tree.")
@click.option("--cancel", is_flag=True, help="Let a session that was moved go on here after all.")
def move(name: str | None, output: Path | None, source: Path | None, *, cancel: bool) -> None:
    """Move a session to another machine, with its files: commits that no remote has, uncommitted and untracked ones.

    A turn that runs is stopped after its step. From then on the session goes on only where FILE is imported.
    """
    if (output is not None) + (source is not None) + cancel != 1:
        raise click.UsageError("Give --output FILE here, or --import FILE in a clone of the repository there.")
    from codeloop.cli.commands.sessions import move as moving

    if source is not None:
        moving.take_over(source)
    else:
        moving.pack(name, output) if output is not None else moving.cancel_move(name)
