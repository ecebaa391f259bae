"""`codeloop undo` and `codeloop redo`: take the last turn's changes of files back, and forward again."""

import sys

import click

from codeloop.cli.group import completed
from codeloop.cli.target.named import find_here
from codeloop.cli.target.opened import with_client
from codeloop.cli.undo_redo import redo_last, undo_last, undo_some
from codeloop.client.local import LocalClient

OF_SESSION = click.option(
    "-s",
    "--session",
    "name",
    metavar="ID",
    shell_complete=completed("session"),
    help="The session; without it this directory's latest.",
)


@click.command()
@click.argument("files", nargs=-1, type=click.Path())
@OF_SESSION
@click.option("--dry-run", is_flag=True, help="Only tell what would become of the files.")
def undo(files: tuple[str, ...], name: str | None, *, dry_run: bool) -> None:
    """Undo the last turn: its files are put back, except those that somebody changed since.

    With FILES only these (or what is below these folders) are put back, and the conversation stays as it is.
    """

    async def command(client: LocalClient) -> int:
        session = await find_here(client, name)
        if files:
            return await undo_some(client, session, files, redo=False, dry_run=dry_run)
        return await undo_last(client, session, dry_run=dry_run)

    sys.exit(with_client(command))


@click.command()
@click.argument("files", nargs=-1, type=click.Path())
@OF_SESSION
@click.option("--dry-run", is_flag=True, help="Only tell what would become of the files.")
def redo(files: tuple[str, ...], name: str | None, *, dry_run: bool) -> None:
    """Take the last undo back, until the next prompt of the session.

    With FILES: take back what `undo FILES` did.
    """

    async def command(client: LocalClient) -> int:
        session = await find_here(client, name)
        if files:
            return await undo_some(client, session, files, redo=True, dry_run=dry_run)
        return await redo_last(client, session, dry_run=dry_run)

    sys.exit(with_client(command))
