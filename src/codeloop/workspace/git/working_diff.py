"""Compares a work tree with a commit: the changed files with their patches,
untracked ones as added.

No filter, text conversion, monitor or hook that the repository configures is known to git there
(`repository.py`), and nothing is written to the repository.
"""

import asyncio
import os
import re
import stat
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from codeloop.kit.git import compute_blob_id
from codeloop.kit.remove_tree import temporary_folder
from codeloop.schema.limits import VCS_FILE, VCS_FILES, VCS_INDEX, VCS_PATCH, VCS_PATCHES, VCS_TIME
from codeloop.workspace.files.safe_open import FileRefused, read_file
from codeloop.workspace.git.repository import Git, GitFailed, GitOutput
from codeloop.workspace.snapshot.blob import LINK_MODE, to_git_mode
from codeloop.workspace.snapshot.object_store import EMPTY_TREE

# The id of a tree without entries, where objects are named by SHA-256.
# git knows it without an object.
_EMPTY_TREE_SHA256 = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
_NAMES_BYTES = 1 << 24
_DIFF_ARGUMENTS = (
    *("-c", "core.quotePath=false"),
    *("-c", f"core.bigFileThreshold={VCS_FILE.value}"),
    *(
        "diff",
        "--raw",
        "--numstat",
        "-z",
        "--no-renames",
        "--no-color",
        "--ignore-submodules=dirty",
    ),
    *("--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/"),
)
# With -z, an empty field separates the rows of files from the patches.
_ROWS_END = b"\0\0"
# git takes a file for binary if there is a NUL in its first bytes.
_SAMPLE_BYTES = 8_000
_ESCAPES = {
    7: "\\a",
    8: "\\b",
    9: "\\t",
    10: "\\n",
    11: "\\v",
    12: "\\f",
    13: "\\r",
    34: '\\"',
    92: "\\\\",
}

ChangeStatus = Literal["added", "deleted", "modified"]
_STATUS_BY_LETTER: dict[str, ChangeStatus] = {"A": "added", "D": "deleted"}
_PATCH_HEADER = b"diff --git "
_ESCAPE_SEQUENCE = rb"(?s)\\([0-7]{3}|.)"
_ESCAPED_BYTES = {
    b"a": b"\a",
    b"b": b"\b",
    b"t": b"\t",
    b"n": b"\n",
    b"v": b"\v",
    b"f": b"\f",
    b"r": b"\r",
}


class ChangedFile(Struct, frozen=True):
    """A file that differs: its path relative to the work tree,
    and the lines added and deleted (0 for a binary file).

    `patch`: None if it was not asked for, or is too long.
    """

    file: str
    status: ChangeStatus
    additions: int
    deletions: int
    patch: str | None = None

    def without_patch(self) -> "ChangedFile":
        """Return a copy without the patch."""
        return replace(self, patch=None)


async def list_changes(git: Git, base: str | None, context: int | None) -> list[ChangedFile]:
    """Compare the work tree with the commit `base` (None: with nothing);
    return the changed files by name.

    `context`: the unchanged lines around a change in patches; None: without patches. Takes up to a
    few times VCS_TIME. Raises GitFailed: git failed or took too long, or there are too many files.
    """
    uses_sha256 = git.open_folder().get("extensions.objectformat") == "sha256"
    tree = base or (_EMPTY_TREE_SHA256 if uses_sha256 else EMPTY_TREE)
    patches = () if context is None else ("--patch", f"--unified={context}")
    max_bytes = _NAMES_BYTES + (0 if context is None else VCS_PATCHES.value)
    with temporary_folder("codeloop-git-") as folder:
        # In an index of its own: `git diff` writes what it has learnt to the one that it is given.
        index = folder / "index"
        await asyncio.to_thread(_copy_index, git, index)
        output, names = await asyncio.gather(
            _compare(git, (*_DIFF_ARGUMENTS, *patches, tree, "--"), max_bytes, index),
            _compare(
                git, ("ls-files", "--others", "--exclude-standard", "-z"), _NAMES_BYTES, index
            ),
        )
    # Without the end of the rows (see `_parse_diff`), files are missing and not only patches.
    if not names.is_complete or not (output.is_complete or _ROWS_END in output.data):
        raise _make_count_error(git)
    changed_files = await asyncio.to_thread(
        _parse_diff, output.data, is_complete=output.is_complete
    )
    # A name that ends with a slash is a nested repository, which git does not look into.
    untracked = [
        name for name in os.fsdecode(names.data).split("\0") if name and not name.endswith("/")
    ]
    if len(changed_files) + len(untracked) > VCS_FILES.value:
        raise _make_count_error(git)
    added = await asyncio.to_thread(
        _read_untracked, git.root, untracked, with_patches=context is not None
    )
    return _limit_patches(_merge_rows([*changed_files, *added]))


