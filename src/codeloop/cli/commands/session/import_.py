"""`codeloop import`: a session from JSON."""

from pathlib import Path

import click

from codeloop.cli.commands.session.document import read_document
from codeloop.cli.target.opened import with_client
from codeloop.kit.terminal_text import inert, one_line
from codeloop.schema.api.session_requests import ImportSession
from codeloop.schema.operation import SESSION_IMPORT


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
def import_(file: Path) -> None:
    """Read a session that `export` wrote, here or with `opencode export`, from FILE or from stdin (-).

    Nothing that is there is overwritten: ids that are in use are replaced by new ones.
    """
    document = read_document(file)
    done = with_client(
        lambda client: client.call(
            SESSION_IMPORT, ImportSession(info=document.get("info"), messages=document.get("messages"))
        )
    )
    for note in done.notes:
        click.echo(f"codeloop: {inert(note)}", err=True)
    click.echo(f"Imported {done.session.id} with {done.messages} messages: {one_line(done.session.title, 70)}")
