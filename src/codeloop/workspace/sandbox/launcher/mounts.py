"""Makes the mounts of a sandbox: everything is read-only except the plan's writable paths;
hidden paths are covered.

`confine.py` calls `mount_all` in the sandbox's own mount namespace.
`bubblewrap.py` uses the same lists of folders.
"""

from __future__ import annotations

import errno
import os
import stat

from codeloop.workspace.sandbox.launcher.cache_overlays import mount_overlay
from codeloop.workspace.sandbox.launcher.libc import call_libc
from codeloop.workspace.sandbox.launcher.mount_points import (
    is_below,
    list_pinned_folders,
    make_link,
    open_point,
)
from codeloop.workspace.sandbox.launcher.plan import Plan
from codeloop.workspace.sandbox.launcher.proc_files import (
    read_text,
    unescape_mount_path,
    write_text,
)
from codeloop.workspace.sandbox.launcher.suppress import Suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

# Values of linux/mount.h, which Python does not have.
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = (
    1,
    2,
    4,
    8,
    32,
    4096,
    16384,
    1 << 18,
)
_NOATIME, _NODIRATIME, _RELATIME = 1024, 2048, 1 << 21
# By their names in mountinfo.
_FLAGS_BY_OPTION = {
    "ro": _RDONLY,
    "nosuid": _NOSUID,
    "nodev": _NODEV,
    "noexec": _NOEXEC,
    "noatime": _NOATIME,
    "nodiratime": _NODIRATIME,
    "relatime": _RELATIME,
}
# The flag for mount(2) -> the bit that statvfs reports for it.
_STATVFS_BITS = {
    _RDONLY: 1,
    _NOSUID: 2,
    _NODEV: 4,
    _NOEXEC: 8,
    _NOATIME: 1024,
    _NODIRATIME: 2048,
    _RELATIME: 4096,
}
# Folders of /dev that the sandbox gets new and empty.
_OWN_DEV_FOLDERS = ("pts", "shm")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_DEV_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "fd/0",
    "stdout": "fd/1",
    "stderr": "fd/2",
    "ptmx": "pts/ptmx",
}
RUN_ENTRIES = (
    "systemd/resolve",
    "resolvconf",
    "NetworkManager",
    "current-system",
    "booted-system",
    "opengl-driver",
    "host",
)
"""Entries of /run that programs need; the rest are sockets of services."""
# Entries of /proc that change settings of the machine, or show its memory and keys.
PROC_READ_ONLY = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi")
PROC_HIDDEN = ("kcore", "keys", "timer_list")
TEMPORARY_FOLDERS = tuple(f"/{name}" for name in ("tmp", "var/tmp"))
LAYERS_SUFFIX = ".layers"
"""The suffix of the folder next to a replica that holds the changes to the folders shown in it."""
REPLACED_FOLDERS = (*TEMPORARY_FOLDERS, "/dev", "/run", "/proc")
# Since this version each PID namespace has its own `pid_max`;
# older kernels have one for the whole machine.
_LINUX_WITH_PID_MAX = (6, 14)
# The kernel refuses a smaller one.
_MIN_PID_MAX = 301


class _Mount:
    """One row of mountinfo."""

    def __init__(self, mount_id: str, point: str, flags: int) -> None:
        self.mount_id = mount_id
        self.point = point
        self.flags = flags


