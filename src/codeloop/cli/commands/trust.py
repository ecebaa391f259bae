"""`codeloop trust`: choose which directories' configuration may do more than restrict."""

import os
from datetime import UTC, datetime
from pathlib import Path

import click

from codeloop.config.paths import Paths, find_paths
from codeloop.config.project_root import find_project_root
from codeloop.config.trust import store
from codeloop.schema.errors import CodeloopError


@click.command()
@click.argument("directory", required=False, type=click.Path(path_type=Path))
@click.option("--remove", is_flag=True, help="Revoke the trust.")
@click.option("--list", "is_list", is_flag=True, help="List trusted directories.")
def trust(directory: Path | None, *, remove: bool, is_list: bool) -> None:
    """Trust the project that contains DIRECTORY (default: the current one).

    A trusted project's configuration may run programs, set servers and allow tools; otherwise it can only restrict.
    """
    paths = find_paths(os.environ)
    known = store.read_trust(paths)
    if known.warning:
        click.echo(f"codeloop: {known.warning}", err=True)
    if is_list:
        if directory or remove:
            raise click.UsageError("--list can't be combined with anything else.")
        _show(known)
    elif remove:
        _remove(paths, directory or Path.cwd())
    else:
        root = find_project_root(directory or Path.cwd(), paths, os.environ).root
        store.trust(paths, root)
        click.echo(f"Trusted: {root}")


def _show(known: store.TrustList) -> None:
    for root, entry in sorted(known.directories.items()):
        since = datetime.fromtimestamp(entry.time / 1000, UTC).astimezone()
        gone = "" if Path(root).is_dir() else "  (no longer there)"
        click.echo(f"{since:%Y-%m-%d %H:%M}  {root}{gone}")
    if not known.directories:
        click.echo("No directory is trusted.")


def _remove(paths: Paths, directory: Path) -> None:
    root = find_project_root(directory, paths, os.environ).root if directory.is_dir() else directory
    if not store.distrust(paths, root):
        raise CodeloopError(f"{root} was not trusted. `codeloop trust --list` shows trusted directories.")
    click.echo(f"No longer trusted: {root}")
