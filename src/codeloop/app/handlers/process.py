"""Handlers of the process itself: its health, and reloading the configuration of directories.

`app.process_dispatch` calls them with the `App`, since they are for no single project.
"""

from pathlib import Path

from codeloop import __version__
from codeloop.app.app import App
from codeloop.schema.api.process import Health
from codeloop.schema.operation import NoArguments


async def get_health(_app: App, _directory: Path, _args: NoArguments) -> Health:
    """Return the version of the server, which is healthy if it answers."""
    return Health(healthy=True, version=__version__)


async def reload_directory(app: App, directory: Path, _args: NoArguments) -> bool:
    """Reload the configuration of a directory."""
    await app.reload(directory)
    return True


async def reload_all_directories(app: App, _directory: Path, _args: NoArguments) -> bool:
    """Reload the configuration of all directories."""
    await app.reload_all()
    return True
