"""`codeloop gc`: removes what was not used for long from codeloop's own folders."""

import os
import time

import click

from codeloop.app.garbage import find_garbage, remove_garbage
from codeloop.cli.options import JSON_OPTION
from codeloop.cli.output.columns import align_columns
from codeloop.cli.output.print_json import print_json
from codeloop.cli.output.streams import can_ask_user
from codeloop.config.paths import find_paths
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.errors import CodeloopError

_SECONDS_PER_DAY = 24 * 60 * 60
_USUAL_DAYS = 30


@click.command()
@click.option(
    "--older-than",
    "days",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    default=_USUAL_DAYS,
    help=f"Remove what was not used for so long (default: {_USUAL_DAYS}).",
)
@click.option(
    "--sessions", is_flag=True, help="Remove sessions that old as well, in every project."
)
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@JSON_OPTION
def gc(*, days: float, sessions: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Remove what nothing has used for long: fleets with their clones and sessions, contents kept
    for undo, logs, backups and search indexes.

    Your own files and, without --sessions, your sessions stay.
    """
    used_before = time.time() - days * _SECONDS_PER_DAY
    garbage = [*find_garbage(find_paths(os.environ), used_before, has_sessions=sessions)]
    if as_json:
        rows = [
            {
                "kind": each.kind,
                "path": str(each.path),
                "bytes": each.bytes,
                "usedAt": round(each.used_at * 1000),
                "sessions": [session.id for session in each.sessions],
            }
            for each in garbage
        ]
        print_json(rows)
    elif not garbage:
        click.echo(f"Nothing was unused for {days:g} days.", err=True)
    else:
        now = time.time()
        lines = [
            (
                each.kind,
                f"{(now - each.used_at) / _SECONDS_PER_DAY:,.0f} days",
                f"{each.bytes / 1024:,.0f} KB",
                f"{len(each.sessions)} in {each.path}" if each.sessions else str(each.path),
            )
            for each in garbage
        ]
        total = f"{sum(each.bytes for each in garbage) / 1024:,.0f} KB"
        heads = ("what", "unused for", "size", "place")
        rows = [heads, *lines, ("together", "", total, "")]
        click.echo(escape_controls(align_columns(rows, right=(1, 2))), err=not dry_run)
    if dry_run or not garbage:
        return
    if not yes and can_ask_user() and not click.confirm("Remove these permanently?", err=True):
        raise CodeloopError("Nothing was removed.")
    if left := [reason for each in garbage if (reason := remove_garbage(each))]:
        raise CodeloopError("Not everything could be removed: " + "; ".join(left))
