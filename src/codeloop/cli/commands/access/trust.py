"""`codeloop trust`: trusts a project, so that its configuration may do more than restrict;
lists and revokes trust.
"""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from codeloop.cli.output.streams import can_ask_user
from codeloop.cli.output.style import has_colour
from codeloop.cli.questions.trust_text import format_trust_changes
from codeloop.config.paths import Paths, find_paths
from codeloop.config.project_root import ProjectRoot, find_project_root
from codeloop.config.trust import store
from codeloop.config.trust.changes import list_trust_changes
from codeloop.config.trust.store import find_trust_state
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.errors import CodeloopError


@click.command()
@click.argument("directory", required=False, type=click.Path(path_type=Path))
@click.option("--remove", is_flag=True, help="Revoke the trust.")
@click.option("--list", "is_list", is_flag=True, help="List trusted directories.")
@click.option("--show", is_flag=True, help="Only show what has changed since it was trusted.")
def trust(directory: Path | None, *, remove: bool, is_list: bool, show: bool) -> None:
    """Trust the project that contains DIRECTORY (default: the current one).

    A trusted project's configuration may run programs, set servers and allow tools; otherwise it
    can only restrict. Trust is for what its files hold now: when they change, it is asked again,
    with the difference.
    """
    paths = find_paths(os.environ)
    trust_list = store.read_trust(paths)
    if trust_list.warning:
        click.echo(f"codeloop: {trust_list.warning}", err=True)
    if is_list + remove + show > 1 or (is_list and directory):
        raise click.UsageError(
            "--list, --remove and --show can't be combined, nor --list with a directory."
        )
    if is_list:
        _list_trusted(paths, trust_list)
    elif remove:
        _revoke_trust(paths, directory or Path.cwd())
    else:
        _trust_project(
            paths, find_project_root(directory or Path.cwd(), paths, os.environ), only_show=show
        )


def _trust_project(paths: Paths, project_root: ProjectRoot, *, only_show: bool) -> None:
    root, directory = project_root.root, project_root.directory
    is_asked = not only_show and can_ask_user()
    # What is shown is what is trusted, whatever the files are when the answer comes.
    shown = store.read_present_contents(paths, root.resolve(), directory) if is_asked else None
    changes = list_trust_changes(paths, root, directory, shown)
    if changes:
        click.echo(format_trust_changes(changes, colour=has_colour(sys.stdout)))
    elif only_show:
        is_known = store.find_trust_record(paths, project_root.root) is not None
        where = escape_controls(str(project_root.root))
        click.echo(
            f"Nothing has changed in {where} since it was trusted."
            if is_known
            else f"Not trusted: {where}"
        )
    if only_show:
        return
    # Without a user to ask, the call of the command counts as the yes.
    if changes and is_asked and not click.confirm("Trust it as it is now?", default=False):
        raise CodeloopError("Nothing was changed: its configuration can only tighten yours.")
    store.trust_directory(paths, root, directory, shown)
    click.echo(f"Trusted: {project_root.root}")


def _list_trusted(paths: Paths, trust_list: store.TrustList) -> None:
    for root, entry in sorted(trust_list.directories.items()):
        since = datetime.fromtimestamp(entry.time / 1000, UTC).astimezone()
        folder = Path(root)
        note = "" if folder.is_dir() else "  (no longer there)"
        if not note and entry.files is not None and find_trust_state(paths, folder, folder).reason:
            note = "  (has changed since)"
        click.echo(f"{since:%Y-%m-%d %H:%M}  {root}{note}")
    if not trust_list.directories:
        click.echo("No directory is trusted.")


def _revoke_trust(paths: Paths, directory: Path) -> None:
    # A directory that is gone can still be in the list, under the path that is given.
    root = find_project_root(directory, paths, os.environ).root if directory.is_dir() else directory
    if not store.distrust_directory(paths, root):
        raise CodeloopError(
            f"{root} was not trusted. `codeloop trust --list` shows trusted directories."
        )
    click.echo(f"No longer trusted: {root}")
