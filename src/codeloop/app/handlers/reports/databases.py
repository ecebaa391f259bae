"""Finds the session databases of all projects."""

from pathlib import Path

from codeloop.app.project import Project
from codeloop.config.project_root import GLOBAL_PROJECT_ID


def find_databases(project: Project) -> list[Path]:
    """Return the paths of all projects' databases, sorted."""
    return sorted(project.settings.paths.get_project_folder("x").parent.glob("*/codeloop.db"))


def find_own_directory(project: Project) -> str | None:
    """Return the directory that selects the project's sessions in its database; None: all of them are the project's.

    Directories outside of repositories share one database.
    """
    project_root = project.settings.project_root
    return str(project_root.directory) if project_root.project_id == GLOBAL_PROJECT_ID else None
