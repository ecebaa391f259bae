"""Private folders: what sandboxed commands write to the home and to caches, kept between sessions,
bounded in size.

`sandboxes.py` claims one for a policy. Each has a private home,
and layers or replacements of the user's caches.
"""

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct

from codeloop.kit.remove_tree import remove_tree
from codeloop.kit.small_files import create_private_folder
from codeloop.schema.bounds.sandbox import SANDBOX_PRIVATE_AGE, SANDBOX_PRIVATE_SIZE
from codeloop.workspace.sandbox.paths.home_paths import CACHES, COPYING_VARIABLES
from codeloop.workspace.sandbox.policy import HOME_NAME, PRIVATE_SUFFIX, SandboxPolicy

OWN_CACHES_NAME = "caches"
"""The folder of caches that variables point to, where nothing can be mounted (Landlock, macOS)."""
_LOCK_SUFFIX = ".lock"
_POINTS_NAME = "points"
"""The file in a private folder that lists the mount points of files in its homes."""


class PrivateFolder(Struct, frozen=True):
    """A work tree's folder that one process uses. `lock`: the locked descriptor,
    held by its sandboxes too.
    """

    path: Path
    lock: int


class PrivateFolders:
    """The private folders of this process. Each process of a work tree has its own,
    so no layer is mounted twice.
    """

    def __init__(self) -> None:
        self._folders: dict[Path, PrivateFolder] = {}

    def claim_folder(self, policy: SandboxPolicy) -> PrivateFolder | None:
        """Return the folder for a policy, which is claimed at first use; None if it needs none.
        Raises OSError.
        """
        if policy.private_folder is None or not (
            policy.home or policy.layered or policy.git_folders
        ):
            return None
        private_folder = self._folders.get(policy.private_folder)
        if private_folder is None:
            create_private_folder(policy.private_folder)
            private_folder = self._folders[policy.private_folder] = _claim_unused(
                policy.private_folder
            )
            _remove_further_homes(private_folder)
            _remove_old_points(private_folder.path)
            create_private_folder(private_folder.path / OWN_CACHES_NAME)
        create_private_folder(private_folder.path / policy.home_name)
        _note_points(private_folder.path, policy)
        return private_folder

    def find_folder(self, policy: SandboxPolicy) -> Path | None:
        """Return the folder that was claimed for a policy, or None."""
        private_folder = (
            self._folders.get(policy.private_folder) if policy.private_folder is not None else None
        )
        return private_folder.path if private_folder is not None else None

    def measure_file_clock(self, policy: SandboxPolicy) -> int:
        """Return the modification time that a file written now would get, in ns;
        0 without a folder.
        """
        private_folder = (
            self._folders.get(policy.private_folder) if policy.private_folder is not None else None
        )
        if private_folder is None:
            return 0
        # The file system's clock lags some ms behind the system's,
        # and can only be read from a file.
        os.utime(private_folder.lock)
        return os.fstat(private_folder.lock).st_mtime_ns

    def close(self) -> None:
        """Release the folders, so that another process may use them."""
        for each in self._folders.values():
            _remove_further_homes(each)
            os.close(each.lock)
        self._folders.clear()


def make_private_home_name() -> str:
    """Return a name for a further private home, as in SandboxGrants;
    it is removed when the process ends.
    """
    return f"{HOME_NAME}-{os.urandom(8).hex()}"


def _remove_further_homes(folder: PrivateFolder) -> None:
    """Remove the homes that were made for the checks of one goal."""
    for path in folder.path.glob(f"{HOME_NAME}-*"):
        remove_tree(path)


def _note_points(folder: Path, policy: SandboxPolicy) -> None:
    """Note the files at which a policy's files are mounted: empty ones stay behind there."""
    home = policy.home
    if home is None:
        return
    points = {
        os.fsencode(Path(policy.home_name, path.relative_to(home)))
        for path in (*policy.visible, *policy.writable)
        if path.is_relative_to(home) and not path.is_dir()
    }
    file = folder / _POINTS_NAME
    before = _read_points(folder)
    if not points <= before:
        with suppress(OSError):
            file.write_bytes(b"\0".join(sorted(points | before)))


def _read_points(folder: Path) -> set[bytes]:
    with suppress(OSError):
        return {*(folder / _POINTS_NAME).read_bytes().split(b"\0")} - {b""}
    return set[bytes]()


