"""A sandbox made by bubblewrap, where it may make namespaces and we may not: the same places, as its options."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from codeloop.workspace.sandbox.launcher.mounts import (
    PROC_HIDDEN,
    PROC_READ_ONLY,
    REPLACED,
    RUN,
    TEMPORARY,
    is_below,
    pinned,
)
from codeloop.workspace.sandbox.policy import SandboxPolicy

_PROGRAMS = ("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap")
"""Where it is looked for: it has more rights than we do, so it is never the one of a project."""
_ALONE = ("--die-with-parent", "--unshare-pid", "--as-pid-1", "--unshare-ipc", "--unshare-uts")


def bubblewrap() -> str:
    """Return the program's path. Raises FileNotFoundError."""
    for path in _PROGRAMS:
        if os.access(path, os.X_OK):
            return path
    raise FileNotFoundError("bubblewrap is not installed")


def wrapped(program: Sequence[str], policy: SandboxPolicy, temporary: Path) -> list[str]:
    """Return the command that runs a program under a policy. Raises FileNotFoundError without bubblewrap."""
    writable, protected, hidden = (
        list(map(str, paths)) for paths in (policy.writable, policy.protected, policy.hidden)
    )
    visible = [str(path) for path in policy.visible]
    command = [bubblewrap(), *_ALONE, *(() if policy.network == "on" else ("--unshare-net",))]
    command += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *_proc(), *_run()]
    for place in TEMPORARY:
        if os.path.realpath(place) == place and Path(place).is_dir():
            command += ["--bind", str(temporary), place]
    opened = dict.fromkeys(visible, "--ro-bind") | dict.fromkeys(writable, "--bind")
    for path in sorted(opened):
        if path in writable or is_below(path, REPLACED):
            command += _at(opened[path], path)
    for path in pinned(writable, protected):
        command += _at("--bind", path)
    for path in protected:
        command += _at("--ro-bind", path)
    for path in sorted(path for path in opened if is_below(path, protected)):
        command += _at(opened[path], path)
    for path in filter(os.path.lexists, hidden):  # a socket may be gone by now
        kept = sorted(each for each in opened if is_below(each, (path,)))
        # A device that can't be opened where it is bound to: reading says "Permission denied".
        command += ("--tmpfs", path) if Path(path).is_dir() else ("--ro-bind", "/dev/null", path)
        for each in kept:
            command += _at(opened[each], each)
        command += ("--remount-ro", path) if Path(path).is_dir() else ()
    return [*command, "--chdir", "/", "--", *program]


def _proc() -> Iterable[str]:
    """Yield what keeps the settings of the machine from being changed: bubblewrap leaves them to who is root."""
    for path in filter(os.path.lexists, (f"/proc/{name}" for name in PROC_READ_ONLY)):
        yield from _at("--ro-bind", path)
    for path in filter(os.path.lexists, (f"/proc/{name}" for name in PROC_HIDDEN)):
        yield from ("--ro-bind", "/dev/null", path)


def _run() -> Iterable[str]:
    if not Path("/run").is_dir():
        return
    yield from ("--tmpfs", "/run")
    for path in (f"/run/{name}" for name in RUN):
        if Path(path).is_symlink():
            yield from ("--symlink", str(Path(path).readlink()), path)
        elif os.path.lexists(path):
            yield from _at("--ro-bind", path)


def _at(option: str, path: str) -> tuple[str, str, str]:
    return option, path, path
