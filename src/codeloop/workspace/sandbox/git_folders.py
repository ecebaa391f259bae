"""The private git folders of a process's sandboxes (`git/private`): made before a command,
carried over after it.
"""

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from codeloop.kit.small_files import create_private_folder
from codeloop.workspace.files.path_states import PathStates
from codeloop.workspace.git.planted.layout import list_subfolders
from codeloop.workspace.git.private.base import load_base
from codeloop.workspace.git.private.mounts import Mount
from codeloop.workspace.git.private.private_git_folder import (
    BASE_NAME,
    PrivateGitFolder,
    remove_private_folder,
)
from codeloop.workspace.git.private.units import is_supported
from codeloop.workspace.sandbox.launcher.libc import identify_file
from codeloop.workspace.sandbox.paths.linked_paths import is_below_any
from codeloop.workspace.sandbox.policy import SandboxPolicy
from codeloop.workspace.sandbox.private_folders import PrivateFolders, hold_unused

GIT_NAME = "git"
"""The folder in a private folder that holds the private git folders."""
# Between two looks at what commands that run have changed.
_WATCH_SECONDS = 2.0
_Key = tuple[Path, Path, tuple[str, ...], tuple[Path, ...]]
"""The real folder, the private folder of this process, the paths that commands may change here
alone, and the tracked files that they may not read.
"""


class PreparedGit(Struct, frozen=True):
    """What a sandbox sees in place of git folders.
    `identities`: of the files and folders that are mounted.
    """

    folders: tuple[PrivateGitFolder, ...] = ()
    mounts: tuple[Mount, ...] = ()
    identities: tuple[bytes, ...] = ()


