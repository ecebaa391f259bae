"""Namespaces of our own: which users, processes and network a sandbox sees."""

import fcntl
import os
import struct
from _socket import AF_INET, SOCK_DGRAM, socket

from codeloop.workspace.sandbox.launcher.libc import call, read_text, write_text

# Values of linux/sched.h, linux/if.h and linux/sockios.h, which Python does not have.
_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_IFF_UP, _SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x1, 0x8913, 0x8914
_MAPS = ("uid_map", "gid_map")


def enter_mounts() -> None:
    """Enter a user and a mount namespace of our own, within which all others are made."""
    _enter_user(_NEWNS)


def enter_network() -> None:
    """Enter a network namespace of our own, with no interface but `lo`, which is set up."""
    call("unshare", _NEWNET)  # `lo` is down in a new one
    lo = socket(AF_INET, SOCK_DGRAM)
    request = bytearray(struct.pack("16sH22x", b"lo", 0))
    fcntl.ioctl(lo.fileno(), _SIOCGIFFLAGS, request)
    struct.pack_into("H", request, 16, struct.unpack_from("H", request, 16)[0] | _IFF_UP)
    fcntl.ioctl(lo.fileno(), _SIOCSIFFLAGS, request)
    lo.close()


def enter_processes() -> None:
    """Enter mount, IPC and PID namespaces of our own.

    Returns as the first process of the last; the one that called stays behind until that has ended.
    """
    call("unshare", _NEWNS | _NEWIPC | _NEWPID)
    first = os.fork()  # a PID namespace begins with the next child, not with the caller
    if first:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) & 0xFF)


def _enter_user(more: int) -> None:
    """Enter a user namespace, in which root has all users of this one, and another user only themselves."""
    uid, gid = os.getuid(), os.getgid()
    if uid:
        call("unshare", _NEWUSER | more)
        # The kernel accepts a gid_map from other users only after `setgroups` is denied.
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            write_text(f"/proc/self/{name}", text)
        return
    ours = os.getpid()
    entered_fd, enter = os.pipe()  # its end tells the helper that we have entered
    helper = os.fork()
    if not helper:
        os.close(enter)
        _map_all(ours, entered_fd)
    os.close(entered_fd)
    call("unshare", _NEWUSER | more)
    os.close(enter)
    if os.waitpid(helper, 0)[1]:
        raise PermissionError("users can't be mapped into a namespace")


def _map_all(pid: int, entered_fd: int) -> None:
    """Map all users for a process that has entered its own namespace, which only a process outside of it may. Exits."""
    code = 1
    try:
        os.read(entered_fd, 1)
        for name in _MAPS:
            rows = (row.split() for row in read_text(f"/proc/self/{name}").splitlines())
            write_text(f"/proc/{pid}/{name}", "\n".join(f"{first} {first} {count}" for first, _, count in rows))
        code = 0
    finally:
        os._exit(code)
