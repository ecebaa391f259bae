"""`codeloop session list` and `search`: which sessions there are."""

from collections.abc import Iterator, Sequence

import click
import msgspec

from codeloop.cli.output.style import dollars, when
from codeloop.cli.target.named import EVERY
from codeloop.cli.target.opened import with_client
from codeloop.client.local import LocalClient
from codeloop.kit.terminal_text import inert, inert_json, one_line
from codeloop.schema.api.session_requests import ListAllSessions, ListSessions, SearchSessions
from codeloop.schema.message import Session
from codeloop.schema.operation import PATH_GET, SESSION_EVERYTHING, SESSION_LIST, SESSION_SEARCH, NoArguments


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@click.option("--all", "everything", is_flag=True, help="Those of all projects.")
@click.option("--archived", is_flag=True, help="Those that are archived too.")
@click.option("--children", is_flag=True, help="Those of subagents too, each below its parent.")
def list_(*, as_json: bool, limit: int, everything: bool, archived: bool, children: bool) -> None:
    """List sessions, the newest change first: id, time, cost, short name, title.

    The directory is shown when one of them belongs to another one than this.
    """

    async def command(client: LocalClient) -> tuple[list[Session], str]:
        place = await client.call(PATH_GET, NoArguments())
        if everything:
            return await client.call(SESSION_EVERYTHING, ListAllSessions(limit=EVERY)), place.directory
        return await client.call(SESSION_LIST, ListSessions(scope="project", limit=EVERY)), place.directory

    found, here = with_client(command)
    roots = [each for each in found if each.parent_id is None and (archived or not each.time.archived)]
    below: dict[str, list[Session]] = {}
    for each in found if children else ():
        below.setdefault(each.parent_id or "", []).append(each)
    rows = [row for root in roots[:limit] for row in _family(root, below, 0)]
    if as_json:
        click.echo(inert_json(msgspec.json.encode([each for _, each in rows]).decode()))
    else:
        _show(rows, "" if everything else here)
    if len(roots) > limit:
        click.echo(f"{limit} of {len(roots)} sessions are shown: -n {len(roots)} shows all.", err=True)
    elif not rows and not as_json:
        what = " but archived ones (--archived)" if any(not each.parent_id for each in found) else ""
        click.echo(f'No sessions yet{what}. Start one: codeloop run "what is this project about?"', err=True)


def _family(session: Session, below: dict[str, list[Session]], depth: int) -> Iterator[tuple[int, Session]]:
    """Yield a session and those of its subagents, the first one first, with how deep each is."""
    yield depth, session
    for child in reversed(below.get(session.id, ())):
        yield from _family(child, below, depth + 1)


def _show(rows: Sequence[tuple[int, Session]], here: str) -> None:
    """Print a line for each session; its directory when not all of them belong to `here`."""
    elsewhere = any(each.directory != here for _, each in rows)
    slugs = max((len(inert(each.slug)) for _, each in rows), default=0)
    for depth, each in rows:
        where = f"  {inert(each.directory)}" if elsewhere else ""
        title = one_line(("[archived] " if each.time.archived else "") + each.title, 70)
        sums = f"{when(each.time.updated)}  {dollars(each.cost or 0, each.tokens):>9}  {inert(each.slug):<{slugs}}"
        click.echo(f"{'  ' * depth}{each.id}  {sums}  {title}{where}")


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many.")
def search(words: tuple[str, ...], *, as_json: bool, limit: int) -> None:
    """Find sessions by their titles and what was said in them; WORDS are looked for as they stand."""
    query = " ".join(words)
    result = with_client(lambda client: client.call(SESSION_SEARCH, SearchSessions(query=query, limit=limit)))
    if as_json:
        click.echo(inert_json(msgspec.json.encode(result).decode()))
        return
    for hit in result.hits:
        click.echo(f"{hit.session.id}  {when(hit.session.time.updated)}  {one_line(hit.session.title, 70)}")
        for excerpt in hit.excerpts:
            click.echo(f"    {'>' if excerpt.role == 'user' else ' '} {one_line(excerpt.text, 160)}")
    if not result.complete:
        click.echo("There may be more: narrow the words, or ask for more with -n.", err=True)
    elif not result.hits:
        click.echo(f"Nothing holds {one_line(query, 60)}.", err=True)
