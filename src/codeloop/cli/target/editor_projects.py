"""`EditorProjects`: opens the projects of an editor in this process, for `codeloop acp`."""

from math import inf
from pathlib import Path

from msgspec.structs import replace

from codeloop.app.app import App
from codeloop.app.extensions.open_with_extensions import (
    carry_over_warnings,
    wait_for_config_changes,
)
from codeloop.cli.option_values import Options
from codeloop.cli.target.local import make_startup
from codeloop.client.client import Client
from codeloop.client.directory_client import DirectoryClient
from codeloop.schema.editor import RunInEditor
from codeloop.tool.services import SaveBuffer


class EditorProjects:
    """Opens the project of each directory that the editor names,
    and keeps it open until `close`.
    """

    def __init__(
        self, options: Options, save_buffer: SaveBuffer, run_in_editor: RunInEditor | None
    ) -> None:
        startup = replace(
            make_startup(options, None), save_buffer=save_buffer, run_in_editor=run_in_editor
        )
        # An idle project would be closed, and forget which files the model has read.
        self._app = App(startup, idle_seconds=inf)

    async def open(self, directory: str) -> tuple[Client, tuple[str, ...]]:
        """Return the client of an absolute directory, and notes for the user.
        Raises CodeloopError.
        """
        # Extensions may change the configuration, which opens the project anew.
        project = await self._app.get_project(Path(directory))
        if await wait_for_config_changes(project):
            project = carry_over_warnings(await self._app.get_project(Path(directory)), project)
        project.refresh_catalog()
        return DirectoryClient(self._app, Path(directory)), tuple(project.settings.loaded.warnings)

    async def close(self) -> None:
        """Close every project."""
        await self._app.close()
