"""Compares a work tree with a commit: the changed files with their patches, untracked ones as added.

git compares in a temporary git directory, which shares the repository's objects and has a copy of its index. So no
filter, text conversion, monitor or hook that the repository configures is known there, and nothing is written to the
repository.
"""

import asyncio
import os
import stat
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from codeloop.kit.small_files import read_start_or_empty
from codeloop.schema.limits import VCS_FILE, VCS_FILES, VCS_INDEX, VCS_PATCH, VCS_PATCHES, VCS_TIME
from codeloop.workspace.files.safe_open import FileRefused, read_file
from codeloop.workspace.git.diff_parser import ChangedFile, merge_rows, parse_diff
from codeloop.workspace.git.repository import Git, GitFailed, GitOutput
from codeloop.workspace.snapshot.blob import LINK_MODE, compute_blob_id, to_git_mode
from codeloop.workspace.snapshot.object_store import EMPTY_TREE

# The id of a tree without entries, where objects are named by SHA-256. git knows it without an object.
_EMPTY_TREE_SHA256 = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
_GIT_PATHS = ("objects", "index", "info/exclude")
# Settings for the conversion between work tree and repository; none names a program.
_CONVERSION_SETTINGS = r"^(core\.(autocrlf|eol|filemode|symlinks|ignorecase|excludesfile)|extensions\.objectformat)$"
_OBJECT_FORMAT = "extensions.objectformat"
_CONFIG_TEMPLATE = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectformat = {}\n"
_RULES_BYTES = 256 * 1024
_NAMES_BYTES = 1 << 24
_DIFF_ARGUMENTS = (
    *("-c", "core.quotePath=false"),
    *("-c", f"core.bigFileThreshold={VCS_FILE.value}"),
    *("diff", "--raw", "--numstat", "-z", "--no-renames", "--no-color", "--ignore-submodules=dirty"),
    *("--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/"),
)
# At the start of a file; with a NUL in them git takes it for binary.
_SAMPLE_BYTES = 8_000
_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


async def list_changes(git: Git, base: str | None, context: int | None) -> list[ChangedFile]:
    """Compare the work tree with a commit (None: with nothing), by file name. `context` None: without patches.

    Takes up to a few times VCS_TIME. Raises GitFailed: git failed or took too long, or there is too much.
    """
    async with _make_temporary_git(git) as temporary_git:
        tree = base or (_EMPTY_TREE_SHA256 if temporary_git.uses_sha256 else EMPTY_TREE)
        patches = () if context is None else ("--patch", f"--unified={context}")
        cap = _NAMES_BYTES + (0 if context is None else VCS_PATCHES.value)
        output, names = await asyncio.gather(
            temporary_git.run(*_DIFF_ARGUMENTS, *patches, tree, "--", cap=cap),
            temporary_git.run("ls-files", "--others", "--exclude-standard", "-z", cap=_NAMES_BYTES),
        )
    if not names.is_complete:
        raise _make_count_error(git)
    changed_files = await asyncio.to_thread(parse_diff, output.data, is_complete=output.is_complete)
    # A name that ends with a slash is a nested repository, which git does not look into.
    new = [name for name in os.fsdecode(names.data).split("\0") if name and not name.endswith("/")]
    if len(changed_files) + len(new) > VCS_FILES.value:
        raise _make_count_error(git)
    added = await asyncio.to_thread(_read_untracked, git.root, new, with_patches=context is not None)
    return _limit_patches(merge_rows([*changed_files, *added]))


def _make_count_error(git: Git) -> GitFailed:
    return GitFailed(
        f"More than {VCS_FILES.value:,} files in {git.root} differ; list in .gitignore what git should not track."
    )


def _limit_patches(files: list[ChangedFile]) -> list[ChangedFile]:
    """Drop patches that are too long, alone or together with those before them."""
    remaining_bytes, limited = VCS_PATCHES.value, list[ChangedFile]()
    for file in files:
        size = len(file.patch.encode()) if file.patch is not None else 0
        fits = size <= VCS_PATCH.value and size <= remaining_bytes
        remaining_bytes -= size if fits else 0
        limited.append(file if fits else file.without_patch())
    return limited


class _TemporaryGit:
    """A temporary git directory for one comparison. `uses_sha256`: the repository names its objects by SHA-256."""

    def __init__(self, git: Git, folder: Path, settings: dict[str, str]) -> None:
        self.uses_sha256 = settings.pop(_OBJECT_FORMAT, "sha1") == "sha256"
        self._git = git
        self._folder = folder
        self._options = tuple(word for name, value in settings.items() for word in ("-c", f"{name}={value}"))

    async def run(self, *arguments: str, cap: int) -> GitOutput:
        """Run git with this directory. Raises GitFailed, also for an exit code other than 0."""
        output = await self._git.run_in_git_folder(self._folder, self._options, arguments, cap)
        if output.code != 0:
            reason = " ".join(output.stderr.split())
            raise GitFailed(f"git can't compare the work tree {self._git.root}: {reason or f'code {output.code}'}.")
        return output

    def create(self, objects: Path, index: Path, exclude: Path) -> None:
        """Create the files that git needs. Blocks. Raises GitFailed."""
        try:
            self._create_files(objects, exclude)
            self._copy_index(Path(os.path.realpath(index)))
        except (OSError, FileRefused) as error:
            raise GitFailed(f"The index of {self._git.root} can't be copied to compare with it: {error}.") from error

    def _create_files(self, objects: Path, exclude: Path) -> None:
        for name in ("objects/info", "refs", "info"):
            (self._folder / name).mkdir(parents=True)
        contents = {
            # Without a HEAD, git does not take a folder for a repository.
            "HEAD": b"ref: refs/heads/none\n",
            "config": _CONFIG_TEMPLATE.format("sha256" if self.uses_sha256 else "sha1").encode(),
            "objects/info/alternates": os.fsencode(os.path.realpath(objects)) + b"\n",
            "info/exclude": read_start_or_empty(exclude, _RULES_BYTES),
        }
        for name, data in contents.items():
            (self._folder / name).write_bytes(data)

    def _copy_index(self, index: Path) -> None:
        """Copy the index with its modification time."""
        # git reads files again that are not older than the index, since their stat in it may be outdated.
        try:
            loaded = read_file(index, VCS_INDEX.value)
        except FileNotFoundError:
            return  # nothing was ever added
        index_copy = self._folder / "index"
        index_copy.write_bytes(loaded.data)
        os.utime(index_copy, ns=(loaded.stamp.mtime_ns, loaded.stamp.mtime_ns))
        # A split index refers to a shared one in the same folder.
        for shared_index in index.parent.glob("sharedindex.*"):
            (self._folder / shared_index.name).symlink_to(shared_index)


