"""Keeps a command from cutting a history: `shallow` names the commits whose parents
git is not to look for.

A command may change it as far as git needs it: a commit is cut whose parents are missing,
and no other.
"""

import re
from contextlib import suppress

from codeloop.workspace.git.private.carrier import Carrier
from codeloop.workspace.git.private.names import HASH
from codeloop.workspace.git.private.open_folder import OpenFolder
from codeloop.workspace.git.private.own_git import OwnGit

SHALLOW_NAME = "shallow"
_MAX_BYTES = 1024 * 1024
# Git is asked for each changed line; with more, the file stays as it was.
_MAX_CHANGES = 200


def correct_shallow(carrier: Carrier, path: str, git: OwnGit) -> None:
    """Change what a command left in a private `shallow` to what git needs.
    Call it once objects were carried.

    `path`: of the file in both folders; `git`: that of the real folder.
    """
    private = carrier.private.read_stamp(path)
    if private == carrier.base.get(path)[1]:
        return
    before, left = _read_lines(carrier.real, path), _read_lines(carrier.private, path)
    changed = sorted(before ^ left)
    wanted = before
    if len(changed) <= _MAX_CHANGES:
        wanted = before & left | {line for line in changed if not _has_parent(git, line)}
    if wanted == left:
        return
    carrier.has_written = True
    carrier.notes.append(
        "the command tried to change where the history ends (shallow): it is as git needs it"
    )
    if wanted:
        carrier.private.write(path, b"".join(line + b"\n" for line in sorted(wanted)))
    else:
        carrier.private.remove(path)


def _read_lines(folder: OpenFolder, path: str) -> set[bytes]:
    with suppress(OSError):
        lines = folder.read(path, _MAX_BYTES)[0].splitlines()
        return {line for line in lines if re.fullmatch(HASH, line)}
    return set()


def _has_parent(git: OwnGit, commit: bytes) -> bool:
    """Return whether the real folder has the first parent of a commit,
    wherever its history is cut now.
    """
    name = f"{commit.decode()}^1^{{commit}}"
    return git.succeeds(("--shallow-file", "", "rev-parse", "--quiet", "--verify", name))