def mount_all(plan: Plan) -> None:
    """Make all mounts of the plan. The process must be in new mount and PID namespaces.
    Raises OSError.
    """
    # From here on mounts pass in neither direction between the machine and the sandbox.
    _mount("", "/", "", _RECURSIVE | _PRIVATE)
    caches = [path for _, path in plan.layered]
    # The path at which a replica is mounted, if there is one.
    replica_points = plan.writable[:1] if plan.replica else ()
    sources = {path: path for path in sorted({*plan.writable, *caches, *plan.visible})}
    sources |= dict.fromkeys(replica_points, plan.replica)
    # Sorted again, so that each path comes after those above it.
    sources = dict(sorted((sources | {point: source for source, point, _ in plan.binds}).items()))
    bound = {point: is_writable for _, point, is_writable in plan.binds}
    # Opened before anything is mounted: afterwards many of these paths are covered.
    descriptors = {path: _open_path(source) for path, source in sources.items()}
    layer_folders = [_open_path(f"{plan.replica}{LAYERS_SUFFIX}") for _ in replica_points]
    temporary = _open_path(plan.temporary)
    home_descriptors = (
        {plan.home: _open_path(f"{plan.private}/{plan.home_name}")} if plan.home else {}
    )
    empty_covers = _make_empty_covers()
    _mount_dev()
    _mount_run()
    _mount_proc(plan.bounds.kernel_process_limit)
    # Programs write to their own entries in /proc; settings of the machine there
    # are turned read-only below.
    writable = {*plan.writable, *caches, *(f"/dev/{name}" for name in _OWN_DEV_FOLDERS), "/proc"}
    for point in TEMPORARY_FOLDERS:
        if os.path.realpath(point) == point and os.path.isdir(point):
            _bind(temporary, point)
            writable.add(point)
    writable |= {*home_descriptors, *(point for point, is_writable in bound.items() if is_writable)}
    for point in sorted(plan.replaced):
        _cover_replaced(point, home_descriptors.get(point))
    _bind_descriptors(
        descriptors, {*writable, *bound}, (*REPLACED_FOLDERS, *plan.replaced, *replica_points)
    )
    for path, target in plan.links:
        make_link(path, target)
    for fd in layer_folders:
        folders = {
            path: source
            for path, source in descriptors.items()
            if is_below(path, replica_points) and path not in replica_points
        }
        writable |= _overlay_folders(folders, fd)
    _turn_read_only(writable, {*plan.visible, *plan.protected, *plan.replaced, *bound} - writable)
    _guard_paths(plan, descriptors, empty_covers)
    for fd in (
        *descriptors.values(),
        *empty_covers,
        *home_descriptors.values(),
        *layer_folders,
        temporary,
    ):
        os.close(fd)
    os.chdir("/")


def _guard_paths(plan: Plan, mounted_paths: Iterable[str], empty_covers: tuple[int, int]) -> None:
    """Make the protected paths read-only, and cover the hidden ones,
    except for mounted paths inside them.
    """
    points = (point for _, point, _ in plan.binds)
    for path in list_pinned_folders(
        plan.writable, (*plan.protected, *filter(os.path.lexists, plan.hidden), *points)
    ):
        # A mount point can't be renamed.
        _bind(path, path)
    # Opened before the folders around them are covered.
    shown_inside = {
        path: _open_path(path)
        for path in mounted_paths
        if is_below(path, (*plan.protected, *plan.hidden))
    }
    for path in (*plan.protected, *(f"/proc/{name}" for name in PROC_READ_ONLY)):
        if os.path.lexists(path):
            _bind(path, path)
            _mount("", path, "", _BIND | _REMOUNT | _RDONLY | _read_flags(path))
    for path, fd in shown_inside.items():
        if is_below(path, plan.protected):
            _bind(fd, path)
    for path in (*plan.hidden, *(f"/proc/{name}" for name in PROC_HIDDEN)):
        if os.path.lexists(path):
            _cover(
                path,
                empty_covers,
                {each: fd for each, fd in shown_inside.items() if is_below(each, (path,))},
            )
    for fd in shown_inside.values():
        os.close(fd)


def _overlay_folders(folders: dict[str, int], layer_folders: int) -> set[str]:
    """Mount a writable layer over each folder that is shown in a replica.
    Returns those that now have one.

    `layer_folders`: a descriptor of the folder that holds the layers.
    """
    layered: set[str] = set()
    for number, (path, fd) in enumerate(folders.items()):
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            continue
        upper, work = (
            f"/proc/self/fd/{layer_folders}/{number}.{name}" for name in ("upper", "work")
        )
        # Where the kernel or the file system has no overlays, the folder stays read-only.
        with Suppress(OSError):
            os.mkdir(upper, 0o755)
            os.mkdir(work, 0o700)
            mount_overlay(path, fd, upper, work)
            layered.add(path)
    return layered


