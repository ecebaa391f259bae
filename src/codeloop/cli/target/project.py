"""Loads the settings of the current directory, or opens its project in this process,
for one short command.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import click

from codeloop.app.models.open_models import make_providers
from codeloop.app.project import open_project
from codeloop.app.settings import ProjectSettings, Startup, find_settings
from codeloop.client.local import LocalClient
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.model.providers import Providers

T = TypeVar("T")


def load_settings() -> ProjectSettings:
    """Return the settings of the current directory, after printing their warnings.
    Raises CodeloopError.
    """
    settings = find_settings(Startup(directory=Path.cwd()))
    for warning in settings.loaded.warnings:
        click.echo(f"codeloop: {escape_controls(warning)}", err=True)
    return settings


def load_providers() -> tuple[ProjectSettings, Providers]:
    """Return the settings of the current directory, and its providers with their keys.
    Raises CodeloopError.
    """
    settings = load_settings()
    return settings, make_providers(settings)


def run_with_local_client(command: Callable[[LocalClient], Awaitable[T]]) -> T:
    """Open the current directory's project, run `command` on its client, and close the project."""
    return run_in_directory(Path.cwd(), command)


def run_in_directory(directory: Path, command: Callable[[LocalClient], Awaitable[T]]) -> T:
    """Do as `run_with_local_client`, for the project of another directory."""

    async def open_and_run() -> T:
        project = await open_project(Startup(directory=directory))
        try:
            return await command(LocalClient(project))
        finally:
            await project.close()

    return asyncio.run(open_and_run())
