"""Makes the objects that commands see where a tracked file is hidden from them: all that the user's
git can reach, but for the contents that hidden files have and had.

They are packed into a folder of ours. In the place of a content that is left out lies a text that
says so: git itself looks only whether there is something.
"""

import hashlib
import os
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from codeloop.kit.small_files import (
    create_private_folder,
    read_bounded,
    read_start_or_empty,
    write_atomically,
)
from codeloop.workspace.git.private.hidden_files import HiddenFiles
from codeloop.workspace.git.private.own_git import ReadingGit, open_reading_git

_TIPS_NAME = "tips"
# The longer first: with the other one first, only a part of it would match.
_HASH = rb"(?:[0-9a-f]{64}|[0-9a-f]{40})"
_STATE_BYTES = 64 * 1024 * 1024
# The deadline for a pack of all objects.
_PACK_SECONDS = 1_800
# With more packs, all are made one again.
_MAX_PACKS = 20
# Commits that no branch has, perhaps.
_FURTHER_TIPS = ("HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "FETCH_HEAD")
# With a zero byte git takes it for a binary file, and by its name it differs from any other one:
# so no two of them are ever merged into a third.
_STAND_IN = "codeloop: a rule or the sandbox keeps this content ({}) from commands.\n\0"
_EMPTY_BLOBS = [
    hashlib.new(kind, b"blob 0\0", usedforsecurity=False).hexdigest().encode()
    for kind in ("sha1", "sha256")
]
_REACHABLE = ("--all", "--reflog", "--ignore-missing", "--missing=allow-any", "--stdin")


class ShownObjects:
    """The objects of one git folder as commands see them. `real`: the git folder; `folder`: ours,
    which is mounted in the place of its objects; `hidden`: the hidden files of its work trees.
    """

    def __init__(self, real: Path, folder: Path, hidden: Sequence[HiddenFiles]) -> None:
        self.folder = folder
        self._real = real
        self._hidden = hidden

    def refresh(self) -> None:
        """Add what the real folder has now. Raises OSError; then something is missing in it."""
        for name in ("pack", "info"):
            create_private_folder(self.folder / name)
        with open_reading_git(self._real) as git:
            files = {hidden: _read_index(git, hidden) for hidden in self._hidden}
            indexed = {name for rows in files.values() for name, _ in rows}
            commits = self._list_commits(git)
            tips = sorted(commits | indexed)
            known = self._read_known()
            old_packs = [*self.folder.glob("pack/*.pack")]
            if tips == known and old_packs:
                return
            starts_over = len(old_packs) > _MAX_PACKS or not old_packs
            bounds = b"" if starts_over else _join(f"^{tip.decode()}".encode() for tip in known)
            for name in self._find_left_out(git, _join(commits) + bounds, files):
                self._put_stand_in(name)
            rows = _join(tips) + bounds
            shown = _read_names(
                git.run(
                    ("rev-list", "--objects", "--indexed-objects", *_REACHABLE),
                    rows,
                    seconds=_PACK_SECONDS,
                )
            )
            wanted = [name for name in shown if not self._locate(name).exists()]
            wanted = _keep_present(git, wanted)
            if not starts_over:
                wanted = self._drop_shown(git, wanted)
            new_pack = b""
            if wanted:
                new_pack = git.run(
                    ("pack-objects", "-q", "--window=0", "--delta-base-offset", self._pack_prefix),
                    _join(wanted),
                    seconds=_PACK_SECONDS,
                )
            if starts_over:
                own = f"pack-{new_pack.decode().strip()}.pack"
                for pack in [each for each in old_packs if each.name != own]:
                    for path in (pack, *(pack.with_suffix(end) for end in (".idx", ".rev"))):
                        path.unlink(missing_ok=True)
        write_atomically(self.folder / _TIPS_NAME, b"\n".join(tips))

    @property
    def _pack_prefix(self) -> str:
        return str(self.folder / "pack/pack")

    def _list_commits(self, git: ReadingGit) -> set[bytes]:
        """Return the commits that lead to all others."""
        tips = set(re.findall(_HASH, git.run(("for-each-ref", "--format=%(objectname)"))))
        for folder in (self._real, *(each.folder for each in self._hidden)):
            for name in _FURTHER_TIPS:
                found = re.match(_HASH, read_start_or_empty(folder / name, 64))
                tips |= {found[0]} if found is not None else set()
        return tips

    def _read_known(self) -> list[bytes]:
        try:
            return read_bounded(self.folder / _TIPS_NAME, _STATE_BYTES).split(b"\n")
        except OSError:
            return []

    def _find_left_out(
        self,
        git: ReadingGit,
        rows: bytes,
        files: Mapping[HiddenFiles, Sequence[tuple[bytes, bytes]]],
    ) -> set[bytes]:
        """Return the contents of hidden files, but for those that other files have as well now.
        `rows`: the commits to look at; `files`: the contents and paths in the indexes.
        """
        candidates, spared = set[bytes](), set(_EMPTY_BLOBS)
        for hidden in self._hidden:
            for name, path in files[hidden]:
                (candidates if hidden.holds(path) else spared).add(name)
            arguments = ("rev-list", "--objects", "--full-history", *_REACHABLE, "--")
            listed = git.run((*arguments, *hidden.names), rows, seconds=_PACK_SECONDS)
            candidates |= set(_read_names(listed))
        kinds = git.run(
            ("cat-file", "--batch-check=%(objecttype) %(objectname)"), _join(candidates - spared)
        )
        return set(re.findall(rb"(?m)^blob (" + _HASH + rb")$", kinds))

    def _drop_shown(self, git: ReadingGit, names: Iterable[bytes]) -> list[bytes]:
        """Return those of some objects that are not in our folder yet."""
        variables = {"GIT_OBJECT_DIRECTORY": str(self.folder)}
        found = git.run(("cat-file", "--batch-check=%(objectname)"), _join(names), variables)
        return re.findall(rb"(?m)^(" + _HASH + rb") missing$", found)

    def _locate(self, name: bytes) -> Path:
        text = name.decode()
        return self.folder / text[:2] / text[2:]

    def _put_stand_in(self, name: bytes) -> None:
        path = self._locate(name)
        if not path.exists():
            text = _STAND_IN.format(name.decode()).encode()
            create_private_folder(path.parent)
            write_atomically(path, zlib.compress(b"blob %d\0%s" % (len(text), text)))


def _join(names: Iterable[bytes]) -> bytes:
    """Return names as lines."""
    return b"".join(b"%s\n" % name for name in names)


def _read_names(rows: bytes) -> list[bytes]:
    """Return the names in the output of `git rev-list --objects`."""
    return re.findall(rb"(?m)^" + _HASH, rows)


def _read_index(git: ReadingGit, hidden: HiddenFiles) -> list[tuple[bytes, bytes]]:
    """Return the content and the path of each file in an index."""
    index = hidden.folder / "index"
    if not index.exists():
        return []
    rows = git.run(("ls-files", "-s", "-z"), variables={"GIT_INDEX_FILE": os.fspath(index)})
    found = re.findall(rb"\d+ (" + _HASH + rb") \d\t([^\0]+)\0", rows)
    return [(name, path) for name, path in found]


def _keep_present(git: ReadingGit, names: Iterable[bytes]) -> list[bytes]:
    """Return those of some objects that are there: of a partial clone, some are not."""
    found = git.run(
        ("cat-file", "--batch-check=%(objectname)"), _join(names), seconds=_PACK_SECONDS
    )
    return re.findall(rb"(?m)^(" + _HASH + rb")$", found)