def _bind_descriptors(
    descriptors: dict[str, int], writable: Collection[str], replaced: Collection[str]
) -> None:
    """Bind the writable paths, and those in replaced folders.
    All others are in the sandbox already.
    """
    for path, fd in descriptors.items():
        is_ours = is_below(path, replaced)
        if is_ours or path in writable:
            _bind_at(path, fd, is_ours=is_ours)


def _cover(path: str, empty_covers: tuple[int, int], shown_inside: dict[str, int]) -> None:
    """Cover a path with an empty file or folder,
    in which only the paths of `shown_inside` are visible.
    """
    if not shown_inside:
        _bind(empty_covers[os.path.isdir(path)], path)
        return
    _mount("tmpfs", path, "tmpfs", _NOSUID | _NODEV | _NOEXEC, "mode=711,size=64k")
    for each, fd in shown_inside.items():
        _bind_at(each, fd)
    _mount("", path, "", _BIND | _REMOUNT | _RDONLY | _NOSUID | _NODEV | _NOEXEC)


def _cover_replaced(point: str, home: int | None) -> None:
    """Cover a folder with the private home or an empty folder,
    unless a covered parent hides it already.
    """
    if home is not None:
        _bind_at(point, home)
    elif os.path.isdir(point):
        _mount("tmpfs", point, "tmpfs", _NOSUID | _NODEV, "mode=755,size=1m")


