"""Mounts overlays over the user's caches: sandboxes read the cache,
and every change goes into a layer of the project.

`confine.py` calls it in the base namespace, from which all sandboxes of a process are forked: each
layer must be mounted only once, because two overlays with the same upper folder corrupt it.
"""

import errno
import os

from codeloop.workspace.sandbox.launcher.libc import call_libc
from codeloop.workspace.sandbox.launcher.plan import Plan
from codeloop.workspace.sandbox.launcher.proc_files import read_text, unescape_mount_path
from codeloop.workspace.sandbox.launcher.suppress import Suppress

# Values of linux/mount.h, which Python does not have.
_BIND = 4096
_DETACH = 2  # of umount2
_NOSUID, _NODEV = 2, 4
# The source of an overlay is free text. It shows in mountinfo that the layer is ours,
# and its folder.
_SOURCE_PREFIX = "codeloop-layer:"
_PROBE_NAME = ".codeloop-probe"


def overlay_caches(plan: Plan) -> bool:
    """Mount a layer over each cache that has none yet. Raises OSError.

    Where the kernel has no overlays for users without privileges, an empty folder of the project
    replaces the cache. Returns whether each cache has a layer.
    """
    if not plan.layered:
        return True
    layered = {point for point, _ in _list_layers()}
    has_layers = True
    for name, path in plan.layered:
        has_layers = (
            path in layered or _overlay_cache(path, f"{plan.private}/{name}")
        ) and has_layers
    return has_layers


def remove_work_folders() -> None:
    """Remove the work folders of all layers of this mount namespace.
    Nothing that uses a layer may run any more.

    The kernel needs such a folder only while the overlay is mounted, but leaves it.
    """
    for point, folder in _list_layers():
        with Suppress(OSError):
            call_libc("umount2", os.fsencode(point), _DETACH)
            _remove_work_folder(f"{folder}/work")


def _list_layers() -> list[tuple[str, str]]:
    """Return the mount point and the folder of each layer of this mount namespace."""
    layers: list[tuple[str, str]] = []
    for row in read_text("/proc/self/mountinfo").splitlines():
        # The fifth field is the mount point; after the dash come the type and the source.
        mount, _, overlay = row.partition(" - ")
        source = unescape_mount_path(overlay.split(" ")[1])
        if source.startswith(_SOURCE_PREFIX):
            layers.append(
                (unescape_mount_path(mount.split(" ")[4]), source.removeprefix(_SOURCE_PREFIX))
            )
    return layers


def _remove_work_folder(work: str) -> None:
    for name in os.listdir(work):
        os.rmdir(f"{work}/{name}")
    os.rmdir(work)


def _overlay_cache(path: str, folder: str) -> bool:
    """Mount a layer, which is kept in `folder`, over a cache;
    or an empty folder where there are no overlays.

    Returns whether the cache has a layer.
    """
    replacement = f"{folder}/own"
    # A bind mount shows no source of ours in mountinfo, so that one is recognised by its inode.
    if os.path.isdir(replacement) and os.path.samefile(replacement, path):
        return False
    # Opened before the mount, which covers the path: the checks below look into
    # the real cache through it.
    cache = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        upper, work = f"{folder}/upper", f"{folder}/work"
        for each in (upper, work, replacement):
            os.makedirs(each, mode=0o700, exist_ok=True)
        with Suppress(OSError):
            mount_overlay(path, cache, upper, work, f"{_SOURCE_PREFIX}{folder}")
            _check_cache_unchanged(path, cache)
            return True
        # It was not mounted, or it was and nothing can be written there.
        if path in {point for point, _ in _list_layers()}:
            call_libc("umount2", os.fsencode(path), _DETACH)
        with Suppress(OSError):
            _remove_work_folder(work)
        _mount(replacement, path, "", _BIND, "")
        _check_cache_unchanged(path, cache)
    finally:
        os.close(cache)
    return False


def mount_overlay(path: str, cache: int, upper: str, work: str, source: str = "overlay") -> None:
    """Mount a cache with a writable layer over it. Raises OSError.

    `cache`: a descriptor of the lower folder; `upper` and `work`: the folders of the layer;
    `source`: any text, which mountinfo shows.
    """
    # The options name the folders by descriptor: a path may contain the commas and
    # colons that separate options.
    descriptors = [
        os.open(each, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for each in (upper, work)
    ]
    try:
        folders = zip(("lowerdir", "upperdir", "workdir"), (cache, *descriptors), strict=True)
        # `userxattr`: without privileges overlayfs may not set the attributes of
        # the `trusted` namespace.
        options = ",".join(("userxattr", *(f"{name}=/proc/self/fd/{fd}" for name, fd in folders)))
        _mount(source, path, "overlay", _NOSUID | _NODEV, options)
    finally:
        for fd in descriptors:
            os.close(fd)
    # The kernel makes folders there that nobody may enter.
    # Their user has to be able to remove them, whatever ends us.
    for name in os.listdir(work):
        os.chmod(f"{work}/{name}", 0o700)


def _mount(source: str, point: str, kind: str, flags: int, options: str) -> None:
    call_libc(
        "mount",
        *(os.fsencode(each) or None for each in (source, point, kind)),
        flags,
        options.encode() or None,
    )


def _check_cache_unchanged(path: str, cache: int) -> None:
    """Write below the path as a command would, and check that the cache itself is unchanged.
    Raises OSError.
    """
    # Another process may check the same cache at the same time, so each has a file of its own.
    name = f"{_PROBE_NAME}-{os.getpid()}"
    os.close(os.open(f"{path}/{name}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    try:
        os.stat(name, dir_fd=cache)
    except FileNotFoundError:
        return
    finally:
        with Suppress(FileNotFoundError):
            os.unlink(f"{path}/{name}")
    raise PermissionError(errno.EPERM, "it lets a cache be written", path)
