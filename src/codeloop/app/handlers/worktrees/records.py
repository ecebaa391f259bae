"""What is stored of each work tree that was made: written before anything of it exists, deleted when nothing is left.

So whatever is cut off, at whatever step, is found again and named.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from codeloop.app.handlers.project.details import worktree_folder
from codeloop.app.handlers.workspace.vcs import git_of
from codeloop.app.project import Project
from codeloop.config.files import write_private
from codeloop.kit.git import common_folder, git_folder
from codeloop.kit.small_files import read_start
from codeloop.schema.errors import Kind, OperationError
from codeloop.schema.wire import Wire
from codeloop.store.queries import ALL, SessionFilter
from codeloop.workspace.git.worktrees import Worktrees

_BYTES = 64 * 1024


class WorktreeRecord(Wire):
    """A work tree: how far it is, and what it was made from.

    `base`: a branch, or a commit when `is_branch` is false. `start`: the commit that it began at; empty in a record
    that was made up for one without. `created`: ms since 1970.
    """

    name: str
    state: Literal["making", "ready", "removing"] = "ready"
    branch: str | None = None
    base: str | None = None
    is_branch: bool = True
    start: str = ""
    created: int = 0


def home_of(project: Project) -> Path:
    """Return the folder with the work trees of a project and their records."""
    return worktree_folder(project.settings.paths, project.settings.project_root.project_id)


def write_record(project: Project, record: WorktreeRecord) -> None:
    """Store a record. Blocks. Raises OSError."""
    write_private(home_of(project) / f"{record.name}.json", msgspec.json.encode(record).decode())


def delete_record(project: Project, name: str) -> None:
    """Forget a work tree of which nothing is left. Blocks. Raises OSError."""
    (home_of(project) / f"{name}.json").unlink(missing_ok=True)


def read_records(project: Project) -> list[WorktreeRecord]:
    """Return the work trees of the project's repository, by name, also those that have no record. Blocks.

    Clones of one repository share their project's folder: those of another clone are left out.
    """
    home, own = home_of(project), _repository(project.settings.project_root.root)
    worktree_records: dict[str, WorktreeRecord] = {}
    with suppress(OSError):
        for entry in sorted(home.iterdir()):
            if entry.suffix == ".json":
                with suppress(OSError, msgspec.DecodeError):
                    record = msgspec.json.decode(read_start(entry, _BYTES), type=WorktreeRecord)
                    worktree_records[record.name] = record
            elif (entry / ".git").is_file():
                worktree_records.setdefault(entry.name, WorktreeRecord(name=entry.name))
    kept = (each for each in worktree_records.values() if _repository(home / each.name) in (None, own))
    return sorted(kept, key=lambda each: each.name)


def find_record(project: Project, name: str) -> WorktreeRecord:
    """Return the work tree with this name, branch or folder. Blocks. Raises OperationError: there is none."""
    records, home = read_records(project), home_of(project)
    for record in records:
        if name in {record.name, record.branch, str(home / record.name)}:
            return record
    names = ", ".join(each.name for each in records[:8])
    raise OperationError(
        "NotFoundError",
        f"There is no work tree {name}. " + (f"There are: {names}." if names else "`codeloop --worktree` makes one."),
    )


def trees_of(project: Project, kind: Kind) -> Worktrees:
    """Return the work trees of a project's repository. Raises OperationError outside of one."""
    git = git_of(project)
    if git is None:
        raise OperationError(
            kind, f"{project.settings.project_root.root} is in no git repository; `git init` makes one."
        )
    return Worktrees(git, is_trusted=project.settings.trusted)


def list_running(project: Project, folder: Path) -> list[str]:
    """Return the ids of the sessions of a folder, or of one below it, in which a turn runs."""
    store, top = project.store, str(folder)
    return [
        session.id
        for session in store.queries.sessions(SessionFilter(limit=ALL))
        if (session.directory == top or session.directory.startswith(top + "/")) and store.leases.is_held(session.id)
    ]


def check_idle(project: Project, folder: Path) -> None:
    """Raise OperationError when a turn of a session runs in a folder."""
    for session_id in list_running(project, folder):
        raise OperationError("SessionBusyError", f"The session {session_id} works in {folder}. Abort it first.")


def _repository(root: Path) -> str | None:
    folder = git_folder(root)
    return None if folder is None else os.path.realpath(common_folder(folder))
