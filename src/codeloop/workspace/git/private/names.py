"""What is carried between a real git folder and its private one: names,
and the form that each content must have.

A check gets the content that a command left and the content that the real folder has, and returns
what may be carried: the content itself, a part of it, or None for nothing.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from codeloop.workspace.git.planted.layout import EXECUTED_LINES, MAX_LINES_BYTES

_HASH = rb"(?:[0-9a-f]{40}|[0-9a-f]{64})"
HASH = _HASH
REF_NAME = rb"refs(?:/[^\0-\x20\x7f~^:?*\[\\/.][^\0-\x20\x7f~^:?*\[\\/]*)+"
"""The coarse form of the name of a reference; git itself checks the rest of its rules. No part of
it leads upwards.
"""
LOG_LINES = (
    rb"(?:" + _HASH + rb" " + _HASH + rb" [^\0\n]*<[^\0\n<>]*> \d+ [+-]\d{4}(?:\t[^\0\n]*)?\n)*"
)
_HEAD = rb"(?:ref: " + REF_NAME + rb"|" + _HASH + rb")\n?"
_HASHES = rb"(?:" + _HASH + rb"\n)+"
_STATE_BYTES = MAX_LINES_BYTES
_INDEX_BYTES = 1024 * 1024 * 1024
LOG_BYTES = 64 * 1024 * 1024
# An entry of an index before its hash; after that come two bytes of flags and the path.
_STAT_BYTES = 40
_EXTENDED_FLAG, _STAGE_BITS, _LENGTH_BITS = 0x4000, 0x3000, 0xFFF
# Files that git does not look at: in the first two bytes of flags,
# and in the first of two further ones.
_ASSUMED_FLAG, _SKIPPED_FLAG = 0x8000, 0x40
_PATHS_SHOWN = 5

Check = Callable[[bytes, bytes], bytes | None]


class CarriedFile(NamedTuple):
    """A file that is carried. `is_kept`: it is never removed in the real folder,
    and has a lock file there as in git.

    `is_timed`: it keeps its time of modification, which git compares with those of the files in it.
    `mark`: what of the real one stands in the private one; `unmark`: the reverse, of what was
    checked, and with what the real one has.
    """

    check: Check
    max_bytes: int = _STATE_BYTES
    is_kept: bool = False
    is_timed: bool = False
    mark: Callable[[bytes], bytes] = bytes
    unmark: Callable[[bytes, bytes], bytes] = lambda data, _real: data


def _match(pattern: bytes) -> Check:
    return lambda data, _real: data if re.fullmatch(pattern, data) else None


def _check_text(data: bytes, _real: bytes) -> bytes | None:
    return None if b"\0" in data else data


def _check_index(data: bytes, _real: bytes) -> bytes | None:
    """Refuse an index from which git would write outside of the work tree,
    or that it can't read.
    """
    try:
        is_harmless = all(map(_is_harmless_path, read_index(data).paths))
    except (ValueError, IndexError):
        return None
    return data if is_harmless else None


def _drop_lines(pattern: bytes) -> Check:
    """Make the check that drops the lines which git would run,
    except those that the real file has already.
    """

    def check(data: bytes, real: bytes) -> bytes | None:
        known = set(re.findall(pattern, real))
        return re.sub(pattern, lambda line: line[0] if line[0] in known else b"", data)

    return check


_HASHES_FILE, _TEXT_FILE = CarriedFile(_match(_HASHES)), CarriedFile(_check_text)
INDEX_FILE = CarriedFile(_check_index, _INDEX_BYTES, is_kept=True, is_timed=True)
SHARED_INDEX_PREFIX = "sharedindex."
TREE_FILES: dict[str, CarriedFile] = {
    "HEAD": CarriedFile(_match(_HEAD), is_kept=True),
    **dict.fromkeys(
        ("ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD"), _HASHES_FILE
    ),
    **dict.fromkeys(("AUTO_MERGE", "MERGE_AUTOSTASH", "BISECT_EXPECTED_REV"), _HASHES_FILE),
    **dict.fromkeys(
        ("FETCH_HEAD", "MERGE_MSG", "MERGE_MODE", "MERGE_RR", "SQUASH_MSG", "COMMIT_EDITMSG"),
        _TEXT_FILE,
    ),
    **dict.fromkeys(
        ("TAG_EDITMSG", "BISECT_LOG", "BISECT_START", "BISECT_NAMES", "BISECT_TERMS"), _TEXT_FILE
    ),
    **dict.fromkeys(
        ("BISECT_ANCESTORS_OK", "BISECT_FIRST_PARENT", "info/sparse-checkout"), _TEXT_FILE
    ),
}
"""Files that each work tree has; the index is carried last."""
STATE_FOLDERS = ("rebase-merge", "rebase-apply", "sequencer")
"""Folders of each work tree, of which the files are carried."""
SHARED_FILES: dict[str, CarriedFile] = {"shallow": _HASHES_FILE, "info/exclude": _TEXT_FILE}
"""Files that all work trees share."""
POINTER_FILES = ("commondir", "gitdir", "locked")
"""Files of a linked work tree's folder, which only come from the real one."""
TREE_REFS = ("refs/bisect", "refs/worktree", "refs/rewritten")
"""References that a linked work tree has in its own folder."""


