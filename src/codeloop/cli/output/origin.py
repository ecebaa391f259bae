"""Which file an agent or a command comes from."""

from pathlib import Path

from codeloop.app.settings import ProjectSettings
from codeloop.config.layers import dotted


def origin(settings: ProjectSettings, section: str, name: str) -> str:
    """Return the file that set the values of a section's entry last, as seen from the directory."""
    start = dotted((section, name)) + "."
    sources = [origin.layer.source for key, origin in settings.loaded.provenance.items() if key.startswith(start)]
    return seen_from(settings, Path(sources[-1])) if sources else "built-in"


def seen_from(settings: ProjectSettings, path: Path) -> str:
    """Return a path relative to the directory when it is below it."""
    directory = settings.place.directory
    return str(path.relative_to(directory)) if path.is_relative_to(directory) else str(path)
