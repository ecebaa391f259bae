"""The mounts of a sandbox: all read-only but what the plan makes writable; hidden paths are covered by empty ones."""

from __future__ import annotations

import errno
import os
import stat

from codeloop.workspace.sandbox.launcher.cache_overlays import join_layer
from codeloop.workspace.sandbox.launcher.libc import call, read_text, unescape, write_text
from codeloop.workspace.sandbox.launcher.mount_points import make_link, open_point
from codeloop.workspace.sandbox.launcher.plan import Plan
from codeloop.workspace.sandbox.launcher.suppress import Suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

# Values of linux/mount.h, which Python does not have.
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_FLAGS = {
    "ro": _RDONLY,
    "nosuid": _NOSUID,
    "nodev": _NODEV,
    "noexec": _NOEXEC,
    "noatime": 1024,
    "nodiratime": 2048,
    "relatime": 1 << 21,
}
_OWN_DEV = ("pts", "shm")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
RUN = ("systemd/resolve", "resolvconf", "NetworkManager", "current-system", "booted-system", "opengl-driver", "host")
"""Entries of /run that programs need; the rest are sockets of services."""
PROC_READ_ONLY = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi")
PROC_HIDDEN = ("kcore", "keys", "timer_list")
TEMPORARY = tuple(f"/{name}" for name in ("tmp", "var/tmp"))
LAYERS = ".layers"
"""The suffix of the folder beside a replica that holds the changes of the folders shown in it."""
REPLACED = (*TEMPORARY, "/dev", "/run", "/proc")
_LINUX_WITH_PID_MAX = (6, 14)
"""Since this Linux each PID namespace has its own limit of processes; before, there is one for the machine."""
_MIN_PID_MAX = 301  # the kernel refuses smaller ones


class _Mount:
    def __init__(self, number: str, point: str, flags: int) -> None:
        self.number = number
        self.point = point
        self.flags = flags


def mount_all(plan: Plan) -> None:
    """Mount everything as planned, in a mount and a PID namespace of our own. Raises OSError."""
    _mount("", "/", "", _REC | _PRIVATE)  # mounts pass in neither direction between the machine and the sandbox
    caches = [path for _, path in plan.layered]
    root = plan.writable[:1] if plan.replica else ()
    sources = {path: path for path in sorted({*plan.writable, *caches, *plan.visible})} | dict.fromkeys(
        root, plan.replica
    )
    # Opened before anything is mounted: afterwards many of these paths are covered.
    descriptors = {path: _open(source) for path, source in sources.items()}
    layers = [_open(f"{plan.replica}{LAYERS}") for _ in root]
    temporary = _open(plan.temporary)
    ours = {plan.home: _open(f"{plan.private}/home")} if plan.home else {}
    empty = _make_empty()
    _mount_dev()
    _mount_run()
    _mount_proc(plan.bounds.most)
    # Programs write to their own entries in /proc; settings of the machine there are turned read-only below.
    writable = {*plan.writable, *caches, *(f"/dev/{name}" for name in _OWN_DEV), "/proc"}
    for point in TEMPORARY:
        if os.path.realpath(point) == point and os.path.isdir(point):
            _bind(temporary, point)
            writable.add(point)
    writable |= ours.keys()
    for point in sorted(plan.replaced):
        _replace(point, ours.get(point))
    _bind_descriptors(descriptors, writable, (*REPLACED, *plan.replaced, *root))
    for path, target in plan.links:
        make_link(path, target)
    for fd in layers:
        folders = {path: each for path, each in descriptors.items() if is_below(path, root) and path not in root}
        writable |= _overlay_folders(folders, fd)
    _turn_read_only(writable, {*plan.visible, *plan.protected, *plan.replaced} - writable)
    for path in find_pinned(plan.writable, (*plan.protected, *filter(os.path.lexists, plan.hidden))):
        _bind(path, path)  # a mount point can't be renamed
    # With their present flags, writable or not: protected and hidden folders may hold some of these.
    inner = {path: _open(path) for path in descriptors if is_below(path, (*plan.protected, *plan.hidden))}
    for path in (*plan.protected, *(f"/proc/{name}" for name in PROC_READ_ONLY)):
        if os.path.lexists(path):
            _bind(path, path)
            _mount("", path, "", _BIND | _REMOUNT | _RDONLY | _read_flags(path))
    for path, fd in inner.items():
        if is_below(path, plan.protected):
            _bind(fd, path)
    for path in (*plan.hidden, *(f"/proc/{name}" for name in PROC_HIDDEN)):
        if os.path.lexists(path):
            _hide(path, empty, {each: fd for each, fd in inner.items() if is_below(each, (path,))})
    for fd in (*descriptors.values(), *inner.values(), *empty, *ours.values(), *layers, temporary):
        os.close(fd)
    os.chdir("/")


