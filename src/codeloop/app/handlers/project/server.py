"""Handlers of the server process: its health, and reloading the configuration of directories."""

from pathlib import Path

from codeloop import __version__
from codeloop.app.app import App
from codeloop.schema.api.project import Health
from codeloop.schema.operation import NoArguments


async def get_health(_app: App, _directory: Path, _args: NoArguments) -> Health:
    """Return that the server answers, and its version."""
    return Health(healthy=True, version=__version__)


async def dispose(app: App, directory: Path, _args: NoArguments) -> bool:
    """Reload the configuration of a directory."""
    await app.renew(directory)
    return True


async def dispose_all(app: App, _directory: Path, _args: NoArguments) -> bool:
    """Reload the configuration of all directories."""
    await app.renew_all()
    return True
