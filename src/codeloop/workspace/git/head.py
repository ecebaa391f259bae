"""Reads the checked-out branch and commit from small files,
which is cheap enough to do after every turn.
"""

from pathlib import Path

from codeloop.kit.git import find_git_folder
from codeloop.kit.small_files import read_start_or_empty

_BRANCH_PREFIX = "ref: refs/heads/"
_HEAD_BYTES = 4096
_PACKED_REFS_BYTES = 256 * 1024
_REF_PREFIX = "ref: "
# The most references in a row that name another one.
_MAX_SYMBOLIC_REFS = 5


class Head:
    """The HEAD of the work tree at `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._text = self._read()

    def refresh(self) -> bool:
        """Read HEAD again; return whether it has changed since the last read: the branch,
        or the commit without one.
        """
        before, self._text = self._text, self._read()
        return self._text != before

    @property
    def branch(self) -> str | None:
        """The branch at the last read; None: a single commit is checked out,
        or there is no repository.
        """
        return (
            self._text.removeprefix(_BRANCH_PREFIX)
            if self._text.startswith(_BRANCH_PREFIX)
            else None
        )

    def _read(self) -> str:
        """Return HEAD as text; empty when it can't be read."""
        folder = find_git_folder(self._root)
        if folder is None:
            return ""
        return read_start_or_empty(folder / "HEAD", _HEAD_BYTES).decode("utf-8", "replace").strip()


def read_head_commit(folder: Path, common: Path) -> bytes | None:
    """Return the id of the commit that is checked out; b"": there is none yet; None: unknown.

    `folder`: the git directory of the work tree; `common`: the one with the branches.
    """
    text = read_start_or_empty(folder / "HEAD", _HEAD_BYTES).decode("utf-8", "replace").strip()
    for _ in range(_MAX_SYMBOLIC_REFS):
        if not text.startswith(_REF_PREFIX):
            return parse_hex(text.encode())
        ref = text.removeprefix(_REF_PREFIX)
        if (common / "reftable").exists() or ".." in ref:
            # references are not files there; or the name would lead out of the git directory
            return None
        file = (common if ref.startswith("refs/") else folder) / ref
        content = read_start_or_empty(file, _HEAD_BYTES)
        if not content:
            return _find_packed_ref(common, ref)
        text = content.decode("utf-8", "replace").strip()
    return None


def _find_packed_ref(common: Path, ref: str) -> bytes | None:
    """Return the commit of a branch that has no file of its own; b"": it has no commit yet;
    None: unknown.
    """
    refs = read_start_or_empty(common / "packed-refs", _PACKED_REFS_BYTES)
    if len(refs) == _PACKED_REFS_BYTES:
        return None  # the file may be longer than what was read
    end = f" {ref}".encode()
    for line in refs.splitlines():
        if line.endswith(end):
            return parse_hex(line[:40])
    return b""


def parse_hex(digits: bytes) -> bytes | None:
    """Return the id that 40 hexadecimal digits write; None for any other text."""
    try:
        object_id = bytes.fromhex(digits.decode())
    except ValueError:
        return None
    return object_id if len(object_id) == 20 else None
