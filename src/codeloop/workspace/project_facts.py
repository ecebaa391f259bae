"""What a model would look up first about a project: branch, changes, what lies at the top, how it is checked.

Found by reading a few files with bounds; nothing is run. What files are named is data: it is cut and made inert.
"""

import os
from collections.abc import Mapping
from hashlib import sha1
from itertools import islice
from pathlib import Path

from codeloop.kit.small_files import read_start
from codeloop.kit.terminal_text import one_line
from codeloop.schema.limits import FACTS
from codeloop.workspace.git.head import Head
from codeloop.workspace.git.index import Tracked, open_repository, read_small
from codeloop.workspace.project_checks import project_checks

_NAMES = 40
_NAME = 40
_LISTED = 2_000
"""Entries of a folder that are looked at."""
_INDEX = 48 * 1024
"""Bytes of an index that is compared, some 500 files; of a larger repository only the branch is told."""
_CONTENT = 256 * 1024
_SHOWN_CHANGES = 3
_UNUSUAL = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "info/sparse-checkout")
"""What says that an index holds more than one row a file, or files that are not there on purpose."""
_NOISE = frozenset(("node_modules", "__pycache__", "venv", "CVS"))


def project_facts(root: Path, directory: Path, environment: Mapping[str, str]) -> str:
    """Return the facts as lines, at most FACTS bytes. `root`: the work tree's top, which holds `.git`."""
    there = _listed(directory)
    checks = project_checks(directory, root, there, environment.get("PATH"))
    if not checks and root != directory:
        checks = project_checks(root, root, _listed(root), environment.get("PATH"))
    head = [_git(root) if (root / ".git").exists() else "Git repository: no"]
    tail = [f"Its own checks: {checks}"] if checks else []
    left = FACTS.value - sum(len(line.encode()) + 1 for line in (*head, *tail))
    if left < 0:
        tail = [_cut(line, FACTS.value - sum(len(each.encode()) + 1 for each in head)) for line in tail]
        left = 0
    names = _names(there, left)
    return "\n".join((*head, *([names] if names else []), *tail))


def _cut(line: str, size: int) -> str:
    """Return a line cut to so many bytes, with an ellipsis."""
    return line.encode()[: size - 4].decode(errors="ignore") + "…"


def _listed(folder: Path) -> dict[str, bool]:
    """Return the names in a folder, each with whether it is a folder itself."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry.is_dir(follow_symlinks=False) for entry in islice(entries, _LISTED)}
    except OSError:
        return {}


def _names(there: Mapping[str, bool], size: int) -> str:
    """Return the names at the top in one line of at most `size` bytes, folders first."""
    seen = sorted(
        (not is_folder, name)
        for name, is_folder in there.items()
        if not name.startswith(".") and name not in _NOISE and not name.endswith((".egg-info", ".pyc"))
    )
    line, more = "Files here: ", " and {} more"
    for count, (is_file, name) in enumerate(seen):
        shown = ("" if not count else ", ") + one_line(name, _NAME) + ("" if is_file else "/")
        if count == _NAMES or len((line + shown + more.format(len(seen))).encode()) + 1 > size:
            return line + more.format(len(seen) - count) if count else ""
        line += shown
        if count == len(seen) - 1:
            return line
    return ""


def _git(root: Path) -> str:
    branch = Head(root).branch
    where = f"Git: branch {one_line(branch, _NAME)}" if branch else "Git: no branch is checked out"
    changed = _changed(root)
    if changed is None:
        return where
    if not changed:
        return f"{where}, no unstaged changes"
    shown = ", ".join(one_line(name, _NAME) for name in changed[:_SHOWN_CHANGES])
    more = f" and {len(changed) - _SHOWN_CHANGES} more" if len(changed) > _SHOWN_CHANGES else ""
    return f"{where}, unstaged changes: {shown}{more}"


def _changed(root: Path) -> list[str] | None:
    """Return the tracked files that differ from the index; None: that can't be told from a few small reads."""
    repository = open_repository(root, with_index=False)
    if repository is None or len(read_small(repository.folder / "index", _INDEX + 1)) > _INDEX:
        return None
    if any((repository.folder / name).exists() for name in _UNUSUAL):
        return None
    repository = open_repository(root, with_index=True)
    if repository is None or not repository.tracked:
        return None
    left = _CONTENT
    changed: list[str] = []
    for folder, files in repository.tracked.items():
        for name, known in files.items():
            path = f"{folder}/{name}" if folder else name
            try:
                info = os.lstat(f"{root}/{path}")
            except OSError:
                changed.append(path)
                continue
            if known.same(info):
                continue
            left -= info.st_size
            if not known.blob or left < 0:
                return None
            if not _is_blob(root / path, info, known):
                changed.append(path)
    return sorted(changed)


def _is_blob(path: Path, info: os.stat_result, known: Tracked) -> bool:
    """Return whether a file, whose times differ, still holds what the index has of it."""
    try:
        data = os.fsencode(path.readlink()) if path.is_symlink() else read_start(path, info.st_size + 1)
    except OSError:
        return False
    is_program = bool(info.st_mode & 0o100) and not path.is_symlink()
    if is_program != (known.mode == 0o100755):
        return False
    return sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).digest() == known.blob
