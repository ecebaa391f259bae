"""Folders for what sandboxed commands write to the home and to caches: kept between sessions, bounded in size."""

import fcntl
import itertools
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct

from codeloop.kit.small_files import make_private, remove_tree
from codeloop.schema.bounds.sandbox import SANDBOX_PRIVATE_AGE, SANDBOX_PRIVATE_SIZE
from codeloop.workspace.sandbox.home_paths import CACHES, LINKING
from codeloop.workspace.sandbox.policy import SandboxPolicy

OWN_CACHES = "caches"
"""The folder of caches that variables point to, where overlays are unavailable."""
HOME = "home"
"""The folder that replaces the home directory."""
_LOCK = ".lock"


class PrivateFolder(Struct, frozen=True):
    """A work tree's folder that one process uses. `lock`: the locked descriptor, held by its sandboxes too."""

    path: Path
    lock: int


class PrivateFolders:
    """The private folders of this process. Each process of a work tree has its own: no layer is mounted twice."""

    def __init__(self) -> None:
        self._folders: dict[Path, PrivateFolder] = {}

    def take(self, policy: SandboxPolicy) -> PrivateFolder | None:
        """Return the folder for a policy; None where it needs none. Raises OSError when none can be made."""
        if policy.private is None or not (policy.home or policy.layered):
            return None
        private_folder = self._folders.get(policy.private)
        if private_folder is None:
            make_private(policy.private)
            private_folder = self._folders[policy.private] = next(_list_unused(policy.private))
            for name in (HOME, OWN_CACHES):
                make_private(private_folder.path / name)
        return private_folder

    def find_folder(self, policy: SandboxPolicy) -> Path | None:
        """Return the folder that a policy's sandboxes have, None for none."""
        private_folder = self._folders.get(policy.private) if policy.private is not None else None
        return private_folder.path if private_folder is not None else None

    def read_file_time(self, policy: SandboxPolicy) -> int:
        """Return the time that a file written now would get, in ns: it lags some ms behind the clock."""
        private_folder = self._folders.get(policy.private) if policy.private is not None else None
        if private_folder is None:
            return 0
        os.utime(private_folder.lock)  # the only way to learn the file system's own clock
        return os.fstat(private_folder.lock).st_mtime_ns

    def close(self) -> None:
        """Release the folders, so that another process may use them."""
        for each in self._folders.values():
            os.close(each.lock)
        self._folders.clear()


def _list_unused(private: Path) -> Iterator[PrivateFolder]:
    """Yield the folders that no other process uses, the oldest first."""
    for number in itertools.count(1):
        path = private / str(number)
        if (lock := _lock(path)) is not None:
            os.utime(lock)  # `prune_private` counts its age from the time of the lock file
            path.mkdir(mode=0o700, exist_ok=True)
            yield PrivateFolder(path, lock)


def _lock(path: Path) -> int | None:
    """Return a locked descriptor of a folder; None when another process has locked it."""
    fd = os.open(path.with_suffix(_LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def make_layer_name(path: Path) -> str:
    """Return the name of the folder that holds a cache's layer."""
    return blake2b(os.fsencode(path), digest_size=8).hexdigest()


def make_cache(private: Path | None, path: str) -> Path:
    """Return the folder that replaces a cache where overlays are unavailable, made when absent."""
    folder = Path(private or "/", make_layer_name(Path(path)), "own")
    make_private(folder)
    return folder


def make_linking_variables(policy: SandboxPolicy) -> dict[str, str]:
    """Return variables that make tools copy files from a cache instead of hard-linking them, where that would fail."""
    return {name: text.format(home=policy.home) for name, text in LINKING.items()} if policy.home is not None else {}


def make_cache_variables(folder: Path, policy: SandboxPolicy, environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables that point tools to the project's own caches."""
    own = folder / OWN_CACHES
    variables = {row.variable: str(own / row.folder) for row in CACHES if row.variable}
    variables |= {"GRADLE_USER_HOME": str(own / ".gradle"), "XDG_CACHE_HOME": str(own / ".cache")}
    maven = environment.get("MAVEN_ARGS", "")
    variables["MAVEN_ARGS"] = f"{maven} -Dmaven.repo.local={own / '.m2/repository'}".strip()
    if policy.network != "on":
        # Go then reads the user's cache: without a registry it can't fill an empty one.
        del variables["GOMODCACHE"]
    return variables


def prune_private(
    scratch: Path, age: float = SANDBOX_PRIVATE_AGE.seconds, size: int = SANDBOX_PRIVATE_SIZE.value
) -> None:
    """Remove the folders unused for `age` seconds, and each that grew beyond `size` bytes.

    Those of the project's other work trees, too.
    """
    try:
        folders = [path for each in scratch.parent.glob("*.sandbox") for path in each.iterdir() if path.name.isdigit()]
    except OSError:
        return
    for path in folders:
        with suppress(OSError):
            lock = _lock(path)
            if lock is None:
                continue  # a process uses it
            try:
                if time.time() - path.with_suffix(_LOCK).stat().st_mtime > age or _measure(path, size) > size:
                    remove_tree(path)
            finally:
                os.close(lock)


def _measure(folder: Path, most: int) -> int:
    """Return the bytes on disk below a folder; stops counting beyond `most`."""
    total = 0
    for top, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(f"{top}/{name}").st_blocks * 512  # the unit of st_blocks, whatever the file system
        if total > most:
            break
    return total
