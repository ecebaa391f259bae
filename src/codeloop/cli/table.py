"""The provider table as commands that send nothing need it, and columns of text."""

import os
from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import Struct

from codeloop.config.load import load
from codeloop.config.paths import Paths, find_paths
from codeloop.config.project import find_place
from codeloop.config.trust import is_trusted
from codeloop.model.catalog import Catalog
from codeloop.model.credentials import Credentials
from codeloop.model.providers import Providers


class Table(Struct, frozen=True):
    """Folders, keys and providers for the current directory and environment."""

    paths: Paths
    credentials: Credentials
    providers: Providers


def open_table() -> Table:
    """Read the configuration of the current directory. Raises `CodeloopError` when it can't be used."""
    paths = find_paths(os.environ)
    place = find_place(Path.cwd(), paths, os.environ)
    loaded = load(place, paths, environment=os.environ, trusted=is_trusted(paths, place.root))
    for warning in loaded.warnings:
        click.echo(f"Warning: {warning}", err=True)
    credentials = Credentials(paths.credentials)
    return Table(paths, credentials, Providers(loaded.config, Catalog(paths.cache), credentials, os.environ))


def columns(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """Give the rows as lines of aligned columns; those of `right` are aligned on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
    return "\n".join(lines)