class GitFolders:
    """The private git folders of the sandboxes of one work tree. Close them after the sandboxes.

    `private_folders`: they are in these; `is_idle`: returns whether nothing runs in a sandbox.
    """

    def __init__(self, private_folders: PrivateFolders, is_idle: Callable[[], bool]) -> None:
        self.private_folders = private_folders
        self._is_idle = is_idle
        self._folders: dict[_Key, PrivateGitFolder] = {}
        self._prepared: dict[tuple[PrivateGitFolder, ...], PreparedGit] = {}
        self._supported: dict[Path, bool] = {}
        # By git folder and hidden paths: those that are tracked, as long as no index has changed.
        self._hidden: dict[tuple[Path, tuple[Path, ...]], tuple[PathStates, tuple[Path, ...]]] = {}
        self._notes: list[str] = []
        self._watch: asyncio.Task[None] | None = None

    async def prepare(self, policy: SandboxPolicy) -> PreparedGit:
        """Make the private git folders of a policy like the real ones. Raises OSError."""
        private = self.private_folders.claim_folder(policy) if policy.git_folders else None
        if private is None:
            return PreparedGit()
        for top in policy.git_folders:
            if top not in self._supported:
                self._supported[top] = is_supported(top)
        supported = [top for top in policy.git_folders if self._supported[top]]
        keys = [
            (*_make_key(top, private.path, policy), await self._find_hidden(top, policy))
            for top in supported
        ]
        if not all(key in self._folders for key in keys):
            await asyncio.to_thread(
                self._open, [key for key in keys if key not in self._folders], policy
            )
        folders = tuple(self._folders[key] for key in keys)
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._carry_repeatedly())
        prepared = self._prepared.get(folders)
        if prepared is None or not all(each.is_unchanged for each in folders):
            tops = [top for top in policy.git_folders if top not in supported]
            prepared = self._prepared[folders] = await asyncio.to_thread(
                self._synchronise, folders, tops
            )
        return prepared

    @property
    def has_waiting(self) -> bool:
        """Whether an index waits until the repositories that it names more
        of were looked through.
        """
        return any(each.has_waiting for each in self._folders.values())

    async def carry(self, *, is_rest: bool = False) -> None:
        """Carry over what commands have changed, to be called when one ends;
        while one runs it is done repeatedly.

        It has to be called again (`is_rest`) when the repositories that the command made were
        looked through: only then an index is carried that names more of them.
        """
        folders = [
            each
            for each in self._folders.values()
            if (each.has_waiting if is_rest else not each.is_unchanged)
        ]
        if folders:
            await asyncio.to_thread(self._carry, folders, is_checked=is_rest)

    def take_notes(self) -> list[str]:
        """Return a text for user and model on what was carried over since the last call,
        if they should know of it.
        """
        notes, self._notes = list(dict.fromkeys(self._notes)), []
        return [f"In git: {'; '.join(notes)}."] if notes else []

    async def close(self) -> None:
        """Carry over what is left, and end. What was carried over whole is removed: a
        large index is not kept twice.
        """
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait([self._watch])
        await self.carry()
        await self.carry(is_rest=True)
        for each in self._folders.values():
            if each.is_unchanged and not each.has_waiting:
                # One on a disk that is read-only by now stays: it is only larger than needed.
                with suppress(OSError):
                    await asyncio.to_thread(each.remove)
        self._folders.clear()
        self._prepared.clear()

    async def _carry_repeatedly(self) -> None:
        """Carry over as long as a command runs."""
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            if self._is_idle():
                return
            await self.carry()

    def _open(self, keys: Sequence[_Key], policy: SandboxPolicy) -> None:
        if not self._folders and policy.private_folder is not None:
            # This one may have been that of an earlier process, too.
            own = {folder for _, folder, _, _ in keys}
            for folder in (
                *own,
                *(place / GIT_NAME for place in hold_unused(policy.private_folder)),
            ):
                self._notes += _recover_changes(folder)
        roots = tuple(
            path for path in policy.writable if not is_below_any(path, policy.git_folders)
        )
        for key in keys:
            top, folder, granted, hidden = key
            parts = "\0".join((str(top), *granted, *map(str, hidden)))
            name = hashlib.blake2b(os.fsencode(parts), digest_size=8).hexdigest()
            create_private_folder(folder / name)
            private = PrivateGitFolder(top, folder / name, roots, hidden)
            private.granted = granted
            self._folders[key] = private

    async def _find_hidden(self, top: Path, policy: SandboxPolicy) -> tuple[Path, ...]:
        """Return the tracked files of a git folder's work trees that a policy hides."""
        hidden = tuple(
            path
            for path in policy.hidden
            if is_below_any(path, policy.writable) and not path.is_relative_to(top)
        )
        if not hidden:
            return ()
        found = self._hidden.get((top, hidden))
        if found is None or not found[0].are_unchanged():
            from codeloop.workspace.git.private.hidden_files import find_hidden_files

            found = await asyncio.to_thread(find_hidden_files, top, policy.writable, hidden)
            self._hidden[top, hidden] = found
        return found[1]

    def _synchronise(
        self, folders: tuple[PrivateGitFolder, ...], read_only: Iterable[Path]
    ) -> PreparedGit:
        is_idle = self._is_idle()
        mounts = [Mount(str(top), str(top), is_writable=False) for top in read_only]
        points: list[str] = []
        for each in folders:
            self._notes += each.synchronise(is_idle=is_idle, is_checked=is_idle)
            own = each.list_mounts()
            mounts += own
            # A mount ends where its point is removed, which only we do.
            points += [
                f"{each.private}{mount.point.removeprefix(str(each.real))}"
                if mount.point == str(each.real) or mount.point.startswith(f"{each.real}/")
                else mount.point
                for mount in own
            ]
        paths = (*(mount.source for mount in mounts), *points)
        return PreparedGit(folders, tuple(mounts), tuple(map(identify_file, paths)))

    def _carry(self, folders: Iterable[PrivateGitFolder], *, is_checked: bool) -> None:
        for each in folders:
            with suppress(OSError):
                self._notes += each.synchronise(is_idle=self._is_idle(), is_checked=is_checked)


def _recover_changes(folder: Path) -> list[str]:
    """Carry over what commands of an ended process changed in its private git folders.
    Returns notes.
    """
    notes: list[str] = []
    for place in list_subfolders(folder):
        base = load_base(place / BASE_NAME)
        with suppress(OSError):
            if base is not None and is_supported(base.real):
                earlier = PrivateGitFolder(base.real, place, base.roots, base.hidden)
                notes += earlier.synchronise(is_idle=True)
        # A later process of the work tree makes its own.
        remove_private_folder(place)
    return notes


def _make_key(top: Path, place: Path, policy: SandboxPolicy) -> tuple[Path, Path, tuple[str, ...]]:
    """Return what a private git folder is found by, but for the hidden files:
    commands that may change more of it have one of their own.
    """
    granted = sorted(
        str(path.relative_to(top))
        for path in policy.granted
        if path.is_relative_to(top) and path != top
    )
    return top, place / GIT_NAME, tuple(granted)
