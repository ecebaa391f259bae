"""Handlers of the process: health, and reloading directories."""

from pathlib import Path

from codeloop import __version__
from codeloop.app.app import App
from codeloop.schema.api.project import Health
from codeloop.schema.operation import NoArguments


async def health(_app: App, _directory: Path, _args: NoArguments) -> Health:
    """Return that the server answers, and its version."""
    return Health(healthy=True, version=__version__)


async def dispose(app: App, directory: Path, _args: NoArguments) -> bool:
    """Have a directory's configuration read again."""
    await app.renew(directory)
    return True


async def dispose_all(app: App, _directory: Path, _args: NoArguments) -> bool:
    """Have every directory's configuration read again."""
    await app.renew_all()
    return True
