"""`codeloop session list` and `codeloop session search`: list and search sessions
of this project or of all.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click

from codeloop.cli.options import JSON_OPTION
from codeloop.cli.output.print_json import print_json
from codeloop.cli.target.run_with_client import run_with_client
from codeloop.cli.target.selection import MAX_SESSIONS, describe_moved_folders
from codeloop.client.client import Client
from codeloop.client.formatting import format_cost, format_time
from codeloop.config.project_root import GLOBAL_PROJECT_ID
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.api.project import PATH_GET
from codeloop.schema.api.session_requests import (
    SESSION_EVERYTHING,
    SESSION_LIST,
    ListAllSessions,
    ListSessions,
)
from codeloop.schema.api.session_search import SESSION_SEARCH, SearchSessions
from codeloop.schema.message import Session
from codeloop.schema.operation import NoArguments

CommandT = TypeVar("CommandT", bound=Callable[..., Any] | click.Command)


def _make_limit_option(default: int) -> Callable[[CommandT], CommandT]:
    return click.option(
        "-n",
        "--limit",
        type=click.IntRange(min=1),
        default=default,
        show_default=True,
        help="Maximum number to show.",
    )


@click.command("list")
@JSON_OPTION
@_make_limit_option(50)
@click.option("--all", "everything", is_flag=True, help="Include all projects.")
@click.option("--archived", is_flag=True, help="Include archived sessions.")
@click.option(
    "--children", is_flag=True, help="Include subagents' sessions, each below its parent."
)
def list_sessions(
    *, as_json: bool, limit: int, everything: bool, archived: bool, children: bool
) -> None:
    """List sessions, most recently changed first.

    Shown are id, time, cost, short name and title,
    and the directory if a session belongs to another one.
    """

    async def load_sessions(client: Client) -> tuple[list[Session], str]:
        """Return the sessions, and the directory that need not be shown;
        "": every directory is shown.
        """
        if everything:
            return await client.call(SESSION_EVERYTHING, ListAllSessions(limit=MAX_SESSIONS)), ""
        path_info = await client.call(PATH_GET, NoArguments())
        in_project = await client.call(
            SESSION_LIST, ListSessions(scope="project", limit=MAX_SESSIONS)
        )
        sessions = [session for session in in_project if _belongs_to(session, path_info.directory)]
        return sessions, path_info.directory

    sessions, current_directory = run_with_client(load_sessions)
    roots = [
        session
        for session in sessions
        if session.parent_id is None and (archived or not session.time.archived)
    ]
    by_parent: dict[str, list[Session]] = {}
    for session in sessions if children else ():
        by_parent.setdefault(session.parent_id or "", []).append(session)
    # The limit counts the sessions of the user; subagents' sessions come in addition.
    rows = [row for root in roots[:limit] for row in _walk_family(root, by_parent, 0)]
    if as_json:
        print_json([session for _, session in rows])
    else:
        _show_rows(rows, current_directory)
    if len(roots) > limit:
        click.echo(
            f"{limit} of {len(roots)} sessions are shown. Add -n {len(roots)} to show all.",
            err=True,
        )
    elif (
        not rows
        and not as_json
        and not everything
        and (moved := run_with_client(describe_moved_folders))
    ):
        click.echo(f"No session of this folder. {moved}", err=True)
    elif not rows and not as_json:
        exception = (
            " except archived ones (--archived)"
            if any(not session.parent_id for session in sessions)
            else ""
        )
        click.echo(
            f'No sessions yet{exception}. Start one: codeloop run "what is this project about?"',
            err=True,
        )


def _belongs_to(session: Session, directory: str) -> bool:
    """Return whether a session belongs to the project of this directory.

    Outside of repositories all sessions share the project `GLOBAL_PROJECT_ID`,
    so there the directory decides.
    """
    return session.project_id != GLOBAL_PROJECT_ID or session.directory == directory


def _walk_family(
    session: Session, by_parent: dict[str, list[Session]], depth: int
) -> Iterator[tuple[int, Session]]:
    """Yield a session and those of its subagents below it, oldest change first,
    each with its depth from 0 on.
    """
    yield depth, session
    # The server lists the newest change first.
    for child in reversed(by_parent.get(session.id, ())):
        yield from _walk_family(child, by_parent, depth + 1)


def _show_rows(rows: Sequence[tuple[int, Session]], current_directory: str) -> None:
    """Print a line for each session, with its directory unless all are in the current one."""
    shows_directory = any(session.directory != current_directory for _, session in rows)
    slug_width = max((len(escape_controls(session.slug)) for _, session in rows), default=0)
    for depth, session in rows:
        location = f"  {escape_controls(session.directory)}" if shows_directory else ""
        title = one_line(("[archived] " if session.time.archived else "") + session.title, 70)
        sums = f"{format_time(session.time.updated)}  {format_cost(session.cost or 0, session.tokens):>9}"
        slug = f"{escape_controls(session.slug):<{slug_width}}"
        click.echo(f"{'  ' * depth}{session.id}  {sums}  {slug}  {title}{location}")


@click.command()
@click.argument("words", nargs=-1, required=True)
@JSON_OPTION
@_make_limit_option(20)
def search(words: tuple[str, ...], *, as_json: bool, limit: int) -> None:
    """Find sessions whose title or messages contain WORDS, as they are written."""
    query = " ".join(words)
    result = run_with_client(
        lambda client: client.call(SESSION_SEARCH, SearchSessions(query=query, limit=limit))
    )
    if as_json:
        print_json(result)
        return
    for hit in result.hits:
        click.echo(
            f"{hit.session.id}  {format_time(hit.session.time.updated)}  {one_line(hit.session.title, 70)}"
        )
        for excerpt in hit.excerpts:
            click.echo(
                f"    {'>' if excerpt.role == 'user' else ' '} {one_line(excerpt.text, 160)}"
            )
    if not result.complete:
        click.echo(
            f"There are more: search for longer words, or show more than {limit} with -n.", err=True
        )
    elif not result.hits:
        click.echo(f'No session matches "{one_line(query, 60)}".', err=True)
