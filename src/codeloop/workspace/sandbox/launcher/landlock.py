"""Landlock: read and write access by file hierarchy, where namespaces are unavailable."""

import os
import stat
import struct

from codeloop.workspace.sandbox.launcher.libc import call
from codeloop.workspace.sandbox.launcher.plan import Plan

# Numbers of system calls (the same on all architectures), then values of linux/landlock.h.
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_BLOCK, _REFER, _TRUNCATE = 1 << 6, 1 << 11, 1 << 13, 1 << 14
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_TCP = 3  # bind and connect
_SCOPES = 3  # abstract sockets and signals of others
_RIGHTS = (0, 13, 14, 15)
"""How many file rights the first versions of the interface know; later ones add none that is used here."""
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "shm")
"""Without the terminals: rights on `/dev/pts` would be rights on those of other programs, too."""
_REPLACED = tuple(f"/{name}" for name in ("tmp", "var/tmp", "run", "dev"))
"""Folders that are replaced in other sandboxes; here they just can't be read."""


def read_landlock_version() -> int:
    """Return the version of the interface, 0 for none."""
    try:
        return call("syscall", _CREATE, None, 0, 1)
    except OSError:
        return 0


def restrict(plan: Plan) -> None:
    """Confine this process and its descendants to the plan. Raises OSError."""
    version = read_landlock_version()
    rights = (1 << _RIGHTS[min(version, len(_RIGHTS) - 1)]) - 1
    ruleset = _make_ruleset(version, rights, 0 if plan.network else _TCP)
    _allow(ruleset, "/", _READ_DIR)
    _allow_but(ruleset, "/", {*plan.hidden, *plan.replaced, *_REPLACED})
    for path in (*plan.visible, *(f"/run/{name}" for name in ("systemd/resolve", "current-system"))):
        _allow_but(ruleset, path, set(plan.hidden))
    for name in _DEVICES:
        _allow(ruleset, f"/dev/{name}", rights & ~_EXECUTE)
    for path in (*plan.writable, plan.temporary):
        _allow(ruleset, path, rights & ~_MAKE_CHAR & ~_MAKE_BLOCK)
    _enforce(ruleset)


def restrict_scope() -> None:
    """Keep abstract sockets and processes of others out of reach, where Landlock can."""
    if read_landlock_version() >= 6:
        _enforce(_make_ruleset(6, 0, 0))


def _make_ruleset(version: int, files: int, network: int) -> int:
    # The kernel refuses attributes that it does not know: network came with version 4, scopes with version 6.
    values = (files, *((network,) if version >= 4 else ()), *((_SCOPES,) if version >= 6 else ()))
    attributes = struct.pack(f"{len(values)}Q", *values)
    return call("syscall", _CREATE, attributes, len(attributes), 0)


def _enforce(ruleset: int) -> None:
    call("prctl", 38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS, which both filters require from users without privileges
    call("syscall", _RESTRICT, ruleset, 0)
    os.close(ruleset)


def _allow_but(ruleset: int, folder: str, hidden: set[str]) -> None:
    """Allow reading below a folder, but not the hidden paths.

    Landlock has no rule that takes a right away, so every other entry beside a hidden one gets a rule of its own.
    """
    if folder in hidden:
        return
    if not any(path.startswith(folder.rstrip("/") + "/") for path in hidden):
        _allow(ruleset, folder, _READ)
        return
    try:
        with os.scandir(folder) as entries:
            names = [entry.path for entry in entries if not entry.is_symlink()]
    except OSError:
        return
    for path in names:
        _allow_but(ruleset, path, hidden)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # it is absent, or we have no access to it ourselves
    try:
        kind = os.fstat(fd).st_mode
        if stat.S_ISLNK(kind) or stat.S_ISSOCK(kind):
            return  # the kernel accepts no rule for these
        rule = struct.pack("=Qi", rights if stat.S_ISDIR(kind) else rights & _OF_FILES, fd)
        call("syscall", _ADD, ruleset, 1, rule, 0)
    finally:
        os.close(fd)
