"""Finds the folders of a project's further work trees, and lists the trees in them.

A project's trees are in `codeloop-worktrees/NAME`, NAME being that of its main folder. Which one is
a project's own is said by a link, `.projects/ID`. Trees that were made before there were such names
are in `codeloop-worktrees/ID`.
The handlers of projects use this too, so it does not import the parts that run git.
"""

import os
import re
from contextlib import suppress
from pathlib import Path

from codeloop.app.project import Project
from codeloop.config.paths import Paths
from codeloop.kit.git import find_common_folder, find_git_folder

_MAX_NAME_CHARS = 48
_ID_CHARS = 8
"""The characters of a project's id after its name, where another project has the same name."""


def list_project_folders(paths: Paths, project_id: str) -> list[Path]:
    """Return the folders that may hold a project's further work trees, that of new ones first.
    Blocks.

    They are outside codeloop's data, which commands can't read, and need not exist.
    """
    home = _get_home(paths)
    folders = [home / project_id]
    # A client may send an id that can't be a path (ValueError).
    with suppress(OSError, ValueError):
        folders.insert(0, home / Path(os.readlink(_get_link(home, project_id))).name)
    return folders


def list_worktrees_folders(project: Project) -> list[Path]:
    """Return the folders that may hold the work trees of an open project and their records.
    Blocks.
    """
    return list_project_folders(project.settings.paths, project.settings.project_root.project_id)


def find_tree_folder(project: Project, name: str) -> Path:
    """Return the folder of the project's work tree of this name, or the one that a new tree gets.
    Blocks.
    """
    folders = list_worktrees_folders(project)
    for folder in folders:
        if os.path.lexists(folder / name) or os.path.lexists(folder / f"{name}.json"):
            return folder / name
    return folders[0] / name


def make_worktrees_folder(project: Project) -> None:
    """Make the folder of the project's new work trees, if there is none. Blocks. Raises OSError."""
    project_id = project.settings.project_root.project_id
    home = _get_home(project.settings.paths)
    link = _get_link(home, project_id)
    if not os.path.lexists(link):
        link.parent.mkdir(parents=True, exist_ok=True)
        folder = home / _name_folder(project)
        try:
            folder.mkdir()
        except FileExistsError:
            folder = folder.with_name(f"{folder.name}-{project_id[:_ID_CHARS]}")
        # Another process may have made it just now.
        with suppress(FileExistsError):
            link.symlink_to(Path("..", folder.name))
    (home / Path(os.readlink(link)).name).mkdir(exist_ok=True)


def list_worktrees(paths: Paths, project_id: str) -> list[str]:
    """Return the folders of the work trees that were made for a project, sorted. Blocks."""
    trees: set[str] = set()
    for folder in list_project_folders(paths, project_id):
        # A folder is made with its first work tree. A client may send an id that can't
        # be a path (ValueError).
        with suppress(OSError, ValueError):
            trees |= {str(entry) for entry in folder.iterdir() if (entry / ".git").is_file()}
    return sorted(trees)


def _get_home(paths: Paths) -> Path:
    return paths.data.resolve().with_name("codeloop-worktrees")


def _get_link(home: Path, project_id: str) -> Path:
    """Return the link that leads from a project's id to the folder of its work trees."""
    return home / ".projects" / project_id


def _name_folder(project: Project) -> str:
    """Return the name of the folder with a project's work trees: that of the folder with
    its `.git`, in plain form.
    """
    root = project.settings.project_root.root
    git_folder = find_git_folder(root)
    common = (
        Path(os.path.realpath(find_common_folder(git_folder)))
        if git_folder is not None
        else root / ".git"
    )
    # A repository without files of its own, or a submodule's, has another name.
    name = common.parent.name if common.name == ".git" else root.name
    return re.sub(r"[^\w.-]+", "-", name).strip(".-")[:_MAX_NAME_CHARS] or "project"