@asynccontextmanager
async def _make_temporary_git(git: Git) -> AsyncGenerator[_TemporaryGit]:
    arguments = [argument for path in _GIT_PATHS for argument in ("--git-path", path)]
    output, settings = await asyncio.gather(
        git.run("rev-parse", *arguments), git.run_config("--null", "--get-regexp", _CONVERSION_SETTINGS)
    )
    if output.code != 0 or len(output.lines) != len(_GIT_PATHS):
        raise GitFailed(f"git can't find the repository of {git.root}: {' '.join(output.stderr.split())}")
    rows = [row.partition("\n") for row in os.fsdecode(settings.data).split("\0") if row]
    objects, index, exclude = (git.root / line for line in output.lines)
    try:
        temporary_folder = tempfile.TemporaryDirectory(prefix="codeloop-git-", ignore_cleanup_errors=True)
    except OSError as error:
        raise GitFailed(f"A temporary folder can't be made to compare the work tree: {error.strerror}.") from error
    try:
        # A setting without a value is true.
        values = {name: value if separator else "true" for name, separator, value in rows}
        temporary_git = _TemporaryGit(git, Path(temporary_folder.name), values)
        await asyncio.to_thread(temporary_git.create, objects, index, exclude)
        yield temporary_git
    finally:
        await asyncio.to_thread(temporary_folder.cleanup)


def _read_untracked(root: Path, names: Sequence[str], *, with_patches: bool) -> list[ChangedFile]:
    """Return the files (relative to `root`) as added; those that are missing or can't be read are left out. Blocks.

    Raises GitFailed when it takes longer than VCS_TIME.
    """
    end = time.monotonic() + VCS_TIME.seconds
    remaining_chars = VCS_PATCHES.value
    changed_files: list[ChangedFile] = []
    for name in names:
        if time.monotonic() > end:
            raise GitFailed(f"Reading the untracked files in {root} takes too long; ignore some of them in .gitignore.")
        try:
            file = _read_new_file(root, name)
        except (OSError, FileRefused):
            continue
        remaining_chars -= len(file.patch or "")
        changed_files.append(file if with_patches and remaining_chars > 0 else file.without_patch())
    return changed_files


def _read_new_file(root: Path, name: str) -> ChangedFile:
    """Read an untracked file as an added one. Raises OSError, FileRefused: it was deleted, or is no longer a file."""
    path = root / name
    info = path.lstat()
    if stat.S_ISLNK(info.st_mode):
        # `Path.readlink` drops a `./` and double slashes, which git shows.
        return _format_new_file(name, LINK_MODE, os.readlink(os.fsencode(path)))
    if stat.S_ISREG(info.st_mode) and info.st_size > VCS_FILE.value:
        return _format_binary(name, to_git_mode(info.st_mode), "0" * 40)  # too large to be hashed
    loaded = read_file(path, VCS_FILE.value)
    return _format_new_file(name, to_git_mode(info.st_mode), loaded.data)


def _format_new_file(name: str, mode: int, data: bytes) -> ChangedFile:
    blob = compute_blob_id(data)
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
    # As git does: a tab after a name with blanks keeps `patch` from taking the rest of the line for a time.
    quoted_name = _quote(f"b/{name}") + ("\t" if " " in name else "")
    patch = f"{head}--- /dev/null\n+++ {quoted_name}\n@@ -0,0 {hunk_range} @@\n{body}"
    return ChangedFile(name, "added", lines, 0, patch)


def _format_binary(name: str, mode: int, blob: str) -> ChangedFile:
    patch = f"{_format_head(name, mode, blob)}Binary files /dev/null and {_quote(f'b/{name}')} differ\n"
    return ChangedFile(name, "added", 0, 0, patch)


def _format_head(name: str, mode: int, blob: str) -> str:
    mode_shown = 0o100755 if mode & 0o111 and mode != LINK_MODE else LINK_MODE if mode == LINK_MODE else 0o100644
    names = f"{_quote(f'a/{name}')} {_quote(f'b/{name}')}"
    return f"diff --git {names}\nnew file mode {mode_shown:o}\nindex 0000000..{blob[:7]}\n"


def _quote(name: str) -> str:
    """Write a name as git does in a patch: as a C string when it holds quotes, backslashes or control characters."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if not any(ord(char) < 32 or char in '"\\\x7f' for char in text):
        return text
    return '"' + "".join(_escape(char) for char in text) + '"'


def _escape(char: str) -> str:
    code = ord(char)
    return _ESCAPES.get(code) or (f"\\{code:03o}" if code < 32 or code == 127 else char)
