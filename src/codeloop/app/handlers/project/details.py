"""Reads and writes the details that a user gives a project: its name, icon and commands."""

from pathlib import Path

import msgspec

from codeloop.config.files import read_text, write_private
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CONFIG_BYTES
from codeloop.schema.resources import ProjectCommands, ProjectIcon
from codeloop.schema.wire import Wire

_DETAILS_FILE = "about.json"


class ProjectDetails(Wire):
    """The name, icon and commands that the user gave a project."""

    name: str | None = None
    icon: ProjectIcon | None = None
    commands: ProjectCommands | None = None


def read_details(folder: Path) -> ProjectDetails:
    """Read the details of the project with this data folder; empty ones if the file can't be read.
    Blocks.
    """
    try:
        text = read_text(folder / _DETAILS_FILE, CONFIG_BYTES.value)
        return ProjectDetails() if text is None else msgspec.json.decode(text, type=ProjectDetails)
    except (CodeloopError, msgspec.DecodeError):
        return ProjectDetails()


def write_details(folder: Path, details: ProjectDetails) -> None:
    """Store the details of a project. Blocks. Raises OSError."""
    write_private(folder / _DETAILS_FILE, msgspec.json.encode(details).decode())
