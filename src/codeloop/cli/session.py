"""`codeloop session`: list, show, rename, search, fork, compact, pin, delete."""

import click


@click.group()
def session() -> None:
    """List, show, search, fork and delete the sessions of this project."""


@session.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@click.option("--all", "everything", is_flag=True, help="Those of all projects.")
@click.option("--archived", is_flag=True, help="Those that are archived too.")
def list_(*, as_json: bool, limit: int, everything: bool, archived: bool) -> None:
    """List sessions, the newest change first, with what they cost; those of subagents are left out."""
    import msgspec

    from codeloop.cli.opened import with_client
    from codeloop.cli.style import dollars
    from codeloop.client.local import LocalClient
    from codeloop.kit.plain import inert, inert_json, one_line
    from codeloop.schema.message import Session
    from codeloop.schema.operation import SESSION_EVERYTHING, SESSION_LIST

    async def command(client: LocalClient) -> list[Session]:
        if everything:
            return await client.call(SESSION_EVERYTHING, limit=100_000)
        return await client.call(SESSION_LIST, limit=100_000)

    found = (each for each in with_client(command) if each.parent_id is None and (archived or not each.time.archived))
    sessions = list(found)[:limit]
    if as_json:
        click.echo(inert_json(msgspec.json.encode(sessions).decode()))
        return
    for each in sessions:
        where = f"  {inert(each.directory)}" if everything else ""
        mark = "[archived] " if each.time.archived else ""
        title = one_line(mark + each.title, 70)
        click.echo(f"{each.id}  {_when(each.time.updated)}  {dollars(each.cost or 0):>9}  {title}{where}")
    if not sessions:
        click.echo('No sessions yet. Start one: codeloop run "what is this project about?"', err=True)


@session.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many.")
def search(words: tuple[str, ...], *, as_json: bool, limit: int) -> None:
    """Find sessions by their titles and what was said in them; WORDS are looked for as they stand."""
    import msgspec

    from codeloop.cli.opened import with_client
    from codeloop.kit.plain import inert_json, one_line
    from codeloop.schema.operation import SESSION_SEARCH

    query = " ".join(words)
    result = with_client(lambda client: client.call(SESSION_SEARCH, query=query, limit=limit))
    if as_json:
        click.echo(inert_json(msgspec.json.encode(result).decode()))
        return
    for hit in result.hits:
        click.echo(f"{hit.session.id}  {_when(hit.session.time.updated)}  {one_line(hit.session.title, 70)}")
        for excerpt in hit.excerpts:
            click.echo(f"    {'>' if excerpt.role == 'user' else ' '} {one_line(excerpt.text, 160)}")
    if not result.complete:
        click.echo("There may be more: narrow the words, or ask for more with -n.", err=True)
    elif not result.hits:
        click.echo(f"Nothing holds {one_line(query, 60)}.", err=True)


@session.command()
@click.argument("name")
@click.argument("title")
def rename(name: str, title: str) -> None:
    """Give the session that NAME means a TITLE."""
    from codeloop.cli.named import find
    from codeloop.cli.opened import with_client
    from codeloop.client.local import LocalClient
    from codeloop.schema.operation import SESSION_UPDATE

    async def command(client: LocalClient) -> None:
        found = await find(client, name)
        await client.call(SESSION_UPDATE, session_id=found.id, title=title)
        click.echo(f"Renamed {found.id}.")

    with_client(command)


@session.command()
@click.argument("name", required=False)
@click.option("--at", metavar="MESSAGE", help="Copy what is before this message: its id, or N for prompt N.")
def fork(name: str | None, at: str | None) -> None:
    """Copy a session (the latest, or the one NAME means), so that it can go on in two ways."""
    from codeloop.cli import named, opened
    from codeloop.client.local import LocalClient
    from codeloop.kit.plain import one_line

    async def command(client: LocalClient) -> None:
        made = await named.fork(client, await named.find(client, name), at)
        click.echo(f"{made.id}  {one_line(made.title, 70)}")

    opened.with_client(command)


