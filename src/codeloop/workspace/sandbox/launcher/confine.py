"""Confines the current process, and all that it forks later, to a sandbox: namespaces,
capabilities, filters.

The launcher's `main.py` calls `confine` in a freshly forked process;
no process can leave its sandbox again.
"""

import errno
import fcntl
import os
import resource
import struct
from _socket import AF_INET, SOCK_DGRAM, socket

from codeloop.workspace.sandbox.launcher.cache_overlays import overlay_caches
from codeloop.workspace.sandbox.launcher.landlock import (
    read_landlock_version,
    restrict_by_landlock,
    restrict_ipc_scope,
)
from codeloop.workspace.sandbox.launcher.libc import become_subreaper, call_libc, make_undumpable
from codeloop.workspace.sandbox.launcher.mounts import mount_all
from codeloop.workspace.sandbox.launcher.plan import Plan
from codeloop.workspace.sandbox.launcher.proc_files import read_text, write_text
from codeloop.workspace.sandbox.launcher.seccomp import can_watch_internet, filter_calls
from codeloop.workspace.sandbox.launcher.suppress import Step, Suppress

# Values of linux/sched.h, linux/if.h and linux/sockios.h, which Python does not have.
_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_IFF_UP, _SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x1, 0x8913, 0x8914
_ID_MAPS = ("uid_map", "gid_map")
_CHOWN, _DAC_OVERRIDE, _FOWNER, _FSETID, _NET_BIND = 0, 1, 3, 4, 10  # linux/capability.h
_ROOT_CAPABILITIES = (_CHOWN, _DAC_OVERRIDE, _FOWNER, _FSETID, _NET_BIND)
"""Capabilities that root keeps in the project, whose files often belong to others;
none leads out of the sandbox.
"""
# The kernel keeps capabilities in sets of this size, and has some forty of them.
_CAPABILITY_BITS = 64
# Added to the score by which the kernel chooses a process to kill when memory is short:
# commands go before codeloop.
_OOM_SCORE = "500"


class Confinement:
    """What a sandbox turned out to be on this machine.

    `lacks`: what it does without, of "layers" (over caches) and "scope" (Landlock's,
    of signals and abstract sockets);
    `refuses_internet`: each supervisor has to refuse internet sockets to its commands.
    """

    def __init__(self, lacks: tuple[str, ...] = (), *, refuses_internet: bool = False) -> None:
        self.lacks = lacks
        self.refuses_internet = refuses_internet


def confine(plan: Plan) -> Confinement:
    """Enter the planned sandbox. Raises OSError on failure; then this process must exit."""
    lacks: list[str] = []
    match plan.kind:
        case "base":
            # All other namespaces are made in this one.
            with Step("a user namespace can't be made"):
                _enter_user_namespace(_NEWNS)
            return Confinement()
        case "network":
            with Step("a network of its own can't be made"):
                _enter_network_namespace()
            return Confinement()
        case "sandbox-exec":
            # macOS: sandbox-exec has confined this process before it started.
            return Confinement()
        case "namespaces":
            with Step("nothing can be mounted in a namespace"):
                # Before the sandbox gets its own mount namespace,
                # so that all sandboxes share one mount of each layer.
                lacks += () if overlay_caches(plan) else ("layers",)
                _enter_process_namespace()
                mount_all(plan)
            _demote_process()
            lacks += () if restrict_ipc_scope() else ("scope",)
        case "bubblewrap":
            _demote_process()
            lacks += () if restrict_ipc_scope() else ("scope",)
        case "landlock":
            _demote_process()
            with Step("Landlock can't be used"):
                restrict_by_landlock(plan)
            lacks += () if read_landlock_version() >= 6 else ("scope",)
        case _:
            raise OSError(errno.EINVAL, "there is no sandbox of this kind", plan.kind)
    become_subreaper()
    is_landlock = plan.kind == "landlock"
    with Step("system calls can't be filtered"):
        refuses_internet = is_landlock and not plan.network and can_watch_internet()
        # Namespaces hide the sockets and files of others. Landlock hides no socket by its kind, and
        # its first two versions let any file be truncated, so seccomp refuses both.
        filter_calls(
            unix=not is_landlock,
            internet=plan.network or not is_landlock or refuses_internet,
            truncate=not is_landlock or read_landlock_version() >= 3,
        )
    # Commands run as the same user: they must not read or change the process that supervises them.
    make_undumpable()
    return Confinement(tuple(lacks), refuses_internet=refuses_internet)


