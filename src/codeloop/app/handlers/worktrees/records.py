"""Records of the work trees that codeloop made: their states, branches and starting points.

A record is written before its work tree is made, and deleted after all of it is removed. So the
remains of an operation that was cut off at any step are found again.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from codeloop.app.handlers.worktrees.folder import find_tree_folder, list_worktrees_folders
from codeloop.app.project import Project
from codeloop.config.files import write_private
from codeloop.kit.git import find_common_folder, find_git_folder
from codeloop.kit.small_files import read_start
from codeloop.schema.errors import OperationError
from codeloop.schema.wire import DECODE_ERRORS, Wire
from codeloop.workspace.git.linked_trees import repair_links

# A record has a few hundred bytes, so a larger file is not one.
_MAX_RECORD_BYTES = 64 * 1024
_MAX_NAMES = 8
"""The work trees that an error message names."""


class WorktreeRecord(Wire):
    """The state of a work tree, and the branch or commit that it was made from.

    `base`: a branch, or a commit if `is_branch` is False. `start`: the commit that it began at; ""
    for a work tree without a stored record. `created`: ms since the epoch.
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
    write_private(_get_record_file(project, record.name), msgspec.json.encode(record).decode())


def delete_record(project: Project, name: str) -> None:
    """Delete the record of a work tree. Blocks. Raises OSError."""
    _get_record_file(project, name).unlink(missing_ok=True)


def _get_record_file(project: Project, name: str) -> Path:
    folder = find_tree_folder(project, name)
    return folder.with_name(f"{folder.name}.json")


def read_records(project: Project) -> list[WorktreeRecord]:
    """Return the records of the project's work trees, by name;
    a work tree without a record gets an empty one. Blocks.

    Clones of one repository share its folders. Work trees of another clone are left out.
    """
    repository = _find_repository(project.settings.project_root.root)
    worktree_records: dict[str, WorktreeRecord] = {}
    for folder in list_worktrees_folders(project):
        found = _read_folder(folder)
        if repository is not None:
            # The repository, or codeloop's folder, may have been renamed.
            with suppress(OSError):
                repair_links(Path(repository), [folder / record.name for record in found])
        for record in found:
            if _find_repository(folder / record.name) in (None, repository):
                worktree_records.setdefault(record.name, record)
    return [worktree_records[name] for name in sorted(worktree_records)]


def _read_folder(folder: Path) -> list[WorktreeRecord]:
    """Return the records in a folder of work trees; a work tree without a record gets an empty one.
    Blocks.
    """
    worktree_records: dict[str, WorktreeRecord] = {}
    with suppress(OSError):
        for entry in sorted(folder.iterdir()):
            if entry.suffix == ".json":
                with suppress(OSError, *DECODE_ERRORS):
                    record = msgspec.json.decode(
                        read_start(entry, _MAX_RECORD_BYTES), type=WorktreeRecord
                    )
                    worktree_records[record.name] = record
            elif (entry / ".git").is_file():
                worktree_records.setdefault(entry.name, WorktreeRecord(name=entry.name))
    return list(worktree_records.values())


def find_record(project: Project, name: str) -> WorktreeRecord:
    """Return the record of the work tree with this name, branch or folder. Blocks.
    Raises OperationError.
    """
    records = read_records(project)
    for record in records:
        if name in {record.name, record.branch, str(find_tree_folder(project, record.name))}:
            return record
    names = ", ".join(each.name for each in records[:_MAX_NAMES])
    raise OperationError(
        "NotFoundError",
        f"There is no work tree {name}. "
        + (f"There are: {names}." if names else "`codeloop --worktree` makes one."),
    )


def _find_repository(root: Path) -> str | None:
    """Return the real path of the git folder that a work tree shares with
    others of its repository.
    """
    folder = find_git_folder(root)
    return None if folder is None else os.path.realpath(find_common_folder(folder))
