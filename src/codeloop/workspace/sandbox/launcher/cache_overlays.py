"""Overlays on the user's caches: sandboxes read them, while every change goes into a layer of the project.

They are mounted once, where the sandboxes of a process are forked from: two mounts with one layer would corrupt it.
"""

import errno
import os

from codeloop.workspace.sandbox.launcher.libc import call, read_text, unescape
from codeloop.workspace.sandbox.launcher.plan import Plan
from codeloop.workspace.sandbox.launcher.suppress import Suppress

_BIND = 4096
_NOSUID, _NODEV = 2, 4
_SOURCE = "codeloop-layer"
_PROBE = ".codeloop-probe"


def layer_caches(plan: Plan) -> None:
    """Put a layer over each cache that has none yet. Raises OSError.

    Where the kernel can't overlay them, an empty folder of the project is mounted over the cache.
    """
    if not plan.layered:
        return
    table = [row.split(" ") for row in read_text("/proc/self/mountinfo").splitlines()]
    layered = {unescape(row[4]) for row in table if _SOURCE in row}
    for name, path in plan.layered:
        if path not in layered:
            _layer(path, f"{plan.private}/{name}")


def _layer(path: str, folder: str) -> None:
    own = f"{folder}/own"
    if os.path.isdir(own) and os.path.samefile(own, path):
        return  # an earlier sandbox has mounted the folder there, where overlays don't work
    cache = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        upper, work = f"{folder}/upper", f"{folder}/work"
        for each in (upper, work, own):
            os.makedirs(each, mode=0o700, exist_ok=True)
        try:
            join_layer(path, cache, upper, work)
        except OSError:
            _mount(own, path, "", _BIND, "")
        _prove(path, cache)
    finally:
        os.close(cache)


def join_layer(path: str, cache: int, upper: str, work: str) -> None:
    """Mount a cache with a layer over it. By descriptors: names may hold what separates the options."""
    descriptors = [os.open(each, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for each in (upper, work)]
    try:
        folders = zip(("lowerdir", "upperdir", "workdir"), (cache, *descriptors), strict=True)
        # `userxattr`: without privileges overlayfs may not set the attributes of the `trusted` namespace.
        options = ",".join(("userxattr", *(f"{name}=/proc/self/fd/{fd}" for name, fd in folders)))
        _mount(_SOURCE, path, "overlay", _NOSUID | _NODEV, options)
    finally:
        for fd in descriptors:
            os.close(fd)


def _mount(source: str, point: str, kind: str, flags: int, options: str) -> None:
    call("mount", *(os.fsencode(each) or None for each in (source, point, kind)), flags, options.encode() or None)


def _prove(path: str, cache: int) -> None:
    """Write below the path as a command would, and check that the cache is unchanged. Raises OSError."""
    name = f"{_PROBE}-{os.getpid()}"
    os.close(os.open(f"{path}/{name}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    try:
        os.stat(name, dir_fd=cache)
    except FileNotFoundError:
        return
    finally:
        with Suppress(FileNotFoundError):
            os.unlink(f"{path}/{name}")
    raise PermissionError(errno.EPERM, "it lets a cache be written", path)
