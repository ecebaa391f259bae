"""Records of the work trees that codeloop made: their states, branches and starting points.

A record is written before its work tree is made, and deleted after all of it is removed. So the remains of an operation
that was cut off at any step are found again.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from codeloop.app.handlers.worktrees.folder import find_worktrees_folder
from codeloop.app.project import Project
from codeloop.config.files import write_private
from codeloop.kit.git import find_common_folder, find_git_folder
from codeloop.kit.small_files import read_start
from codeloop.schema.errors import OperationError
from codeloop.schema.wire import DECODE_ERRORS, Wire

# A record has a few hundred bytes, so a larger file is not one.
_MAX_RECORD_BYTES = 64 * 1024
_MAX_NAMES = 8
"""The work trees that an error message names."""


class WorktreeRecord(Wire):
    """The state of a work tree, and the branch or commit that it was made from.

    `base`: a branch, or a commit if `is_branch` is False. `start`: the commit that it began at; "" for a work tree
    without a stored record. `created`: ms since the epoch.
    """

    name: str
    state: Literal["making", "ready", "removing"] = "ready"
    branch: str | None = None
    base: str | None = None
    is_branch: bool = True
    start: str = ""
    created: int = 0


def write_record(project: Project, record: WorktreeRecord) -> None:
    """Store a record. Blocks. Raises OSError."""
    write_private(find_worktrees_folder(project) / f"{record.name}.json", msgspec.json.encode(record).decode())


def delete_record(project: Project, name: str) -> None:
    """Delete the record of a work tree. Blocks. Raises OSError."""
    (find_worktrees_folder(project) / f"{name}.json").unlink(missing_ok=True)


def read_records(project: Project) -> list[WorktreeRecord]:
    """Return the records of the project's work trees, by name; a work tree without a record gets an empty one. Blocks.

    Clones of one repository share this folder. Work trees of another clone are left out.
    """
    parent, repository = find_worktrees_folder(project), _find_repository(project.settings.project_root.root)
    worktree_records: dict[str, WorktreeRecord] = {}
    with suppress(OSError):
        for entry in sorted(parent.iterdir()):
            if entry.suffix == ".json":
                with suppress(OSError, *DECODE_ERRORS):
                    record = msgspec.json.decode(read_start(entry, _MAX_RECORD_BYTES), type=WorktreeRecord)
                    worktree_records[record.name] = record
            elif (entry / ".git").is_file():
                worktree_records.setdefault(entry.name, WorktreeRecord(name=entry.name))
    own_records = (
        each for each in worktree_records.values() if _find_repository(parent / each.name) in (None, repository)
    )
    return sorted(own_records, key=lambda each: each.name)


def find_record(project: Project, name: str) -> WorktreeRecord:
    """Return the record of the work tree with this name, branch or folder. Blocks. Raises OperationError."""
    records, parent = read_records(project), find_worktrees_folder(project)
    for record in records:
        if name in {record.name, record.branch, str(parent / record.name)}:
            return record
    names = ", ".join(each.name for each in records[:_MAX_NAMES])
    raise OperationError(
        "NotFoundError",
        f"There is no work tree {name}. " + (f"There are: {names}." if names else "`codeloop --worktree` makes one."),
    )


def _find_repository(root: Path) -> str | None:
    """Return the real path of the git folder that a work tree shares with others of its repository."""
    folder = find_git_folder(root)
    return None if folder is None else os.path.realpath(find_common_folder(folder))
