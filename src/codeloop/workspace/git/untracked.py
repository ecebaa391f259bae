"""Files that git does not track, as it would show them after they were added."""

import os
import stat
import time
from collections.abc import Sequence
from pathlib import Path

from codeloop.schema.limits import VCS_FILE, VCS_PATCH, VCS_PATCHES, VCS_TIME
from codeloop.workspace.files.safe_open import FileRefused, load
from codeloop.workspace.git.diff_parser import ChangedFile
from codeloop.workspace.git.repository import GitFailed
from codeloop.workspace.snapshot.blob import LINK, blob_name, git_mode

_SAMPLE = 8_000  # bytes in which git looks for a NUL
_QUOTED = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def untracked(root: Path, names: Sequence[str], *, with_patches: bool) -> list[ChangedFile]:
    """Return the files (relative to `root`) as added; those that are gone or can't be read are left out. Blocks.

    Raises GitFailed when it takes longer than VCS_TIME.
    """
    end = time.monotonic() + VCS_TIME.seconds
    room = VCS_PATCHES.value
    found: list[ChangedFile] = []
    for name in names:
        if time.monotonic() > end:
            raise GitFailed(f"Reading the files that git does not track in {root} takes too long; ignore some of them.")
        try:
            file = _added(root, name)
        except (OSError, FileRefused):
            continue
        room -= len(file.patch or "")
        found.append(file if with_patches and room > 0 else file.without_patch())
    return found


def _added(root: Path, name: str) -> ChangedFile:
    """Read a file. Raises OSError, FileRefused: it is gone, or no file any more."""
    path = root / name
    info = path.lstat()
    if stat.S_ISLNK(info.st_mode):
        return _shown(name, LINK, os.fsencode(path.readlink()))
    if stat.S_ISREG(info.st_mode) and info.st_size > VCS_FILE.value:
        return _binary(name, git_mode(info.st_mode), "0" * 40)
    loaded = load(path, VCS_FILE.value)
    return _shown(name, git_mode(info.st_mode), loaded.data)


def _shown(name: str, mode: int, data: bytes) -> ChangedFile:
    blob = blob_name(data)
    if b"\0" in data[:_SAMPLE]:
        return _binary(name, mode, blob)
    lines = data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))
    head = _head(name, mode, blob)
    if not lines:
        return ChangedFile(name, "added", 0, 0, head)
    if len(data) > VCS_PATCH.value:
        return ChangedFile(name, "added", lines, 0)
    span = f"+1,{lines}" if lines > 1 else "+1"
    text = data.decode("utf-8", "replace")
    body = "+" + text.removesuffix("\n").replace("\n", "\n+") + "\n"
    if not text.endswith("\n"):
        body += "\\ No newline at end of file\n"
    named = _quoted(f"b/{name}") + ("\t" if " " in name else "")
    return ChangedFile(name, "added", lines, 0, f"{head}--- /dev/null\n+++ {named}\n@@ -0,0 {span} @@\n{body}")


def _binary(name: str, mode: int, blob: str) -> ChangedFile:
    patch = f"{_head(name, mode, blob)}Binary files /dev/null and {_quoted(f'b/{name}')} differ\n"
    return ChangedFile(name, "added", 0, 0, patch)


def _head(name: str, mode: int, blob: str) -> str:
    kept = 0o100755 if mode & 0o111 and mode != LINK else LINK if mode == LINK else 0o100644
    names = f"{_quoted(f'a/{name}')} {_quoted(f'b/{name}')}"
    return f"diff --git {names}\nnew file mode {kept:o}\nindex 0000000..{blob[:7]}\n"


def _quoted(name: str) -> str:
    """Write a name as git does in a patch: as a C string when it holds quotes, backslashes or control characters."""
    shown = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if not any(ord(char) < 32 or char in '"\\\x7f' for char in shown):
        return shown
    return '"' + "".join(_escaped(char) for char in shown) + '"'


def _escaped(char: str) -> str:
    code = ord(char)
    return _QUOTED.get(code) or (f"\\{code:03o}" if code < 32 or code == 127 else char)
