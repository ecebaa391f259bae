"""`codeloop undo` and `codeloop redo`: take the last turn's changes of files back, and forward again."""

import sys

import click

from codeloop.cli.named import find
from codeloop.cli.opened import with_client
from codeloop.cli.reverting import redo_last, undo_last
from codeloop.client.local import LocalClient


@click.command()
@click.option("-s", "--session", "name", metavar="ID", help="The session; without it the latest one.")
@click.option("--dry-run", is_flag=True, help="Only tell what would become of the files.")
def undo(name: str | None, *, dry_run: bool) -> None:
    """Undo the last turn: its files are put back, except those that somebody changed since."""

    async def command(client: LocalClient) -> int:
        return await undo_last(client, await find(client, name), dry_run=dry_run)

    sys.exit(with_client(command))


@click.command()
@click.option("-s", "--session", "name", metavar="ID", help="The session; without it the latest one.")
@click.option("--dry-run", is_flag=True, help="Only tell what would become of the files.")
def redo(name: str | None, *, dry_run: bool) -> None:
    """Take the last undo back, until the next prompt of the session."""

    async def command(client: LocalClient) -> int:
        return await redo_last(client, await find(client, name), dry_run=dry_run)

    sys.exit(with_client(command))
