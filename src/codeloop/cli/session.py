"""`codeloop session`: list, show, delete."""

import click


@click.group()
def session() -> None:
    """List, show and delete the sessions of this project."""


@session.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
def list_(*, as_json: bool, limit: int) -> None:
    """List sessions, the newest change first."""
    import msgspec

    from codeloop.cli.opened import with_client
    from codeloop.cli.style import dollars
    from codeloop.kit.plain import inert_json, one_line
    from codeloop.schema.operation import SESSION_LIST

    sessions = with_client(lambda client: client.call(SESSION_LIST, limit=limit))
    if as_json:
        click.echo(inert_json(msgspec.json.encode(sessions).decode()))
        return
    for each in sessions:
        changed = _when(each.time.updated)
        click.echo(f"{each.id}  {changed}  {dollars(each.cost or 0):>9}  {one_line(each.title, 70)}")
    if not sessions:
        click.echo('No sessions yet. Start one: codeloop run "what is this project about?"', err=True)


@session.command()
@click.argument("name", required=False)
@click.option("--thinking", is_flag=True, help="Show the model's thinking too.")
def show(name: str | None, *, thinking: bool) -> None:
    """Show a session (the latest, or the one NAME means) as it ran."""
    from codeloop.cli.opened import find, with_client
    from codeloop.cli.transcript import transcript
    from codeloop.client.local import LocalClient
    from codeloop.schema.operation import SESSION_MESSAGES

    async def command(client: LocalClient) -> None:
        found = await find(client, name)
        messages = await client.call(SESSION_MESSAGES, session_id=found.id)
        transcript(found, messages, thinking=thinking)

    with_client(command)


@session.command()
@click.argument("name", required=False)
def compact(name: str | None) -> None:
    """Put a summary in the place of a session's conversation, so that it can go on in less room."""
    from codeloop.cli.exits import UsageProblem
    from codeloop.cli.opened import find, with_client
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
@click.argument("names", nargs=-1, required=True)
def delete(names: tuple[str, ...]) -> None:
    """Delete sessions with everything they hold; files that they changed stay as they are."""
    from codeloop.cli.opened import find, with_client
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
