"""Parses the output of `git diff --raw --numstat --patch -z` into changed files."""

import os
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

Status = Literal["added", "deleted", "modified"]
_STATUS_BY_LETTER: dict[str, Status] = {"A": "added", "D": "deleted"}
_PATCH_HEADER = b"diff --git "
_ESCAPE_SEQUENCE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED_BYTES = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


class ChangedFile(Struct, frozen=True):
    """A file that differs: its path relative to the work tree, and the lines added and deleted (0 for a binary file).

    `patch`: None if it was not asked for, or is too long.
    """

    file: str
    status: Status
    additions: int
    deletions: int
    patch: str | None = None

    def without_patch(self) -> "ChangedFile":
        """Return a copy without the patch."""
        return replace(self, patch=None)


def parse_diff(data: bytes, *, is_complete: bool = True) -> list[ChangedFile]:
    """Parse the files in their order. Not `is_complete`: the output was cut off, so the last patch is left out."""
    # With -z, an empty field separates the rows from the patches.
    rows, _, text = data.partition(b"\0\0")
    patches = _split_patches(text, is_complete=is_complete)
    statuses: dict[bytes, str] = {}
    counts: dict[bytes, tuple[int, int]] = {}
    fields = iter(rows.removesuffix(b"\0").split(b"\0") if rows else ())
    for field in fields:
        if field.startswith(b":"):
            statuses[next(fields, b"")] = field.rpartition(b" ")[2][:1].decode("ascii", "replace")
        else:
            added, deleted, name = field.split(b"\t", 2)
            counts[name] = (_read_count(added), _read_count(deleted))
    return [
        ChangedFile(
            os.fsdecode(name), _STATUS_BY_LETTER.get(status, "modified"), *counts.get(name, (0, 0)), patches.get(name)
        )
        for name, status in statuses.items()
    ]


def merge_rows(files: Iterable[ChangedFile]) -> list[ChangedFile]:
    """Merge the rows of each file into one; sorted by name.

    A file has two if it is deleted from the index but still on the disk: it counts as modified.
    """
    merged: dict[str, ChangedFile] = {}
    for file in files:
        other = merged.get(file.file)
        merged[file.file] = file if other is None else _merge_pair(other, file)
    return [merged[name] for name in sorted(merged)]


def _merge_pair(first: ChangedFile, second: ChangedFile) -> ChangedFile:
    patch = None if first.patch is None or second.patch is None else first.patch + second.patch
    additions, deletions = first.additions + second.additions, first.deletions + second.deletions
    return ChangedFile(first.file, "modified", additions, deletions, patch)


def _split_patches(text: bytes, *, is_complete: bool) -> dict[bytes, str]:
    """Return the patches by file."""
    # A line that looks like a header is one, since lines of content start with `+`, `-` or a blank.
    starts = [match.start() for match in re.finditer(rb"^diff --git ", text, re.MULTILINE)]
    patches: dict[bytes, str] = {}
    name = b""
    for start, end in pairwise((*starts, len(text))):
        block = text[start:end]
        name = _read_name(block[len(_PATCH_HEADER) : block.find(b"\n")])
        patches[name] = patches.get(name, "") + block.decode("utf-8", "replace")
    if not is_complete:
        patches.pop(name, None)  # of the last file, which was cut off
    return patches


def _read_name(header: bytes) -> bytes:
    """Return the name in `a/NAME b/NAME`, where either may be quoted. Without renames, both are the same."""
    # The text is cut at its middle, since a name may hold ` b/` itself.
    if not header.startswith(b'"'):
        return header[2 : (len(header) - 5) // 2 + 2]
    return _ESCAPE_SEQUENCE.sub(_unescape, header[1 : (len(header) - 1) // 2 - 1])[2:]


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8)]) if len(code) == 3 else _ESCAPED_BYTES.get(code, code)


def _read_count(field: bytes) -> int:
    return int(field) if field.isdigit() else 0
