"""`python weak_machine.py WEAKNESS[,WEAKNESS] COMMAND...`: runs a command where the kernel
denies sandboxes something.

A filter makes the kernel refuse system calls, as a container, a security module or an old kernel
does; a process in between answers as an older Landlock (`landlock=3`). `chroot`, `masked-proc`,
`no-proc` and `no-overlay` are made of mounts, in a mount namespace of their own, which takes root.
"""

import errno
import fcntl
import os
import socket
import sys
from collections.abc import Callable, Sequence
from ctypes import addressof, create_string_buffer
from pathlib import Path
from struct import pack, unpack_from

from codeloop.workspace.sandbox.launcher.libc import call_libc

_COLUMN = {"x86_64": 0, "aarch64": 1}.get(os.uname().machine)
_CALLS = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "ioctl": (16, 29),
    "landlock_add_rule": (445, 445),
    "landlock_create_ruleset": (444, 444),
    "landlock_restrict_self": (446, 446),
    "listen": (50, 201),
    "mount": (165, 40),
    "prctl": (157, 167),
    "seccomp": (317, 277),
    "unshare": (272, 97),
}
_NEWNS, _NEWUSER, _NEWNET = 0x20000, 0x10000000, 0x40000000
_ALL_NAMESPACES = 0x7E020000
_PR_SET_SECCOMP = 22
_SIOCSIFFLAGS = 0x8914
_LANDLOCK = ("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self")
# A row: the call, the number of an argument (None: whatever they are), the bits of it that are
# compared, the values that match (None: any bit), and the error.
_Row = tuple[str, int | None, int, tuple[int, ...] | None, int]
WEAKNESSES: dict[str, tuple[_Row, ...]] = {
    # As most containers: no namespaces at all.
    "no-namespaces": (
        ("unshare", 0, _ALL_NAMESPACES, None, errno.EPERM),
        ("clone", 0, _ALL_NAMESPACES, None, errno.EPERM),
        ("clone3", None, 0, None, errno.ENOSYS),
    ),
    # As AppArmor's restriction of Ubuntu 24.04: they can be made,
    # and nothing may be mounted in them.
    "no-mounts": (("mount", None, 0, None, errno.EACCES),),
    "no-network-namespaces": (("unshare", 0, _NEWNET, None, errno.ENOSPC),),
    "no-loopback": (("ioctl", 1, 0xFFFFFFFF, (_SIOCSIFFLAGS,), errno.EPERM),),
    "no-servers": (("listen", None, 0, None, errno.EACCES),),
    "no-landlock": tuple((name, None, 0, None, errno.EOPNOTSUPP) for name in _LANDLOCK),
    # A security module refuses what the kernel says it has.
    "refused-landlock": (("landlock_restrict_self", None, 0, None, errno.EACCES),),
    "no-seccomp": (
        ("prctl", 0, 0xFFFFFFFF, (_PR_SET_SECCOMP,), errno.EINVAL),
        ("seccomp", None, 0, None, errno.ENOSYS),
    ),
    # As filters of containers that are older than the call.
    "no-seccomp-call": (("seccomp", None, 0, None, errno.ENOSYS),),
}
_LOAD, _AND, _EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_ALLOW, _ERRNO, _NOTIFY = 0x7FFF0000, 0x00050000, 0x7FC00000
_NOTIF_RECV, _NOTIF_SEND, _CONTINUE = 0xC0502100, 0xC0182101, 1


def main(names: str, command: Sequence[str]) -> None:
    """Weaken this process in each of the named ways, then replace it by the command."""
    if _COLUMN is None:
        raise SystemExit("weak_machine: the system calls of this processor are not known")
    rows: list[_Row] = []
    for name in names.split(","):
        kind, _, version = name.partition("=")
        if kind in _MAKERS:
            _MAKERS[kind]()
        elif kind == "landlock":
            _answer_as_landlock(int(version))
        else:
            rows += WEAKNESSES[name]
    if rows:
        _install([instruction for row in rows for instruction in _refuse(row)], flags=0)
    os.execvp(command[0], list(command))