def _demote_process() -> None:
    """Drop all capabilities but root's few, and raise the score by which the
    kernel chooses what to kill.
    """
    capabilities = _ROOT_CAPABILITIES if not os.getuid() else ()
    # It protects codeloop, not the machine, so a container in which it can't be written
    # has a sandbox all the same.
    with Suppress(OSError):
        write_text("/proc/self/oom_score_adj", _OOM_SCORE)
    for number in range(_CAPABILITY_BITS):
        if number not in capabilities:
            try:
                call_libc("prctl", 24, number, 0, 0, 0)  # PR_CAPBSET_DROP
            except OSError:
                # The number is beyond the kernel's last capability,
                # or this process has none to drop.
                break
    # 0x20080522 is version 3 of the interface: effective, permitted and inheritable sets,
    # the lower words first.
    bits = sum(1 << number for number in capabilities)
    call_libc(
        "capset", struct.pack("=II", 0x20080522, 0), struct.pack("=6I", bits, bits, 0, 0, 0, 0)
    )


def limit_resources(processes: int) -> None:
    """Limit the number of processes, and turn core dumps off. 0: no limit.

    The kernel counts the processes of the user; since Linux 5.14 only those in
    the same user namespace.
    """
    if processes:
        _, hard_limit = resource.getrlimit(resource.RLIMIT_NPROC)
        allowed = processes if hard_limit == resource.RLIM_INFINITY else min(processes, hard_limit)
        resource.setrlimit(resource.RLIMIT_NPROC, (allowed, allowed))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _enter_network_namespace() -> None:
    """Enter a new network namespace, whose only interface is `lo`, and set that up."""
    call_libc("unshare", _NEWNET)
    # `lo` is down in a new namespace, so servers and clients on localhost would
    # not reach each other.
    lo = socket(AF_INET, SOCK_DGRAM)
    request = bytearray(struct.pack("16sH22x", b"lo", 0))
    fcntl.ioctl(lo.fileno(), _SIOCGIFFLAGS, request)
    struct.pack_into("H", request, 16, struct.unpack_from("H", request, 16)[0] | _IFF_UP)
    fcntl.ioctl(lo.fileno(), _SIOCSIFFLAGS, request)
    lo.close()


def _enter_process_namespace() -> None:
    """Enter new mount, IPC and PID namespaces.

    Returns in the first process of the PID namespace; the calling process waits for its end,
    and exits with its code.
    """
    call_libc("unshare", _NEWNS | _NEWIPC | _NEWPID)
    # A PID namespace begins with the next child of the process that made it.
    first = os.fork()
    if first:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) & 0xFF)


def _enter_user_namespace(further_namespaces: int) -> None:
    """Enter a new user namespace together with further ones (CLONE_NEW flags).

    Root keeps all its users in it; another user has only themselves. Raises OSError.
    """
    uid, gid = os.getuid(), os.getgid()
    if uid:
        call_libc("unshare", _NEWUSER | further_namespaces)
        # The kernel accepts a gid_map from other users only after `setgroups` is denied.
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            write_text(f"/proc/self/{name}", text)
        return
    # Only a process outside of the new namespace may map all users, so a helper does that. The
    # pipe's end tells it that this process has entered.
    own_pid = os.getpid()
    entered_reader, entered_writer = os.pipe()
    helper = os.fork()
    if not helper:
        os.close(entered_writer)
        _map_all_users(own_pid, entered_reader)
    os.close(entered_reader)
    call_libc("unshare", _NEWUSER | further_namespaces)
    os.close(entered_writer)
    if os.waitpid(helper, 0)[1]:
        raise PermissionError(errno.EPERM, "users can't be mapped into it")


def _map_all_users(pid: int, entered_reader: int) -> None:
    """Map all users into the namespace of a process as soon as the pipe ends, then exit."""
    code = 1
    try:
        os.read(entered_reader, 1)
        for name in _ID_MAPS:
            rows = (row.split() for row in read_text(f"/proc/self/{name}").splitlines())
            write_text(
                f"/proc/{pid}/{name}",
                "\n".join(f"{first} {first} {count}" for first, _, count in rows),
            )
        code = 0
    finally:
        os._exit(code)
