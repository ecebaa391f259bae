"""Translates permission rules that deny files to paths that the sandbox makes unwritable or unreadable."""

import os
from collections.abc import Iterator
from pathlib import Path

from codeloop.kit.wildcard import matches
from codeloop.schema.bounds.sandbox import DENIED_ENTRIES
from codeloop.schema.limits import BASH_FILES
from codeloop.schema.wire import replace
from codeloop.tool.call_session import CallSession
from codeloop.tool.files.file_access import make_permission_name
from codeloop.workspace.git.planted.quarantine import locate_quarantine, move_away
from codeloop.workspace.sandbox.paths.restricted_paths import FOLDERS_NOT_SEARCHED
from codeloop.workspace.sandbox.policy import NO_GRANTS, SandboxGrants
from codeloop.workspace.workspace import Workspace

# A name that no file has (of the private use area): a rule that denies it in a folder denies every new file there.
_NEW_FILE_NAME = "\ue000any"


def add_denied_paths(workspace: Workspace, session: CallSession, grants: SandboxGrants = NO_GRANTS) -> SandboxGrants:
    """Return grants extended by the paths that a session's rules deny. Reads the disk if there are such rules."""
    unwritable = tuple(_list_denied(workspace, session, "edit"))
    unreadable = tuple(path for path in _list_denied(workspace, session, "read") if os.path.lexists(path))
    return replace(grants, unwritable=unwritable, unreadable=unreadable) if unwritable or unreadable else grants


def move_denied_files(workspace: Workspace, session: CallSession, before: SandboxGrants) -> list[str]:
    """Move files that a command created against a rule out of the project; return a note on each.

    A sandbox protects the paths that were denied when it was started (`before`); a file that matches a denied pattern
    and did not exist then can only be found afterwards. The notes are for the model and the user.
    """
    folder = locate_quarantine(workspace.scratch)
    earlier = set(before.unwritable)
    new = [path for path in _list_denied(workspace, session, "edit") if path not in earlier and os.path.lexists(path)]
    notes: list[str] = []
    for path in new:
        target = move_away(path, folder)
        if target is not None:
            name = workspace.format_for_user(path)
            notes.append(f"{name} may not be written by a rule: it was moved to {target}.")
    return notes


def has_denials(session: CallSession) -> bool:
    """Return whether a rule of the session denies some paths for reading or writing."""
    return bool(session.list_denials("edit") or session.list_denials("read"))


def _list_denied(workspace: Workspace, session: CallSession, permission: str) -> Iterator[Path]:
    """Yield the denied files, and the folders in which everything is denied."""
    seen: set[Path] = set()
    for pattern in session.list_denials(permission):
        for path in _list_candidates(workspace, pattern):
            real = Path(os.path.realpath(path))
            # Of a link, its target and the link itself.
            for each in (real, path.parent.resolve() / path.name):
                if each in seen or not each.is_relative_to(workspace.root) or each == workspace.root:
                    continue
                seen.add(each)
                yield from _find_denied(workspace, session, permission, each)


def _find_denied(workspace: Workspace, session: CallSession, permission: str, path: Path) -> Iterator[Path]:
    """Yield a path if it and everything in it is denied; of a folder with exceptions, yield the denied files."""
    name = make_permission_name(workspace, path)
    if not path.is_dir():
        # A path that does not exist may become a folder.
        if "deny" in session.judge(permission, [name, f"{name}/{_NEW_FILE_NAME}"]).values():
            yield path
        return
    files = [path / each for each in _list_files_below(path, BASH_FILES.value)]
    names = {make_permission_name(workspace, file): file for file in files}
    verdicts = session.judge(permission, [*names, f"{name}/{_NEW_FILE_NAME}"])
    if verdicts and all(verdicts.get(each) == "deny" for each in (*names, f"{name}/{_NEW_FILE_NAME}")):
        yield path
    else:
        yield from (file for each, file in names.items() if verdicts.get(each) == "deny")


def _list_candidates(workspace: Workspace, pattern: str) -> Iterator[Path]:
    """Yield the files and folders of a project that a pattern may match; for `folder/*` only the folder."""
    root = workspace.root
    start, star, rest = pattern.partition("*")
    if "?" in start:
        start, star = start.partition("?")[0], "?"
    if not star:
        yield root / start
        return
    folder = root / start.rpartition("/")[0]
    if start.endswith("/") and not rest.strip("*/"):
        yield folder
        return
    if not folder.is_relative_to(root):
        return
    for name in _list_files_below(folder, DENIED_ENTRIES.value):
        path = folder / name
        if matches(make_permission_name(workspace, path), pattern):
            yield path


def _list_files_below(folder: Path, limit: int) -> Iterator[str]:
    """Yield the relative paths of files below a folder, without installed packages; stop after `limit` entries."""
    count = 0
    for top, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in FOLDERS_NOT_SEARCHED]
        for name in files:
            yield str(Path(top, name).relative_to(folder))
        count += len(files) + len(folders)
        if count > limit:
            return
