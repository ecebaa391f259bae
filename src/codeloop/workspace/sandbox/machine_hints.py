"""Tells by a few files of /proc whether the sandbox of this machine may be less than a full one.

Only a sandbox that is made shows what holds, which takes a fifth of a second. So before the first
prompt one is made only where something hints at a container,
a security module or a setting that could stand in its way.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

_USER = Path("/proc/sys/user")
_NAMESPACE_LIMITS = tuple(
    _USER / f"max_{kind}_namespaces" for kind in ("user", "mnt", "net", "pid", "ipc")
)
# Settings of Debian and Ubuntu, each with the value that keeps users other
# than root from namespaces.
_USER_SETTINGS = (
    (Path("/proc/sys/kernel/unprivileged_userns_clone"), "0"),
    (Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"), "1"),
)
# What the kernel itself mounts there.
_USUAL_PROC_MOUNTS = ("/proc/sys/fs/binfmt_misc",)


def may_lack_sandbox() -> bool:
    """Return whether something hints that namespaces or mounts are refused here.
    False is not proof.
    """
    if sys.platform != "linux":
        return False
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace")
        rows = (
            Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        )
        limits = [path.read_text(encoding="utf-8").strip() for path in _NAMESPACE_LIMITS]
    except OSError:
        return True
    points = [row.split(" ")[4] for row in rows]
    is_proc_masked = any(
        point.startswith("/proc/") and point not in _USUAL_PROC_MOUNTS for point in points
    )
    is_filtered = "\nSeccomp:\t0\n" not in status
    has_hint = is_filtered or "0" in limits or is_proc_masked or not _is_root_usual(rows)
    return has_hint or _is_kept_by_module() or _is_kept_by_setting()


def _is_root_usual(rows: list[str]) -> bool:
    """Return whether `/` is a whole file system,
    by the rows of mountinfo: a `chroot` has no namespaces.
    """
    # A subvolume of btrfs shows as a part of a file system, too.
    return any(
        row.split(" ")[3:5] == ["/", "/"] or (row.split(" ")[4] == "/" and " - btrfs " in row)
        for row in rows
    )


def _is_kept_by_setting() -> bool:
    if not os.getuid():
        return False
    for path, value in _USER_SETTINGS:
        # Other systems have no such file.
        with suppress(OSError):
            if path.read_text(encoding="utf-8").strip() == value:
                return True
    return False


def _is_kept_by_module() -> bool:
    """Return whether a security module (AppArmor, SELinux) confines this process."""
    with suppress(OSError):
        label = (
            Path("/proc/self/attr/current")
            .read_text(encoding="utf-8", errors="replace")
            .strip("\0\n ")
        )
        return bool(label) and "unconfined" not in label and label != "kernel"
    return False
