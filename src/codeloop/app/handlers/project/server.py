"""What a client asks of the process, not of one project."""

from pathlib import Path

from codeloop import __version__
from codeloop.app.app import App
from codeloop.schema.api.project import Health
from codeloop.schema.operation import NoArguments


async def health(app: App, directory: Path, args: NoArguments) -> Health:
    """Tell that the server answers."""
    del app, directory, args
    return Health(healthy=True, version=__version__)


async def dispose(app: App, directory: Path, args: NoArguments) -> bool:
    """Have a directory's configuration read anew."""
    del args
    await app.renew(directory)
    return True


async def dispose_all(app: App, directory: Path, args: NoArguments) -> bool:
    """Have every directory's configuration read anew."""
    del directory, args
    await app.renew_all()
    return True