@session.command()
@click.argument("name", required=False)
@click.option("--thinking", is_flag=True, help="Show the model's thinking too.")
def show(name: str | None, *, thinking: bool) -> None:
    """Show a session (the latest, or the one NAME means) as it ran."""
    from codeloop.cli.named import find
    from codeloop.cli.opened import with_client
    from codeloop.cli.transcript import transcript
    from codeloop.client.local import LocalClient
    from codeloop.schema.operation import SESSION_MESSAGES, SESSION_QUEUED

    async def command(client: LocalClient) -> None:
        found = await find(client, name)
        messages = await client.call(SESSION_MESSAGES, session_id=found.id)
        waiting = await client.call(SESSION_QUEUED, session_id=found.id)
        transcript(found, messages, thinking=thinking, queued={message.info.id for message in waiting})

    with_client(command)


@session.command()
@click.argument("name", required=False)
def compact(name: str | None) -> None:
    """Put a summary in the place of a session's conversation, so that it can go on in less room."""
    from codeloop.cli.exits import UsageProblem
    from codeloop.cli.named import find
    from codeloop.cli.opened import with_client
    from codeloop.client.local import LocalClient
    from codeloop.schema.operation import SUMMARIZE

    async def command(client: LocalClient) -> None:
        found = await find(client, name)
        if found.model is None:
            raise UsageProblem(f"Session {found.id} has no messages yet.")
        provider_id, model_id = found.model.provider_id, found.model.id
        await client.call(SUMMARIZE, session_id=found.id, provider_id=provider_id, model_id=model_id)
        click.echo(f"Compacted {found.id}.")

    with_client(command)


@session.command()
@click.argument("name", required=False)
@click.option("--at", metavar="MESSAGE", required=True, help="The message: its id, or N for prompt N.")
@click.option("--remove", is_flag=True, help="Unpin it.")
def pin(name: str | None, at: str, *, remove: bool) -> None:
    """Pin a message of a session: a summary of the conversation leaves its text word for word."""
    from codeloop.cli import named, opened
    from codeloop.cli.exits import UsageProblem
    from codeloop.client.local import LocalClient
    from codeloop.schema.operation import PART_UPDATE
    from codeloop.schema.part import TextPart
    from codeloop.schema.wire import replace

    async def command(client: LocalClient) -> None:
        message = await named.message_at(client, await named.find(client, name), at)
        texts = [part for part in message.parts if isinstance(part, TextPart) and not part.synthetic]
        if not texts:
            raise UsageProblem(f"Message {message.info.id} has no text to pin.")
        for part in texts:
            rest = {key: value for key, value in (part.metadata or {}).items() if key != "pinned"}
            changed = replace(part, metadata=rest if remove else {**rest, "pinned": True})
            ids = {"session_id": part.session_id, "message_id": part.message_id, "part_id": part.id}
            await client.call(PART_UPDATE, **ids, part=changed)
        click.echo(f"{'Unpinned' if remove else 'Pinned'} {message.info.id}.")

    opened.with_client(command)


@session.command()
@click.argument("names", nargs=-1, required=True)
def delete(names: tuple[str, ...]) -> None:
    """Delete sessions with everything they hold; files that they changed stay as they are."""
    from codeloop.cli.named import find
    from codeloop.cli.opened import with_client
    from codeloop.client.local import LocalClient
    from codeloop.schema.operation import SESSION_DELETE

    async def command(client: LocalClient) -> None:
        for found in [await find(client, name) for name in names]:
            await client.call(SESSION_DELETE, session_id=found.id)
            click.echo(f"Deleted {found.id}.")

    with_client(command)


def _when(ms: int) -> str:
    """Give a time as people read it; `ms` since the epoch."""
    from datetime import datetime

    return f"{datetime.fromtimestamp(ms / 1000).astimezone():%Y-%m-%d %H:%M}"
