"""Puts the current process into a sandbox, with everything that it forks from then on; there is no way back."""

import os
import resource
from struct import pack

from codeloop.workspace.sandbox.launcher.cache_overlays import layer_caches
from codeloop.workspace.sandbox.launcher.landlock import read_landlock_version, restrict, restrict_scope
from codeloop.workspace.sandbox.launcher.libc import become_subreaper, call, close_memory, write_text
from codeloop.workspace.sandbox.launcher.mounts import mount_all
from codeloop.workspace.sandbox.launcher.namespaces import enter_mounts, enter_network, enter_processes
from codeloop.workspace.sandbox.launcher.plan import Plan
from codeloop.workspace.sandbox.launcher.seccomp import filter_calls

_CHOWN, _DAC_OVERRIDE, _FOWNER, _FSETID, _NET_BIND = 0, 1, 3, 4, 10  # linux/capability.h
_ROOT_CAPABILITIES = (_CHOWN, _DAC_OVERRIDE, _FOWNER, _FSETID, _NET_BIND)
"""Capabilities that root keeps in the project, whose files often belong to others; none leads out of the sandbox."""
_LAST_CAPABILITY = 63  # sets of capabilities have 64 bits
_OOM_SCORE = "500"
"""Added to the score by which the kernel chooses what to kill when memory is short: commands go first."""


def confine(plan: Plan) -> None:
    """Enter the planned sandbox. Raises OSError on failure; then this process must exit."""
    match plan.kind:
        case "base":
            enter_mounts()
            return
        case "network":
            enter_network()
            return
        case "sandbox-exec":
            return  # sandbox-exec has confined this process before it started
        case "namespaces":
            layer_caches(plan)  # before the mount namespace of its own: all sandboxes share one mount of a layer
            enter_processes()
            mount_all(plan)
            _drop_capabilities()
            restrict_scope()
        case "bubblewrap":
            _drop_capabilities()
            restrict_scope()
        case "landlock":
            _drop_capabilities()
            restrict(plan)
        case _:
            _drop_capabilities()
    become_subreaper()
    is_landlock = plan.kind == "landlock"
    # Landlock can't refuse every kind of socket, nor truncation before its version 3: seccomp does so in its place.
    filter_calls(
        unix=not is_landlock,
        internet=plan.network or not is_landlock,
        truncate=not is_landlock or read_landlock_version() >= 3,
    )
    close_memory()


def _drop_capabilities() -> None:
    capabilities = _ROOT_CAPABILITIES if not os.getuid() else ()
    write_text("/proc/self/oom_score_adj", _OOM_SCORE)
    for number in range(_LAST_CAPABILITY):
        if number not in capabilities:
            try:
                call("prctl", 24, number, 0, 0, 0)  # PR_CAPBSET_DROP
            except OSError:
                break  # behind the last one that the kernel knows, or we have none to drop
    # 0x20080522 is version 3 of the interface; effective, permitted and inheritable sets, the lower words first.
    bits = sum(1 << number for number in capabilities)
    call("capset", pack("=II", 0x20080522, 0), pack("=6I", bits, bits, 0, 0, 0, 0))


def limit_processes(processes: int) -> None:
    """Limit how many processes there may be: of our user, and in newer systems of this sandbox."""
    if processes:
        _, most = resource.getrlimit(resource.RLIMIT_NPROC)
        allowed = processes if most == resource.RLIM_INFINITY else min(processes, most)
        resource.setrlimit(resource.RLIMIT_NPROC, (allowed, allowed))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
