"""Locates the session databases of all projects."""

from pathlib import Path

from codeloop.app.project import Project
from codeloop.config.project_root import GLOBAL


def find_databases(project: Project) -> list[Path]:
    """Return the databases of all projects, by their paths."""
    return sorted(project.settings.paths.project("x").parent.glob("*/codeloop.db"))


def own_directory(project: Project) -> str | None:
    """Return the directory whose sessions are the project's own: outside of repositories all share one store."""
    place = project.settings.project_root
    return str(place.directory) if place.project_id == GLOBAL else None
