"""Finds the folder of a project's further work trees, and lists the trees in it.

The handlers of projects use it too, so it does not import the parts that run git.
"""

from pathlib import Path

from codeloop.app.project import Project
from codeloop.config.paths import Paths


def find_project_worktrees_folder(paths: Paths, project_id: str) -> Path:
    """Return the folder of a project's further work trees. It is outside codeloop's data, which commands can't read."""
    return paths.data.resolve().with_name("codeloop-worktrees") / project_id


def find_worktrees_folder(project: Project) -> Path:
    """Return the folder with the work trees of an open project and their records."""
    return find_project_worktrees_folder(project.settings.paths, project.settings.project_root.project_id)


def list_worktrees(paths: Paths, project_id: str) -> list[str]:
    """Return the folders of the work trees that were made for a project, sorted. Blocks."""
    folder = find_project_worktrees_folder(paths, project_id)
    try:
        return sorted(str(entry) for entry in folder.iterdir() if (entry / ".git").is_file())
    # The folder is made with the first work tree. A client may send a project's id that can't be a path (ValueError).
    except (OSError, ValueError):
        return []
