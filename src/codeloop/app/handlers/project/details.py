"""Stores what the user sets about a project (name, icon, commands), and finds the folder of its further work trees."""

from pathlib import Path

import msgspec

from codeloop.config.files import read_text, write_private
from codeloop.config.paths import Paths
from codeloop.schema.api.project import ProjectCommands, ProjectIcon
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CONFIG_BYTES
from codeloop.schema.wire import Wire

_FILE = "about.json"


class ProjectDetails(Wire):
    """A project's name, icon and commands, as the user sets them."""

    name: str | None = None
    icon: ProjectIcon | None = None
    commands: ProjectCommands | None = None


def read_details(folder: Path) -> ProjectDetails:
    """Read the details of the project with this data folder; empty ones if the file can't be read. Blocks."""
    try:
        text = read_text(folder / _FILE, CONFIG_BYTES.value)
        return ProjectDetails() if text is None else msgspec.json.decode(text, type=ProjectDetails)
    except (CodeloopError, msgspec.DecodeError):
        return ProjectDetails()


def write_details(folder: Path, details: ProjectDetails) -> None:
    """Store the details of a project. Blocks. Raises OSError."""
    write_private(folder / _FILE, msgspec.json.encode(details).decode())


def worktree_folder(paths: Paths, project_id: str) -> Path:
    """Return the folder of a project's further work trees. It is outside codeloop's data, which commands can't read."""
    return paths.data.resolve().with_name("codeloop-worktrees") / project_id


def list_worktrees(paths: Paths, project_id: str) -> list[str]:
    """Return the folders of the work trees that were made for a project. Blocks."""
    folder = worktree_folder(paths, project_id)
    try:
        return sorted(str(entry) for entry in folder.iterdir() if (entry / ".git").is_file())
    except (OSError, ValueError):
        return []