def _make_count_error(git: Git) -> GitFailed:
    return GitFailed(
        f"More than {VCS_FILES.value:,} files in {git.root} differ; list in .gitignore what git should not track."
    )


def _limit_patches(files: list[ChangedFile]) -> list[ChangedFile]:
    """Drop patches that are too long, alone or together with those before them."""
    remaining_bytes = VCS_PATCHES.value
    limited: list[ChangedFile] = []
    for file in files:
        size = len(file.patch.encode()) if file.patch is not None else 0
        if size <= min(VCS_PATCH.value, remaining_bytes):
            remaining_bytes -= size
            limited.append(file)
        else:
            limited.append(file.without_patch())
    return limited


def _copy_index(git: Git, copy: Path) -> None:
    """Copy the index of a work tree with its modification time, if it has one. Blocks.
    Raises GitFailed.
    """
    try:
        # git reads again the files that are not older than the index,
        # since their stat in it may be outdated.
        loaded = read_file(
            Path(os.path.realpath(git.open_folder().folder / "index")), VCS_INDEX.value
        )
        copy.write_bytes(loaded.data)
        os.utime(copy, ns=(loaded.stamp.mtime_ns, loaded.stamp.mtime_ns))
    except FileNotFoundError:
        return  # nothing was ever added
    except (OSError, FileRefused) as error:
        raise GitFailed(
            f"The index of {git.root} can't be copied to compare with it: {error}."
        ) from error


async def _compare(git: Git, arguments: Sequence[str], max_bytes: int, index: Path) -> GitOutput:
    """Run git to compare. Raises GitFailed, in particular for an exit code other than 0."""
    output = await git.run(*arguments, max_bytes=max_bytes, index=index)
    if output.code != 0:
        reason = " ".join(output.stderr.split())
        raise GitFailed(
            f"git can't compare the work tree {git.root}: {reason or f'code {output.code}'}."
        )
    return output


def _parse_diff(data: bytes, *, is_complete: bool = True) -> list[ChangedFile]:
    """Parse the output of `git diff --raw --numstat --patch -z` into files, in their order.

    Not `is_complete`: the output was cut off, so the last patch is left out.
    """
    # A file has two rows: `:100644 100644 1a2b 3c4d M`, followed by its name as a field, and `3 1
    # name` with tabs, the added and deleted lines.
    rows, _, text = data.partition(_ROWS_END)
    patches = _split_patches(text, is_complete=is_complete)
    # The status letters by name.
    statuses: dict[bytes, str] = {}
    counts: dict[bytes, tuple[int, int]] = {}
    fields = iter(rows.removesuffix(b"\0").split(b"\0") if rows else ())
    for field in fields:
        if field.startswith(b":"):
            statuses[next(fields, b"")] = field.rpartition(b" ")[2][:1].decode("ascii", "replace")
        else:
            added, deleted, name = field.split(b"\t", 2)
            counts[name] = (_read_count(added), _read_count(deleted))
    changed_files: list[ChangedFile] = []
    for name, letter in statuses.items():
        additions, deletions = counts.get(name, (0, 0))
        status = _STATUS_BY_LETTER.get(letter, "modified")
        changed_files.append(
            ChangedFile(os.fsdecode(name), status, additions, deletions, patches.get(name))
        )
    return changed_files


def _merge_rows(files: Iterable[ChangedFile]) -> list[ChangedFile]:
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
    return ChangedFile(
        file=first.file,
        status="modified",
        additions=first.additions + second.additions,
        deletions=first.deletions + second.deletions,
        patch=patch,
    )


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
        # The patch of the last file was cut off.
        patches.pop(name, None)
    return patches


