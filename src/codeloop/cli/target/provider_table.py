"""The provider table as commands that send nothing need it."""

from pathlib import Path

import click
from msgspec import Struct

from codeloop.app.settings import ProjectSettings, Startup, find_settings, providers_of
from codeloop.kit.terminal_text import inert
from codeloop.model.credentials.store import Credentials
from codeloop.model.providers import Providers


class Table(Struct, frozen=True):
    """The setting of the current directory, with keys and providers."""

    settings: ProjectSettings
    providers: Providers

    @property
    def credentials(self) -> Credentials:
        """The stored keys."""
        return self.providers.credentials


def open_table() -> Table:
    """Read the configuration of the current directory. Raises `CodeloopError` when it can't be used."""
    settings = find_settings(Startup(directory=Path.cwd()))
    for warning in settings.loaded.warnings:
        click.echo(f"codeloop: {inert(warning)}", err=True)
    return Table(settings, providers_of(settings))
