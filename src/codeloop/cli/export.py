"""`codeloop export`: a session as JSON."""

from pathlib import Path

import click


@click.command()
@click.argument("name", required=False)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file, not to stdout.")
def export(name: str | None, output: Path | None) -> None:
    """Write a session (the latest, or the one NAME means) as JSON: its info, and its messages with their parts."""
    import msgspec

    from codeloop.cli.named import find
    from codeloop.cli.opened import with_client
    from codeloop.client.local import LocalClient
    from codeloop.kit.plain import inert_json
    from codeloop.schema.operation import SESSION_MESSAGES

    async def command(client: LocalClient) -> bytes:
        found = await find(client, name)
        messages = await client.call(SESSION_MESSAGES, session_id=found.id)
        return msgspec.json.format(msgspec.json.encode({"info": found, "messages": messages}), indent=2)

    data = with_client(command)
    if output is None:
        click.echo(inert_json(data.decode()))
        return
    try:
        output.write_bytes(data + b"\n")
    except OSError as error:
        raise click.FileError(str(output), hint=error.strerror) from error