def _read_name(header: bytes) -> bytes:
    """Return the name in `a/NAME b/NAME`, where either may be quoted.
    Without renames, both are the same.
    """
    # The text is cut at its middle, since a name may hold ` b/` itself.
    if not header.startswith(b'"'):
        return header[2 : (len(header) - 5) // 2 + 2]
    return re.sub(_ESCAPE_SEQUENCE, _unescape, header[1 : (len(header) - 1) // 2 - 1])[2:]


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8)]) if len(code) == 3 else _ESCAPED_BYTES.get(code, code)


def _read_count(field: bytes) -> int:
    return int(field) if field.isdigit() else 0


def _read_untracked(root: Path, names: Sequence[str], *, with_patches: bool) -> list[ChangedFile]:
    """Return the files (relative to `root`) as added;
    those that are missing or can't be read are left out. Blocks.

    Raises GitFailed when it takes longer than VCS_TIME.
    """
    end = time.monotonic() + VCS_TIME.seconds
    remaining_chars = VCS_PATCHES.value
    changed_files: list[ChangedFile] = []
    for name in names:
        if time.monotonic() > end:
            raise GitFailed(
                f"Reading the untracked files in {root} takes too long; ignore some of them in .gitignore."
            )
        try:
            file = _read_new_file(root, name)
        except (OSError, FileRefused):
            continue
        remaining_chars -= len(file.patch or "")
        changed_files.append(file if with_patches and remaining_chars > 0 else file.without_patch())
    return changed_files


def _read_new_file(root: Path, name: str) -> ChangedFile:
    """Read an untracked file as an added one. Raises OSError, FileRefused: it was deleted,
    or is no longer a file.
    """
    path = root / name
    info = path.lstat()
    if stat.S_ISLNK(info.st_mode):
        # `Path.readlink` drops a `./` and double slashes, which git shows.
        return _format_new_file(name, LINK_MODE, os.readlink(os.fsencode(path)))
    if stat.S_ISREG(info.st_mode) and info.st_size > VCS_FILE.value:
        # Too large to be hashed.
        return _format_binary(name, to_git_mode(info.st_mode), blob="0" * 40)
    loaded = read_file(path, VCS_FILE.value)
    return _format_new_file(name, to_git_mode(info.st_mode), loaded.data)


def _format_new_file(name: str, mode: int, data: bytes) -> ChangedFile:
    blob = compute_blob_id(data).hex()
    if b"\0" in data[:_SAMPLE_BYTES]:
        return _format_binary(name, mode, blob)
    lines = data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))
    head = _format_head(name, mode, blob)
    if not lines:
        return ChangedFile(name, "added", 0, 0, head)
    if len(data) > VCS_PATCH.value:
        return ChangedFile(name, "added", lines, 0)
    hunk_range = f"+1,{lines}" if lines > 1 else "+1"
    text = data.decode("utf-8", "replace")
    body = "+" + text.removesuffix("\n").replace("\n", "\n+") + "\n"
    if not text.endswith("\n"):
        body += "\\ No newline at end of file\n"
    # As git does: a tab after a name with blanks keeps `patch` from taking the rest
    # of the line for a time.
    quoted_name = _quote(f"b/{name}") + ("\t" if " " in name else "")
    patch = f"{head}--- /dev/null\n+++ {quoted_name}\n@@ -0,0 {hunk_range} @@\n{body}"
    return ChangedFile(name, "added", lines, 0, patch)


def _format_binary(name: str, mode: int, blob: str) -> ChangedFile:
    patch = (
        f"{_format_head(name, mode, blob)}Binary files /dev/null and {_quote(f'b/{name}')} differ\n"
    )
    return ChangedFile(name, "added", 0, 0, patch)


def _format_head(name: str, mode: int, blob: str) -> str:
    if mode != LINK_MODE:
        # As git does: a program or not, without the other permissions.
        mode = 0o100755 if mode & 0o111 else 0o100644
    names = f"{_quote(f'a/{name}')} {_quote(f'b/{name}')}"
    return f"diff --git {names}\nnew file mode {mode:o}\nindex 0000000..{blob[:7]}\n"


def _quote(name: str) -> str:
    """Write a name as git does in a patch: as a C string when it holds quotes,
    backslashes or control characters.
    """
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if not any(ord(char) < 32 or char in '"\\\x7f' for char in text):
        return text
    return '"' + "".join(_escape(char) for char in text) + '"'


def _escape(char: str) -> str:
    code = ord(char)
    return _ESCAPES.get(code) or (f"\\{code:03o}" if code < 32 or code == 127 else char)