def _overlay_folders(folders: dict[str, int], layers: int) -> set[str]:
    """Mount a writable layer over the folders that are shown in a replica; return those, since others are read-only."""
    layered: set[str] = set()
    for number, (path, fd) in enumerate(folders.items()):
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            continue
        upper, work = (f"/proc/self/fd/{layers}/{number}.{name}" for name in ("upper", "work"))
        with Suppress(OSError):  # the kernel or the file system has no overlays
            os.mkdir(upper, 0o755)
            os.mkdir(work, 0o700)
            join_layer(path, fd, upper, work)
            layered.add(path)
    return layered


def _bind_descriptors(descriptors: dict[str, int], writable: Collection[str], replaced: Collection[str]) -> None:
    """Bind the writable paths, and those in folders that are replaced. All others are there already."""
    for path, fd in descriptors.items():
        is_ours = is_below(path, replaced)
        if is_ours or path in writable:
            _bind_at(path, fd, is_ours=is_ours)


def find_pinned(writable: Collection[str], guarded: Iterable[str]) -> list[str]:
    """Return the folders between a writable path and each protected or hidden path below it.

    If a command renamed one of them, the next sandbox would not protect the path under its new name. A path in a
    guarded folder is not pinned: it can't be renamed, and a mount of its own would stay writable when the folder's
    turns read-only.
    """
    guarded, pinned = set(guarded), set[str]()
    for path in guarded:
        between: list[str] = []
        above = os.path.dirname(path)
        while above not in writable and above not in guarded and is_below(above, writable):
            between.append(above)
            above = os.path.dirname(above)
        if above not in guarded:
            pinned.update(between)
    return sorted(pinned)


def _hide(path: str, empty: tuple[int, int], inner: dict[str, int]) -> None:
    """Cover a path with an empty file or folder, in which only `inner` is visible."""
    if not inner:
        _bind(empty[os.path.isdir(path)], path)
        return
    _mount("tmpfs", path, "tmpfs", _NOSUID | _NODEV | _NOEXEC, "mode=711,size=64k")
    for each, fd in inner.items():
        _bind_at(each, fd)
    _mount("", path, "", _BIND | _REMOUNT | _RDONLY | _NOSUID | _NODEV | _NOEXEC)


def _replace(point: str, home: int | None) -> None:
    """Cover a folder with the private home or an empty folder, unless a covered parent hides it already."""
    if home is not None:
        _bind_at(point, home)
    elif os.path.isdir(point):
        _mount("tmpfs", point, "tmpfs", _NOSUID | _NODEV, "mode=755,size=1m")


def _mount_dev() -> None:
    """Replace /dev by a few harmless devices, terminals of the sandbox's own, and empty shared memory."""
    devices = {name: _open(f"/dev/{name}") for name in _DEVICES}
    _mount("tmpfs", "/dev", "tmpfs", _NOSUID, "mode=755")
    for name, fd in devices.items():
        os.close(os.open(f"/dev/{name}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        _bind(fd, f"/dev/{name}")
        os.close(fd)
    for name, target in _LINKS.items():
        os.symlink(target, f"/dev/{name}")
    for name in _OWN_DEV:
        os.mkdir(f"/dev/{name}")
    _mount("devpts", "/dev/pts", "devpts", _NOSUID | _NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    _mount("tmpfs", f"/dev/{_OWN_DEV[1]}", "tmpfs", _NOSUID | _NODEV, "mode=1777,size=10%")


def _mount_run() -> None:
    if not os.path.isdir("/run"):
        return
    paths = [path for name in RUN if os.path.lexists(path := f"/run/{name}")]
    links = {path: os.readlink(path) for path in paths if os.path.islink(path)}
    descriptors = {path: _open(path) for path in paths if path not in links}
    _mount("tmpfs", "/run", "tmpfs", _NOSUID | _NODEV, "mode=755")
    for path, target in links.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)
    for path, fd in descriptors.items():
        _bind_at(path, fd)
        os.close(fd)


def _mount_proc(processes: int) -> None:
    _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    release = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2] if part.isdigit())
    if processes and release >= _LINUX_WITH_PID_MAX:
        try:
            write_text("/proc/sys/kernel/pid_max", str(max(processes, _MIN_PID_MAX)))
        except OSError:
            return  # only root may; others have a limit of their own


