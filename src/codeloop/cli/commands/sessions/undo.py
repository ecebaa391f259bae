"""`codeloop undo` and `codeloop redo`: undo the last turn with its file changes, or certain files,
and redo it.
"""

import sys

import click

from codeloop.cli.options import make_completion
from codeloop.cli.target.run_with_client import run_with_client
from codeloop.cli.target.selection import find_local_session
from codeloop.client.client import Client
from codeloop.client.undo_redo import redo_last, undo_files, undo_last

FILES_ARGUMENT = click.argument("files", nargs=-1, type=click.Path())
UNDO_SESSION_OPTION = click.option(
    "-s",
    "--session",
    "name",
    metavar="ID",
    shell_complete=make_completion("session"),
    help="Session to change. [default: this directory's latest]",
)
DRY_RUN_OPTION = click.option(
    "--dry-run", is_flag=True, help="Show what would happen and change nothing."
)


@click.command()
@FILES_ARGUMENT
@UNDO_SESSION_OPTION
@DRY_RUN_OPTION
def undo(files: tuple[str, ...], name: str | None, *, dry_run: bool) -> None:
    """Undo the last turn: restore its files, except those that were changed since.

    With FILES, restore only these files, or those below these folders, and keep the conversation.
    """
    _change_turn(files, name, redo=False, dry_run=dry_run)


@click.command()
@FILES_ARGUMENT
@UNDO_SESSION_OPTION
@DRY_RUN_OPTION
def redo(files: tuple[str, ...], name: str | None, *, dry_run: bool) -> None:
    """Redo the last turn that was undone; possible until the session's next prompt.

    With FILES, redo what `undo FILES` undid.
    """
    _change_turn(files, name, redo=True, dry_run=dry_run)


def _change_turn(files: tuple[str, ...], name: str | None, *, redo: bool, dry_run: bool) -> None:
    async def find_and_change(client: Client) -> int:
        session = await find_local_session(client, name)
        if files:
            return await undo_files(
                client, session, files, redo=redo, dry_run=dry_run, say=click.echo, warn=_warn
            )
        change = redo_last if redo else undo_last
        return await change(client, session, dry_run=dry_run, say=click.echo, warn=_warn)

    sys.exit(run_with_client(find_and_change))


def _warn(text: str) -> None:
    click.echo(text, err=True)
