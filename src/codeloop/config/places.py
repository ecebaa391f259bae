"""Remembers the folders in which sessions are held: by what a folder is found again once
its path or project differs.

Each has a folder below the data folder, with a record,
and a lock that is shared by the processes that work there.
"""

import fcntl
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha1
from pathlib import Path
from typing import NamedTuple

import msgspec

from codeloop.config.paths import Paths
from codeloop.config.project_root import GLOBAL_PROJECT_ID, ProjectRoot
from codeloop.kit.git import find_common_folder, find_git_folder
from codeloop.kit.small_files import create_private_folder, read_start, write_atomically
from codeloop.kit.text.undecodable import find_undecodable
from codeloop.schema.wire import DECODE_ERRORS, encode_json, replace

_RECORD_NAME = "place.json"
_MAX_RECORD_BYTES = 64 * 1024
# The records that are searched for a folder that is gone, the newest first.
_MAX_RECORDS = 500


class Place(msgspec.Struct, frozen=True):
    """What was known of the top of a work tree when it was opened last.

    `inode`, `device`: of the folder. `settings_time`: of the repository's settings, in ns;
    0: there are none.
    `remotes`: the addresses of the repository's remotes, as `_simplify_address` makes them.
    """

    root: str
    project_id: str
    inode: int
    device: int
    settings_time: int = 0
    remotes: tuple[str, ...] = ()

    @property
    def is_gone(self) -> bool:
        """Whether there is no such folder any more. One on a disk that is not there
        now counts as gone, too, and one with a link in its place.
        """
        return not Path(self.root).is_dir() or self.links_to != self.root

    @property
    def links_to(self) -> str:
        """The folder that its path leads to now; itself while it is no link."""
        return os.path.realpath(self.root)


TakeOver = Callable[[Place | None, Place], tuple[bool, list[str]]]
"""Takes over the sessions of a folder, by its earlier record and its present one.

Returns whether nothing is left that is in use now, and notices for the user.
"""


class HeldPlace(NamedTuple):
    """A folder in which this process works, until `descriptor` is closed;
    None: that could not be noted.
    """

    descriptor: int | None
    notices: Sequence[str] = ()

    def release(self) -> None:
        """Say that this process does not work there any more."""
        if self.descriptor is not None:
            os.close(self.descriptor)


class Places:
    """The records of all folders below a data folder."""

    def __init__(self, paths: Paths) -> None:
        self._folder = paths.data / "place"

    def settle(self, project_root: ProjectRoot, take_over: TakeOver) -> HeldPlace:
        """Note that this process works in a folder, after taking over its sessions if
        it has another project now.
        """
        root, notices = str(project_root.root), list[str]()
        with suppress(OSError):
            known = self.read(root)
            here = self.look(project_root, known)
            is_complete = True
            if known is None or known.project_id != here.project_id:
                is_complete, notices = take_over(known, here)
            if is_complete and here != known:
                self.write(here)
        return HeldPlace(self.hold(root), notices)

    def read(self, root: str) -> Place | None:
        """Return the record of a folder; None: there is none."""
        return _read_record(self._get_folder(root))

    def look(self, project_root: ProjectRoot, known: Place | None) -> Place:
        """Return a folder's present record; equal to `known` if nothing has changed.
        Raises OSError.
        """
        root = str(project_root.root)
        status = project_root.root.stat()
        settings = _find_settings(project_root)
        settings_time = 0
        if settings is not None:
            with suppress(OSError):
                settings_time = settings.stat().st_mtime_ns
        remotes: tuple[str, ...] = ()
        if known is not None and known.settings_time == settings_time:
            remotes = known.remotes
        elif settings is not None:
            remotes = _read_remotes(settings)
        return Place(
            root, project_root.project_id, status.st_ino, status.st_dev, settings_time, remotes
        )

    def write(self, place: Place) -> None:
        """Store a record. Raises OSError."""
        folder = self._get_folder(place.root)
        create_private_folder(folder)
        write_atomically(folder / _RECORD_NAME, encode_json(place))

    def list_others(self, root: str) -> Iterator[Place]:
        """Yield the records of other folders, the newest first."""
        try:
            with os.scandir(self._folder) as entries:
                folders = [
                    Path(entry.path)
                    for entry in sorted(entries, key=_get_time, reverse=True)[:_MAX_RECORDS]
                ]
        except OSError:
            return
        for folder in folders:
            place = _read_record(folder)
            if place is not None and place.root != root:
                yield place

    def hold(self, root: str) -> int | None:
        """Say that this process works in a folder; return what to close in the end.
        None: that can't be said here.
        """
        return _lock(self._get_folder(root), fcntl.LOCK_SH)

    @contextmanager
    def claim(self, root: str) -> Generator[bool]:
        """Yield whether nobody works in a folder, and keep others from beginning to meanwhile."""
        folder = self._get_folder(root)
        descriptor = _lock(folder, fcntl.LOCK_EX)
        try:
            yield descriptor is not None or not folder.is_dir()
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _get_folder(self, root: str) -> Path:
        return self._folder / sha1(os.fsencode(root), usedforsecurity=False).hexdigest()[:16]


def _lock(folder: Path, kind: int) -> int | None:
    """Return a descriptor that holds a lock on a folder;
    None: somebody else has a lock, or there is no such folder.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _get_time(entry: "os.DirEntry[str]") -> float:
    try:
        return entry.stat().st_mtime
    except OSError:
        return 0.0


def _read_record(folder: Path) -> Place | None:
    try:
        place = msgspec.json.decode(
            read_start(folder / _RECORD_NAME, _MAX_RECORD_BYTES), type=Place
        )
        return replace(place, root=find_undecodable(place.root))
    except (OSError, *DECODE_ERRORS):
        return None


def _find_settings(project_root: ProjectRoot) -> Path | None:
    """Return the file with the settings of a folder's repository; None: there is no repository."""
    if project_root.vcs is None:
        return None
    try:
        folder = find_git_folder(project_root.root)
        return find_common_folder(folder) / "config" if folder is not None else None
    except (OSError, RuntimeError, ValueError):
        return None


def _read_remotes(settings: Path) -> tuple[str, ...]:
    # Imported late: the settings are read again only when they have changed.
    from codeloop.kit.git.settings import read_file_settings

    addresses = (
        _simplify_address(each.value)
        for each in read_file_settings(settings)
        if each.name.startswith("remote.") and each.name.endswith(".url")
    )
    return tuple(dict.fromkeys(address for address in addresses if address))


def _simplify_address(address: str) -> str:
    """Return a remote's address without scheme, user and ending,
    so that those of one repository are equal.
    """
    host_and_path = address.strip().rpartition("://")[2].rpartition("@")[2]
    if "://" not in address:
        # As in `git@host:owner/name`.
        host_and_path = host_and_path.replace(":", "/", 1)
    return host_and_path.rstrip("/").removesuffix(".git")


def is_in_doubt(gone: Place, here: Place) -> bool:
    """Return whether a folder that is gone may be this one: the same folder, project or remote,
    or it left a link to this one.
    """
    if gone.links_to == here.root:
        return True
    is_same_folder = (gone.inode, gone.device) == (here.inode, here.device)
    is_same_project = gone.project_id == here.project_id != GLOBAL_PROJECT_ID
    return is_same_folder or is_same_project or bool(set(gone.remotes) & set(here.remotes))