def _refuse(row: _Row) -> list[tuple[int, int, int, int]]:
    """Return the instructions that refuse the calls of a row."""
    name, argument, mask, values, error = row
    number = _CALLS[name][_COLUMN or 0]
    refusal = (_RETURN, 0, 0, _ERRNO | error)
    if argument is None:
        then = [refusal]
    else:
        then = [(_LOAD, 0, 0, 16 + 8 * argument), (_AND, 0, 0, mask)]
        if values is None:
            then += [(_EQUAL, 1, 0, 0), refusal]
        for value in values or ():
            then += [(_EQUAL, 0, 1, value), refusal]
        then += [(_LOAD, 0, 0, 0)]
    return [(_LOAD, 0, 0, 0), (_EQUAL, 0, len(then), number), *then]


def _install(code: list[tuple[int, int, int, int]], flags: int) -> int:
    """Install a filter; return the descriptor of its listener, if `flags` ask for one."""
    code = [*code, (_RETURN, 0, 0, _ALLOW)]
    program = create_string_buffer(b"".join(pack("=HBBI", *each) for each in code))
    call_libc("prctl", 38, 1, 0, 0, 0)
    head = create_string_buffer(pack("@HP", len(code), addressof(program)))
    return call_libc("syscall", _CALLS["seccomp"][_COLUMN or 0], 1, flags, head)


def _answer_as_landlock(version: int) -> None:
    """Have a parent answer when this process, or one that it starts,
    asks for the version of Landlock.
    """
    # A connection passes the listener: the child has it, and the parent answers.
    ours, theirs = socket.socketpair()
    child = os.fork()
    if not child:
        ours.close()
        number = _CALLS["landlock_create_ruleset"][_COLUMN or 0]
        # The third argument is 1 where the version is asked for.
        then = [(_LOAD, 0, 0, 16 + 8 * 2), (_EQUAL, 0, 1, 1), (_RETURN, 0, 0, _NOTIFY)]
        listener = _install([(_LOAD, 0, 0, 0), (_EQUAL, 0, len(then), number), *then], flags=8)
        socket.send_fds(theirs, [b"l"], [listener])
        os.close(listener)
        theirs.close()
        return
    theirs.close()
    _, (listener,), _, _ = socket.recv_fds(ours, 1, 1)
    if not os.fork():
        os.setsid()
        while True:
            request = bytearray(80)
            try:
                fcntl.ioctl(listener, _NOTIF_RECV, request)
                (cookie,) = unpack_from("=Q", request)
                fcntl.ioctl(listener, _NOTIF_SEND, pack("=QqiI", cookie, version, 0, 0))
            except OSError:
                # The process has ended meanwhile; without any process left,
                # the listener is of no use.
                os._exit(0)
    os.close(listener)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)


def _enter_mount_namespace() -> None:
    """Enter a mount namespace, which takes root."""
    call_libc("unshare", _NEWNS)
    call_libc("mount", None, b"/", None, 0x4000 | 1 << 18, None)


def _mask_proc() -> None:
    """Hide a part of /proc, as containers do: then the kernel lets nobody mount
    another one in a namespace.
    """
    _enter_mount_namespace()
    call_libc("mount", b"/dev/null", b"/proc/keys", None, 4096, None)


def _remove_proc() -> None:
    _enter_mount_namespace()
    call_libc("mount", b"tmpfs", b"/proc", b"tmpfs", 0, None)


def _change_root() -> None:
    """Go where the root is another mount of the same files: there the kernel
    makes no user namespace.
    """
    _enter_mount_namespace()
    folder = Path.cwd()
    call_libc("mount", b"/", b"/mnt", None, 4096 | 0x4000, None)
    os.chroot("/mnt")
    os.chdir(folder)


def _overlay_data() -> None:
    """Mount two overlays over the folder of codeloop's data: the kernel mounts
    no third one over these.
    """
    _enter_mount_namespace()
    folder = Path(os.environ.get("CODELOOP_HOME") or os.environ["HOME"])
    folder.mkdir(exist_ok=True)
    call_libc("mount", b"tmpfs", b"/mnt", b"tmpfs", 0, None)
    for number in ("1", "2"):
        for name in ("upper", "work"):
            Path("/mnt", number, name).mkdir(parents=True)
        options = f"lowerdir={folder},upperdir=/mnt/{number}/upper,workdir=/mnt/{number}/work"
        call_libc("mount", b"overlay", os.fsencode(folder), b"overlay", 0, options.encode())


_MAKERS: dict[str, Callable[[], None]] = {
    "chroot": _change_root,
    "masked-proc": _mask_proc,
    "no-proc": _remove_proc,
    "no-overlay": _overlay_data,
}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