def _remove_old_points(folder: Path) -> None:
    """Remove the mount points of earlier sandboxes: a program that is not shown the file
    any more would read an empty one, where nothing should be.
    """
    points = _read_points(folder)
    top = os.path.realpath(folder)
    for path in (folder / os.fsdecode(each) for each in points):
        # A program may have put a link in the place of a folder.
        with suppress(OSError):
            if (
                f"{os.path.realpath(path)}/".startswith(f"{top}/")
                and not path.is_symlink()
                and path.lstat().st_size == 0
            ):
                path.unlink()
    if points:
        (folder / _POINTS_NAME).unlink(missing_ok=True)


def _claim_unused(folder: Path) -> PrivateFolder:
    """Lock the first numbered folder that no other process uses, and return it. Raises OSError."""
    number = 1
    while (lock := _try_lock(folder / str(number))) is None:
        number += 1
    # `prune_private_folders` counts the age of a folder from the time of its lock file.
    os.utime(lock)
    path = folder / str(number)
    path.mkdir(mode=0o700, exist_ok=True)
    return PrivateFolder(path, lock)


def hold_unused(folder: Path) -> Iterator[Path]:
    """Yield each numbered folder that no process uses.
    It is locked until the next one is asked for.
    """
    for path in folder.iterdir():
        if path.name.isdigit() and (lock := _try_lock(path)) is not None:
            try:
                yield path
            finally:
                os.close(lock)


def _try_lock(path: Path) -> int | None:
    """Lock a folder. Returns the descriptor of its lock file;
    None when another process has locked it.
    """
    fd = os.open(
        path.with_suffix(_LOCK_SUFFIX), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
    )
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def make_layer_name(path: Path) -> str:
    """Return the name of the folder that holds a cache's layer."""
    return blake2b(os.fsencode(path), digest_size=8).hexdigest()


def make_cache_folder(private: Path, path: str) -> Path:
    """Return the folder that replaces a cache where overlays are unavailable,
    and make it if it is absent.

    `private`: the path of a private folder; `path`: of the cache.
    """
    folder = private / make_layer_name(Path(path)) / "own"
    create_private_folder(folder)
    return folder


def make_copying_variables(policy: SandboxPolicy) -> dict[str, str]:
    """Return variables that make tools copy files from a cache where hard
    links from it would fail.
    """
    if policy.home is None:
        return {}
    return {name: text.format(home=policy.home) for name, text in COPYING_VARIABLES.items()}


def make_cache_variables(
    folder: Path, policy: SandboxPolicy, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return variables that point tools to the project's own caches."""
    caches = folder / OWN_CACHES_NAME
    variables = {cache.variable: str(caches / cache.folder) for cache in CACHES if cache.variable}
    variables |= {
        "GRADLE_USER_HOME": str(caches / ".gradle"),
        "XDG_CACHE_HOME": str(caches / ".cache"),
    }
    maven_arguments = environment.get("MAVEN_ARGS", "")
    variables["MAVEN_ARGS"] = (
        f"{maven_arguments} -Dmaven.repo.local={caches / '.m2/repository'}".strip()
    )
    if policy.network != "on":
        # Without a registry Go can't fill an empty cache, so it reads the user's.
        del variables["GOMODCACHE"]
    return variables


def prune_private_folders(
    scratch: Path,
    max_age: float = SANDBOX_PRIVATE_AGE.seconds,
    max_bytes: int = SANDBOX_PRIVATE_SIZE.value,
) -> None:
    """Remove private folders that were unused for `max_age` seconds, or grew beyond `max_bytes`.

    `scratch`: the scratch folder of a work tree;
    the private folders of all work trees lie beside it.
    """
    try:
        folders = [
            path
            for each in scratch.parent.glob(f"*{PRIVATE_SUFFIX}")
            for path in each.iterdir()
            if path.name.isdigit()
        ]
    except OSError:
        return
    for path in folders:
        with suppress(OSError):
            lock = _try_lock(path)
            if lock is None:
                # A process uses it.
                continue
            try:
                age = time.time() - path.with_suffix(_LOCK_SUFFIX).stat().st_mtime
                if age > max_age or _measure_size(path, max_bytes) > max_bytes:
                    remove_tree(path)
            finally:
                os.close(lock)


def _measure_size(folder: Path, max_bytes: int) -> int:
    """Return the bytes on disk below a folder; stops counting beyond `max_bytes`."""
    total = 0
    for top, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                # 512 bytes are the unit of st_blocks, whatever the file system.
                total += os.lstat(f"{top}/{name}").st_blocks * 512
        if total > max_bytes:
            break
    return total