def find_carried_file(name: str) -> CarriedFile:
    """Return how a file of one of the folders above is carried."""
    if name.startswith(TREE_REFS):
        return _HASHES_FILE
    pattern = EXECUTED_LINES.get(name)
    return CarriedFile(_drop_lines(pattern)) if pattern is not None else _TEXT_FILE


class IndexContent(NamedTuple):
    """What is read of an index.

    `hidden`: the paths whose files git does not compare with it; `unmerged`: those in conflict;
    `is_split`: a part of it is in another file.
    """

    paths: list[bytes]
    hidden: list[bytes]
    is_split: bool
    unmerged: frozenset[bytes] = frozenset()


def read_index(data: bytes) -> IndexContent:
    """Read an index of version 2 to 4. Raises ValueError and IndexError
    for what is not an index.
    """
    version, count = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    if data[:4] != b"DIRC" or version not in {2, 3, 4}:
        raise ValueError("not an index")
    for hash_bytes in (20, 32):
        try:
            return _read_index(data, version, count, hash_bytes)
        except (ValueError, IndexError):
            if hash_bytes == 32:
                raise
    raise ValueError("not an index")


def _read_index(data: bytes, version: int, count: int, hash_bytes: int) -> IndexContent:
    paths, hidden, unmerged, is_split = list[bytes](), list[bytes](), set[bytes](), False
    offset, path = 12, b""
    fixed = _STAT_BYTES + hash_bytes
    last = len(data) - hash_bytes
    for _ in range(count):
        start = offset + fixed + 2
        flags = data[start - 2] << 8 | data[start - 1]
        is_hidden = flags & _ASSUMED_FLAG
        if flags & _EXTENDED_FLAG:
            is_hidden |= data[start] & _SKIPPED_FLAG
            start += 2
        if version == 4:
            dropped = data[start] & 0x7F
            while data[start] & 0x80:
                start += 1
                dropped = ((dropped + 1) << 7) | (data[start] & 0x7F)
            start += 1
            end = data.index(0, start)
            path = path[: len(path) - dropped] + data[start:end]
            offset = end + 1
        else:
            end = data.index(0, start)
            path = data[start:end]
            offset += (end - offset + 8) // 8 * 8
        if offset > last or min(flags & _LENGTH_BITS, len(path)) != min(len(path), _LENGTH_BITS):
            raise ValueError("a broken index")
        paths.append(path)
        if is_hidden:
            hidden.append(path)
        if flags & _STAGE_BITS:
            unmerged.add(path)
    while offset + 8 <= last:
        # Extensions: a name of letters and a length.
        if not data[offset : offset + 4].isalnum():
            raise ValueError("a broken index")
        is_split = is_split or data[offset : offset + 4] == b"link"
        offset += 8 + int.from_bytes(data[offset + 4 : offset + 8], "big")
    if offset != last:
        raise ValueError("a broken index")
    return IndexContent(paths, hidden, is_split, frozenset(unmerged))


def describe_hiding(data: bytes, before: bytes) -> str:
    """Describe the files that a new index hides from `git status` and `git diff`,
    unlike the one before; "".
    """
    new = read_index(data)
    try:
        old = (
            read_index(before)
            if new.hidden or new.is_split
            else IndexContent([], [], is_split=False)
        )
    except (ValueError, IndexError):
        old = IndexContent([], [], is_split=False)
    if new.is_split and not old.is_split:
        return "the index is split over two files now"
    # Those of a split index that replace others have no name.
    hidden = sorted(set(new.hidden).difference(old.hidden, (b"",)))
    if hidden:
        names = ", ".join(
            path.decode("utf-8", "backslashreplace") for path in hidden[:_PATHS_SHOWN]
        )
        rest = f" and {len(hidden) - _PATHS_SHOWN} more" if len(hidden) > _PATHS_SHOWN else ""
        return (
            f"changes of {names}{rest} are hidden from git status and git diff now (assume-unchanged or skip-worktree);"
            " `git update-index --no-assume-unchanged --no-skip-worktree FILE` shows them"
        )
    return ""


def _is_harmless_path(path: bytes) -> bool:
    """Return whether git would take a path for one below the work tree,
    and not into a git folder.
    """
    if b"." not in path and b"~" not in path and path[:1] != b"/":
        return True
    parts = path.lower().split(b"/")
    return not (path[:1] == b"/" or any(part in {b".git", b"..", b".", b"git~1"} for part in parts))