def _mount_dev() -> None:
    """Replace /dev by a few harmless devices, new terminals, and empty shared memory."""
    devices = {name: _open_path(f"/dev/{name}") for name in _DEVICES}
    _mount("tmpfs", "/dev", "tmpfs", _NOSUID, "mode=755")
    for name, fd in devices.items():
        os.close(os.open(f"/dev/{name}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        _bind(fd, f"/dev/{name}")
        os.close(fd)
    for name, target in _DEV_LINKS.items():
        os.symlink(target, f"/dev/{name}")
    terminals, shared_memory = (f"/dev/{name}" for name in _OWN_DEV_FOLDERS)
    os.mkdir(terminals)
    os.mkdir(shared_memory)
    # A new instance shows no terminal of the user.
    _mount("devpts", terminals, "devpts", _NOSUID | _NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    _mount("tmpfs", shared_memory, "tmpfs", _NOSUID | _NODEV, "mode=1777,size=10%")


def _mount_run() -> None:
    """Replace /run by a folder with only RUN_ENTRIES."""
    if not os.path.isdir("/run"):
        return
    paths = [path for name in RUN_ENTRIES if os.path.lexists(path := f"/run/{name}")]
    links = {path: os.readlink(path) for path in paths if os.path.islink(path)}
    descriptors = {path: _open_path(path) for path in paths if path not in links}
    _mount("tmpfs", "/run", "tmpfs", _NOSUID | _NODEV, "mode=755")
    for path, target in links.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)
    for path, fd in descriptors.items():
        _bind_at(path, fd)
        os.close(fd)


def _mount_proc(process_limit: int) -> None:
    """Mount the /proc of the new PID namespace, and limit its processes where the kernel can.
    0: no limit.
    """
    _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    release = tuple(
        int(part) for part in os.uname().release.split("-")[0].split(".")[:2] if part.isdigit()
    )
    if process_limit and release >= _LINUX_WITH_PID_MAX:
        # Only root may write it. Root is also the only user for whom RLIMIT_NPROC does not count.
        with Suppress(OSError):
            write_text("/proc/sys/kernel/pid_max", str(max(process_limit, _MIN_PID_MAX)))


def _turn_read_only(writable: set[str], read_only: set[str]) -> None:
    """Make every mount read-only except those at or below a writable path.

    The nearest named folder above a mount decides: a visible path in the writable temporary folder
    is read-only. Raises PermissionError when a mount that must be read-only is
    still writable and reachable.
    """
    for mount in _list_mounts():
        if not mount.flags & _RDONLY and not _is_writable(mount.point, writable, read_only):
            try:
                _mount("", mount.point, "", _BIND | _REMOUNT | _RDONLY | mount.flags)
            except OSError as error:
                # The mount is covered by another one, or lies in a folder that this user may not
                # enter. Whether it can be reached is checked below.
                if error.errno not in {errno.EINVAL, errno.ENOENT, errno.EACCES, errno.ENOTDIR}:
                    raise
    for mount in _list_mounts():
        if (
            not mount.flags & _RDONLY
            and not _is_writable(mount.point, writable, read_only)
            and _is_reachable(mount)
        ):
            raise PermissionError(errno.EPERM, "it can't be turned read-only", mount.point)


def _is_writable(path: str, writable: set[str], read_only: set[str]) -> bool:
    """Return whether the nearest named path at or above a path is one of the writable ones."""
    parents = {path[:index] for index, char in enumerate(path) if char == "/"}
    named = {path, "/", *parents} & (writable | read_only)
    return max(named, key=len, default="") in writable


def _is_reachable(mount: _Mount) -> bool:
    """Return whether the path of a mount leads to it, and not to another mount on top of it."""
    try:
        fd = _open_path(mount.point)
    except OSError:
        return False
    try:
        return f"mnt_id:\t{mount.mount_id}\n" in read_text(f"/proc/self/fdinfo/{fd}")
    finally:
        os.close(fd)


def _list_mounts() -> list[_Mount]:
    mounts: list[_Mount] = []
    for row in read_text("/proc/self/mountinfo").splitlines():
        mount_id, _, _, _, point, options, *_ = row.split(" ")
        flags = sum(_FLAGS_BY_OPTION.get(option, 0) for option in options.split(","))
        mounts.append(_Mount(mount_id, unescape_mount_path(point), flags))
    return mounts


def _read_flags(path: str) -> int:
    """Return the flags that a mount has to keep: the kernel lets no user namespace remove them."""
    flags = os.statvfs(path).f_flag
    return sum(
        mount_flag for mount_flag, statvfs_bit in _STATVFS_BITS.items() if flags & statvfs_bit
    )


def _make_empty_covers() -> tuple[int, int]:
    """Return descriptors of an empty file and an empty folder that nobody may open,
    on a file system of their own.
    """
    # Made at the temporary folder, where another mount covers them afterwards: only
    # the descriptors lead there.
    point = TEMPORARY_FOLDERS[0]
    _mount("tmpfs", point, "tmpfs", _NOSUID | _NODEV | _NOEXEC, "mode=755,size=64k")
    os.close(os.open(f"{point}/file", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o000))
    os.mkdir(f"{point}/folder", 0o000)
    _mount("", point, "", _REMOUNT | _RDONLY | _NOSUID | _NODEV | _NOEXEC)
    return _open_path(f"{point}/file"), _open_path(f"{point}/folder")


def _bind_at(path: str, fd: int, *, is_ours: bool = True) -> None:
    """Bind the file or folder of a descriptor at a path.

    `is_ours`: the path lies in a folder of ours, where commands may have left links.
    """
    point = open_point(path, is_folder=stat.S_ISDIR(os.fstat(fd).st_mode), is_ours=is_ours)
    try:
        _bind(fd, f"/proc/self/fd/{point}")
    finally:
        os.close(point)


def _bind(source: int | str, point: str) -> None:
    _mount(
        f"/proc/self/fd/{source}" if isinstance(source, int) else source,
        point,
        "",
        _BIND | _RECURSIVE,
    )


def _mount(source: str, point: str, kind: str, flags: int, options: str = "") -> None:
    try:
        call_libc(
            "mount",
            *(os.fsencode(each) or None for each in (source, point, kind)),
            flags,
            options.encode() or None,
        )
    except OSError as error:
        # With the mount point, which says which rule of the policy could not be carried out.
        raise OSError(error.errno, error.strerror, point) from error


def _open_path(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)
