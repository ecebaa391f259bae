"""Restricts files, TCP and IPC (abstract sockets and signals) by Landlock: rules that
a process sets for itself.

`confine.py` uses all of it where namespaces are unavailable,
and in other sandboxes only the restriction of IPC.
"""

import os
import stat
import struct

from codeloop.workspace.sandbox.launcher.libc import call_libc
from codeloop.workspace.sandbox.launcher.plan import Plan
from codeloop.workspace.sandbox.launcher.suppress import Suppress

# Numbers of system calls (the same on all architectures), then values of linux/landlock.h.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_BLOCK, _REFER, _TRUNCATE = 1 << 6, 1 << 11, 1 << 13, 1 << 14
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_READ_RIGHTS = _EXECUTE | _READ_FILE | _READ_DIR
# Bind and connect.
_TCP_RIGHTS = 3
# Abstract sockets and signals of processes outside.
_SCOPES = 3
_RIGHT_COUNTS = (0, 13, 14, 15)
"""The number of file rights in version 0, 1, 2 and 3 of the interface;
later ones add none that is used here.
"""
_DEVICE_NAMES = ("null", "zero", "full", "random", "urandom", "tty", "shm")
"""Devices that commands use. `/dev/pts` is not among them: a right on it would include
the terminals of the user.
"""
_UNREADABLE_FOLDERS = tuple(f"/{name}" for name in ("tmp", "var/tmp", "run", "dev"))
"""Folders that are replaced in other sandboxes; here they just can't be read."""


def read_landlock_version() -> int:
    """Return the version of the kernel's Landlock interface; 0 where it has none."""
    try:
        # The last argument, LANDLOCK_CREATE_RULESET_VERSION,
        # asks for the version instead of a ruleset.
        return call_libc("syscall", _CREATE_RULESET, None, 0, 1)
    except OSError:
        return 0


def restrict_by_landlock(plan: Plan) -> None:
    """Restrict this process and its descendants to the plan's paths and network,
    and their IPC to themselves.

    Without the plan's network they can't bind or connect TCP sockets, from version 4 of the
    interface on. From version 6 on they reach no abstract socket and signal no process outside.
    Raises OSError.
    """
    version = read_landlock_version()
    # The kernel refuses rights that it does not know.
    rights = (1 << _RIGHT_COUNTS[min(version, len(_RIGHT_COUNTS) - 1)]) - 1
    ruleset = _make_ruleset(
        version, file_rights=rights, network_rights=0 if plan.network else _TCP_RIGHTS
    )
    _add_rule(ruleset, "/", _READ_DIR)
    _allow_reading_except(ruleset, "/", {*plan.hidden, *plan.replaced, *_UNREADABLE_FOLDERS})
    for path in (
        *plan.visible,
        *(f"/run/{name}" for name in ("systemd/resolve", "current-system")),
    ):
        _allow_reading_except(ruleset, path, set(plan.hidden))
    for name in _DEVICE_NAMES:
        _add_rule(ruleset, f"/dev/{name}", rights & ~_EXECUTE)
    for path in (*plan.writable, plan.temporary):
        _add_rule(ruleset, path, rights & ~_MAKE_CHAR & ~_MAKE_BLOCK)
    _enforce_ruleset(ruleset)


def restrict_ipc_scope() -> bool:
    """Refuse connections to abstract sockets and signals to processes outside,
    where Landlock can (version 6).

    Returns whether that was done.
    """
    # What holds is the namespaces: a security module that refuses Landlock must
    # not cost the whole sandbox.
    with Suppress(OSError):
        if read_landlock_version() >= 6:
            _enforce_ruleset(_make_ruleset(6, file_rights=0, network_rights=0))
            return True
    return False


def _make_ruleset(version: int, *, file_rights: int, network_rights: int) -> int:
    """Return a descriptor of a ruleset that refuses _SCOPES,
    and these rights where no rule allows them.

    Raises OSError.
    """
    # The kernel refuses attributes that it does not know: network came with version 4,
    # scopes with version 6.
    values = [file_rights]
    if version >= 4:
        values.append(network_rights)
    if version >= 6:
        values.append(_SCOPES)
    attributes = struct.pack(f"{len(values)}Q", *values)
    return call_libc("syscall", _CREATE_RULESET, attributes, len(attributes), 0)


def _enforce_ruleset(ruleset: int) -> None:
    # 38 is PR_SET_NO_NEW_PRIVS. The kernel requires it of users without privileges: otherwise a
    # setuid program could be started with rules that its author did not expect.
    call_libc("prctl", 38, 1, 0, 0, 0)
    call_libc("syscall", _RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _allow_reading_except(ruleset: int, folder: str, hidden: set[str]) -> None:
    """Allow reading below a folder, except the hidden paths.

    Landlock has no rule that takes a right away, so each entry next to a hidden
    one gets a rule of its own.
    """
    if folder in hidden:
        return
    if not any(path.startswith(folder.rstrip("/") + "/") for path in hidden):
        _add_rule(ruleset, folder, _READ_RIGHTS)
        return
    try:
        with os.scandir(folder) as entries:
            paths = [entry.path for entry in entries if not entry.is_symlink()]
    except OSError:
        return
    for path in paths:
        _allow_reading_except(ruleset, path, hidden)


def _add_rule(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        # It is absent, or this user has no access to it.
        return
    try:
        kind = os.fstat(fd).st_mode
        # The kernel accepts no rule for links and sockets.
        if stat.S_ISLNK(kind) or stat.S_ISSOCK(kind):
            return
        rule = struct.pack("=Qi", rights if stat.S_ISDIR(kind) else rights & _FILE_RIGHTS, fd)
        call_libc("syscall", _ADD_RULE, ruleset, 1, rule, 0)
    finally:
        os.close(fd)
