"""Finds the databases with sessions: of all projects, and the part of one that is a project's."""

from pathlib import Path

from codeloop.app.project import Project
from codeloop.config.project_root import GLOBAL_PROJECT_ID


def find_databases(project: Project) -> list[Path]:
    """Return the paths of the databases of all projects on this machine, sorted. Blocks."""
    # Any id will do: the folders of all projects are side by side.
    projects_folder = project.settings.paths.get_project_folder("x").parent
    return sorted(projects_folder.glob("*/codeloop.db"))


def find_directory_filter(project: Project) -> str | None:
    """Return the directory that selects a project's sessions in its database; None if all of them are the project's.

    Directories outside of git repositories share one database.
    """
    project_root = project.settings.project_root
    return str(project_root.directory) if project_root.project_id == GLOBAL_PROJECT_ID else None