def _turn_read_only(writable: set[str], visible: set[str]) -> None:
    """Make every mount read-only but those at or below a writable path, and check that no other is reachable.

    Of the folders above a mount the nearest counts: a path that is only visible in the temporary folder is read-only.
    """
    for mount in _list_mounts():
        if not mount.flags & _RDONLY and not _may_write(mount.point, writable, visible):
            try:
                _mount("", mount.point, "", _BIND | _REMOUNT | _RDONLY | mount.flags)
            except OSError as error:
                # Covered by another mount, or behind a folder that we may not enter: checked again below.
                if error.errno not in {errno.EINVAL, errno.ENOENT, errno.EACCES, errno.ENOTDIR}:
                    raise
    for mount in _list_mounts():
        if not mount.flags & _RDONLY and not _may_write(mount.point, writable, visible) and _is_reached(mount):
            raise PermissionError(errno.EPERM, "it can't be turned read-only", mount.point)


def _may_write(path: str, writable: set[str], visible: set[str]) -> bool:
    above = {path[:end] for end in (*(at for at, sign in enumerate(path) if sign == "/"), len(path))} | {"/"}
    return max((point for point in above & (writable | visible)), key=len, default="") in writable


def _is_reached(mount: _Mount) -> bool:
    """Return whether the path of a mount leads to it, and not to one mounted over it."""
    try:
        fd = _open(mount.point)
    except OSError:
        return False
    try:
        return f"mnt_id:\t{mount.number}\n" in read_text(f"/proc/self/fdinfo/{fd}")
    finally:
        os.close(fd)


def _list_mounts() -> list[_Mount]:
    mounts: list[_Mount] = []
    for row in read_text("/proc/self/mountinfo").splitlines():
        number, _, _, _, point, options, *_ = row.split(" ")
        flags = sum(_FLAGS.get(option, 0) for option in options.split(","))
        mounts.append(_Mount(number, unescape(point), flags))
    return mounts


def _read_flags(path: str) -> int:
    """Return the flags that a mount has to keep: the kernel lets no user namespace remove them."""
    flags = os.statvfs(path).f_flag
    bits = {_RDONLY: 1, _NOSUID: 2, _NODEV: 4, _NOEXEC: 8, 1024: 1024, 2048: 2048, 1 << 21: 4096}
    return sum(ours for ours, theirs in bits.items() if flags & theirs)


def _make_empty() -> tuple[int, int]:
    """Return descriptors of an empty file and an empty folder that nobody may open."""
    point = TEMPORARY[0]
    _mount("tmpfs", point, "tmpfs", _NOSUID | _NODEV | _NOEXEC, "mode=755,size=64k")
    os.close(os.open(f"{point}/file", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o000))
    os.mkdir(f"{point}/folder", 0o000)
    _mount("", point, "", _REMOUNT | _RDONLY | _NOSUID | _NODEV | _NOEXEC)
    return _open(f"{point}/file"), _open(f"{point}/folder")


def _bind_at(path: str, fd: int, *, is_ours: bool = True) -> None:
    """Bind the file of a descriptor at a path. `is_ours`: it lies in our folders, where commands may have put links."""
    point = open_point(path, is_folder=stat.S_ISDIR(os.fstat(fd).st_mode), is_ours=is_ours)
    try:
        _bind(fd, f"/proc/self/fd/{point}")
    finally:
        os.close(point)


def _bind(source: int | str, point: str) -> None:
    _mount(f"/proc/self/fd/{source}" if isinstance(source, int) else source, point, "", _BIND | _REC)


def _mount(source: str, point: str, kind: str, flags: int, options: str = "") -> None:
    try:
        call("mount", *(os.fsencode(each) or None for each in (source, point, kind)), flags, options.encode() or None)
    except OSError as error:
        raise OSError(error.errno, error.strerror, point) from error


def _open(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path is one of the folders or lies below one."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
