"""A sandbox made by bubblewrap, where it may create namespaces and we may not: the policy as its options."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from codeloop.workspace.sandbox.launcher.mount_points import make_link, open_point
from codeloop.workspace.sandbox.launcher.mounts import (
    PROC_HIDDEN,
    PROC_READ_ONLY,
    REPLACED_FOLDERS,
    RUN_ENTRIES,
    TEMPORARY_FOLDERS,
    is_below,
    list_pinned_folders,
)
from codeloop.workspace.sandbox.policy import SandboxPolicy
from codeloop.workspace.sandbox.private_folders import HOME, make_cache

_PROGRAMS = ("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap")
"""Paths that are tried. Not by PATH: the program may be setuid, so it must not come from a project."""
_ISOLATION_OPTIONS = ("--die-with-parent", "--unshare-pid", "--as-pid-1", "--unshare-ipc", "--unshare-uts")


def find_bubblewrap() -> str:
    """Return the program's path. Raises FileNotFoundError."""
    for path in _PROGRAMS:
        if os.access(path, os.X_OK):
            return path
    raise FileNotFoundError("bubblewrap is not installed")


class OwnFolders(Struct, frozen=True):
    """Our folders: the one mounted as `/tmp`, and the one with the private home and caches, if any."""

    temporary: Path
    private: Path | None


def wrap_command(program: Sequence[str], policy: SandboxPolicy, own: OwnFolders) -> list[str]:
    """Return the command that runs a program under a policy. Raises FileNotFoundError without bubblewrap."""
    writable, protected, hidden = (
        list(map(str, paths)) for paths in (policy.writable, (*policy.protected, *policy.foreign), policy.hidden)
    )
    replaced, layered = (list(map(str, paths)) for paths in (policy.replaced, policy.layered))
    visible = [str(path) for path in policy.visible]
    command = [find_bubblewrap(), *_ISOLATION_OPTIONS, *(() if policy.network == "on" else ("--unshare-net",))]
    # Options are carried out in order: a later one covers an earlier one, so what is hidden comes last.
    command += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *_list_proc_options(), *_list_run_options()]
    for point in TEMPORARY_FOLDERS:
        if os.path.realpath(point) == point and Path(point).is_dir():
            command += ["--bind", str(own.temporary), point]
    emptied = [path for path in sorted(replaced) if path != str(policy.home) and Path(path).is_dir()]
    emptied = [path for path in emptied if not is_below(str(Path(path).parent), emptied)]
    for path in sorted((*emptied, *filter(None, (str(policy.home or ""),)))):
        command += ("--tmpfs", path) if path in emptied else ("--bind", f"{own.private}/{HOME}", path)
    replica = {} if policy.replica is None else {writable[0]: str(policy.replica)}
    binds = dict.fromkeys(visible, "--ro-bind") | dict.fromkeys((*writable, *layered), "--bind")
    for path in sorted(binds):
        _make_point(Path(path), policy, own)
        if path in layered:  # two sandboxes can't share a layer, so a folder replaces the cache
            command += ("--bind", str(make_cache(own.private, path)), path)
        elif path in writable or is_below(path, (*REPLACED_FOLDERS, *replaced, *replica)):
            command += (binds[path], replica.get(path, path), path)
    for path, target in policy.links:
        command += _make_link(path, target, policy, own)
    for path in emptied:
        command += ("--remount-ro", path)
    for path in list_pinned_folders(writable, (*protected, *filter(os.path.lexists, hidden))):
        command += _bind_guarded("--bind", path, policy, binds)
    for path in protected:
        command += _bind_guarded("--ro-bind", path, policy, binds)
    for path in sorted(path for path in binds if is_below(path, protected)):
        command += _bind_same(binds[path], path)
    command += [word for path in filter(os.path.lexists, hidden) for word in _hide(path, policy, binds)]
    return [*command, "--chdir", "/", "--", *program]


def _make_link(path: Path, target: str, policy: SandboxPolicy, own: OwnFolders) -> Iterable[str]:
    """Make a link in our own folder that is mounted there; elsewhere return the option that makes it."""
    point = _find_replacement(path, policy, own)
    if point is None:
        return ("--symlink", target, str(path))
    make_link(str(point), target)
    return ()


def _make_point(path: Path, policy: SandboxPolicy, own: OwnFolders) -> None:
    """Make a mount point in our own folders: bubblewrap would follow a link that a command left there."""
    point = _find_replacement(path, policy, own)
    if point is not None:
        os.close(open_point(str(point), is_folder=path.is_dir(), is_ours=True))


def _find_replacement(path: Path, policy: SandboxPolicy, own: OwnFolders) -> Path | None:
    """Return where a path lies in our own folders, which replace the home and `/tmp`."""
    points = {policy.home: own.private / HOME} if policy.home and own.private else {}
    points |= {Path(point): own.temporary for point in TEMPORARY_FOLDERS}
    for point, folder in points.items():
        if path.is_relative_to(point) and path != point:
            return folder / path.relative_to(point)
    return None


def _list_proc_options() -> Iterable[str]:
    """Yield the options that keep /proc's settings read-only, which bubblewrap leaves writable to root."""
    for path in filter(os.path.lexists, (f"/proc/{name}" for name in PROC_READ_ONLY)):
        yield from _bind_same("--ro-bind", path)
    for path in filter(os.path.lexists, (f"/proc/{name}" for name in PROC_HIDDEN)):
        yield from ("--ro-bind", "/dev/null", path)


def _list_run_options() -> Iterable[str]:
    if not Path("/run").is_dir():
        return
    yield from ("--tmpfs", "/run")
    for path in (f"/run/{name}" for name in RUN_ENTRIES):
        if Path(path).is_symlink():
            yield from ("--symlink", str(Path(path).readlink()), path)
        elif os.path.lexists(path):
            yield from _bind_same("--ro-bind", path)


def _hide(path: str, policy: SandboxPolicy, binds: dict[str, str]) -> Iterable[str]:
    """Yield the options that cover a path, but for paths mounted below it; none in a replica, which lacks the file."""
    if _find_in_replica(path, policy, binds) is not None:
        return
    # bubblewrap binds it with `nodev`, so it can't be opened: reading fails with "Permission denied".
    yield from ("--tmpfs", path) if Path(path).is_dir() else ("--ro-bind", "/dev/null", path)
    for each in sorted(each for each in binds if is_below(each, (path,))):
        yield from _bind_same(binds[each], each)
    if Path(path).is_dir():
        yield from ("--remount-ro", path)


def _bind_guarded(option: str, path: str, policy: SandboxPolicy, binds: Iterable[str]) -> tuple[str, ...]:
    """Return the options that bind a path over itself; in a replica, the replica's own file, if it has one."""
    source = _find_in_replica(path, policy, binds)
    if source is not None:
        return (option, source, path) if os.path.lexists(source) and os.path.realpath(source) == source else ()
    in_replica = policy.replica is not None and is_below(path, (str(policy.writable[0]),))
    return _bind_same("--ro-bind" if in_replica else option, path)  # what is shown in a replica is only read


def _find_in_replica(path: str, policy: SandboxPolicy, binds: Iterable[str]) -> str | None:
    """Return where a replica has the file of a path; None: there is no replica, or it shows the project's own file."""
    root = str(policy.writable[0]) if policy.replica is not None else ""
    if (
        not root
        or not is_below(path, (root,))
        or is_below(path, (each for each in binds if each.startswith(f"{root}/")))
    ):
        return None
    return f"{policy.replica}{path.removeprefix(root)}"


def _bind_same(option: str, path: str) -> tuple[str, str, str]:
    return option, path, path
