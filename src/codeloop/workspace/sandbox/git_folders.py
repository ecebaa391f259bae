"""The private git folders of a process's sandboxes (`git/private`): made before a command, carried over after it."""

import asyncio
import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from codeloop.kit.small_files import create_private_folder
from codeloop.workspace.git.private.base import load_base
from codeloop.workspace.git.private.private_git_folder import Mount, PrivateGitFolder, is_supported
from codeloop.workspace.sandbox.launcher.libc import identify_file
from codeloop.workspace.sandbox.paths.linked_paths import is_below_any

if TYPE_CHECKING:
    from codeloop.workspace.sandbox.policy import SandboxPolicy

GIT_NAME = "git"
"""The folder in a private folder that holds the private git folders."""
BASE_NAME = "base.json"


class PreparedGit(Struct, frozen=True):
    """What a sandbox sees in place of git folders. `identities`: of the files and folders that are mounted."""

    folders: tuple[PrivateGitFolder, ...] = ()
    mounts: tuple[Mount, ...] = ()
    identities: tuple[bytes, ...] = ()


class GitFolders:
    """The private git folders of one process."""

    def __init__(self) -> None:
        self._folders: dict[tuple[Path, Path, tuple[str, ...]], PrivateGitFolder] = {}
        self._prepared: dict[tuple[PrivateGitFolder, ...], PreparedGit] = {}
        self.notes: list[str] = []
        """Notes of the carrying-over that nobody has been told yet."""

    async def prepare(self, policy: "SandboxPolicy", place: Path, *, is_idle: bool) -> PreparedGit:
        """Make the private git folders of a policy like the real ones. Raises OSError.

        `place`: the private folder of this process; `is_idle`: nothing runs that sees them.
        """
        supported = [top for top in policy.git_folders if is_supported(top)]
        new = [key for key in (_make_key(top, place, policy) for top in supported) if key not in self._folders]
        if new:
            await asyncio.to_thread(self._open, new, policy)
        folders = tuple(self._folders[_make_key(top, place, policy)] for top in supported)
        prepared = self._prepared.get(folders)
        if prepared is not None and all(each.is_unchanged for each in folders):
            return prepared
        read_only = [Mount(str(top), str(top), is_writable=False) for top in policy.git_folders if top not in supported]
        self._prepared[folders] = prepared = await asyncio.to_thread(self._synchronise, folders, read_only, is_idle)
        return prepared

    async def carry(self, *, is_idle: bool, is_rest: bool = False) -> None:
        """Carry over what commands have changed. `is_idle`: none runs; `is_rest`: only what waited for that."""
        changed = [each for each in self._folders.values() if (each.has_waiting if is_rest else not each.is_unchanged)]
        if changed:
            await asyncio.to_thread(self._carry, changed, is_idle=is_idle, is_checked=is_idle and is_rest)

    def take_notes(self) -> list[str]:
        """Return the notes since the last call, each once."""
        notes, self.notes = list(dict.fromkeys(self.notes)), []
        return notes

    def _open(self, keys: Iterable[tuple[Path, Path, tuple[str, ...]]], policy: "SandboxPolicy") -> None:
        for top, folder, granted in keys:
            name = hashlib.blake2b(os.fsencode("\0".join((str(top), *granted))), digest_size=8).hexdigest()
            create_private_folder(folder / name)
            roots = tuple(path for path in policy.writable if not is_below_any(path, policy.git_folders))
            private = PrivateGitFolder(top, folder / name, roots)
            if (folder / name / BASE_NAME).exists():
                # An earlier process may have ended before it carried everything over. Then it begins anew: what that
                # process's commands left beside it, such as hooks, has ended with it.
                self.notes += private.synchronise(is_idle=True)
                private.remove()
                create_private_folder(folder / name)
                private = PrivateGitFolder(top, folder / name, roots)
            private.granted = granted
            self._folders[top, folder, granted] = private

    def _synchronise(
        self, folders: tuple[PrivateGitFolder, ...], read_only: Iterable[Mount], is_idle: bool
    ) -> PreparedGit:
        mounts = list(read_only)
        points: list[str] = []
        for each in folders:
            self.notes += each.synchronise(is_idle=is_idle, is_checked=is_idle)
            own = each.list_mounts()
            mounts += own
            # A mount ends where its point is removed, which only we do.
            points += [f"{each.private}{mount.point.removeprefix(str(each.real))}" for mount in own]
        paths = (*(mount.source for mount in mounts), *points)
        return PreparedGit(folders, tuple(mounts), tuple(map(identify_file, paths)))

    def _carry(self, folders: Iterable[PrivateGitFolder], *, is_idle: bool, is_checked: bool) -> None:
        for each in folders:
            with suppress(OSError):
                self.notes += each.synchronise(is_idle=is_idle, is_checked=is_checked)


def recover_changes(place: Path) -> list[str]:
    """Carry over what commands of an earlier process changed in the private git folders in `place`. Returns notes."""
    notes: list[str] = []
    with suppress(OSError):
        for folder in (place / GIT_NAME).iterdir():
            base = load_base(folder / BASE_NAME)
            if base is not None and is_supported(base.real):
                notes += PrivateGitFolder(base.real, folder, base.roots).synchronise(is_idle=True)
    return notes


def _make_key(top: Path, place: Path, policy: "SandboxPolicy") -> tuple[Path, Path, tuple[str, ...]]:
    """Return what a private git folder is found by: commands that may change more of it have one of their own."""
    granted = sorted(str(path.relative_to(top)) for path in policy.granted if path.is_relative_to(top) and path != top)
    return top, place / GIT_NAME, tuple(granted)
