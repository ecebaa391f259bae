"""Translates a policy into options of bubblewrap,
for machines where only bubblewrap may create namespaces.

`sandboxes.py` imports it when namespaces of our own are refused (docs/decisions/0019).
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from codeloop.workspace.git.private.mounts import Mount
from codeloop.workspace.sandbox.launcher.mount_points import (
    is_below,
    list_pinned_folders,
    make_link,
    open_point,
)
from codeloop.workspace.sandbox.launcher.mounts import (
    PROC_HIDDEN,
    PROC_READ_ONLY,
    REPLACED_FOLDERS,
    RUN_ENTRIES,
    TEMPORARY_FOLDERS,
)
from codeloop.workspace.sandbox.policy import SandboxPolicy
from codeloop.workspace.sandbox.private_folders import make_cache_folder

_PROGRAM_PATHS = (
    "/usr/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
)
"""Paths that are tried. PATH is not searched: it may lead into a project,
and the program may have more rights.
"""
_ISOLATION_OPTIONS = (
    "--die-with-parent",
    "--unshare-pid",
    "--as-pid-1",
    "--unshare-ipc",
    "--unshare-uts",
)


def find_bubblewrap() -> str:
    """Return the program's path. Raises FileNotFoundError."""
    for path in _PROGRAM_PATHS:
        if os.access(path, os.X_OK):
            return path
    raise FileNotFoundError("bubblewrap is not installed")


class MountedFolders(Struct, frozen=True):
    """Folders of ours that are mounted for the command, which writes to them.

    `temporary` is mounted as `/tmp`; `private` holds the private home and caches, if any; `git`:
    what is mounted in place of git folders, with the points of the mounts made.
    """

    temporary: Path
    private: Path | None
    git: tuple[Mount, ...] = ()


def wrap_command(
    program: Sequence[str], policy: SandboxPolicy, mounted_folders: MountedFolders
) -> list[str]:
    """Return the command that runs a program under a policy.
    Raises FileNotFoundError without bubblewrap.

    `policy.replica`, if any, is mounted at the project's root;
    what is visible below the root is read-only in it.
    """
    writable, protected, hidden = (
        list(map(str, paths)) for paths in (policy.writable, policy.protected, policy.hidden)
    )
    replaced, layered = (list(map(str, paths)) for paths in (policy.replaced, policy.layered))
    visible = [str(path) for path in policy.visible]
    command = [find_bubblewrap(), *_ISOLATION_OPTIONS]
    if policy.network != "on":
        command.append("--unshare-net")
    # Options are carried out in order: a later one covers an earlier one,
    # so what is hidden comes last.
    command += [
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        *_list_proc_options(),
        *_list_run_options(),
    ]
    for point in TEMPORARY_FOLDERS:
        if os.path.realpath(point) == point and Path(point).is_dir():
            command += ["--bind", str(mounted_folders.temporary), point]
    emptied_folders = _list_emptied_folders(policy)
    command += _replace_folders(emptied_folders, policy, mounted_folders)
    replica_by_root = {} if policy.replica is None else {writable[0]: str(policy.replica)}
    binds = dict.fromkeys(visible, "--ro-bind") | dict.fromkeys((*writable, *layered), "--bind")
    for path in sorted(binds):
        _prepare_mount_point(Path(path), policy, mounted_folders)
        if path in layered:
            command += _replace_cache(path, mounted_folders.private)
        elif path in writable or is_below(path, (*REPLACED_FOLDERS, *replaced, *replica_by_root)):
            command += (binds[path], replica_by_root.get(path, path), path)
    points = (mount.point for mount in mounted_folders.git)
    guarded = (*protected, *filter(os.path.lexists, hidden), *points)
    # Before the git folders: a source is a path outside, so what is mounted below a point is lost.
    for path in list_pinned_folders(writable, guarded):
        command += _bind_guarded("--bind", path, policy, binds)
    command += [word for mount in mounted_folders.git for word in _bind_mount(mount)]
    for path, target in policy.links:
        command += _add_link(path, target, policy, mounted_folders)
    for path in emptied_folders:
        command += ("--remount-ro", path)
    for path in protected:
        command += _bind_guarded("--ro-bind", path, policy, binds)
    for path in sorted(path for path in binds if is_below(path, protected)):
        command += _bind_to_itself(binds[path], path)
    command += [
        word
        for path in filter(os.path.lexists, hidden)
        for word in _hide(path, policy, binds, mounted_folders.git)
    ]
    return [*command, "--chdir", "/", "--", *program]


def _list_emptied_folders(policy: SandboxPolicy) -> list[str]:
    """Return the outermost folders that look empty, sorted. The home is none of them."""
    folders = [
        path
        for path in sorted(map(str, policy.replaced))
        if path != str(policy.home) and Path(path).is_dir()
    ]
    return [path for path in folders if not is_below(str(Path(path).parent), folders)]


def _replace_folders(
    emptied_folders: Sequence[str], policy: SandboxPolicy, mounted_folders: MountedFolders
) -> Iterable[str]:
    """Yield the options that show empty folders, and the private home in place of the home."""
    homes = [str(policy.home)] if policy.home is not None else []
    for path in sorted((*emptied_folders, *homes)):
        if path in emptied_folders:
            yield from ("--tmpfs", path)
        else:
            yield from ("--bind", f"{mounted_folders.private}/{policy.home_name}", path)


def _replace_cache(path: str, private: Path | None) -> Iterable[str]:
    """Return the option that shows an empty folder in place of a cache: two sandboxes
    can't mount the same layer.
    """
    # The cache itself must never be writable.
    return () if private is None else ("--bind", str(make_cache_folder(private, path)), path)


def _bind_mount(mount: Mount) -> tuple[str, str, str]:
    return "--bind" if mount.is_writable else "--ro-bind", mount.source, mount.point


def _add_link(
    path: Path, target: str, policy: SandboxPolicy, mounted_folders: MountedFolders
) -> Iterable[str]:
    """Return the option that makes a link. In a folder of ours the link is made here,
    and no option is returned.
    """
    point = _find_own_path(path, policy, mounted_folders)
    if point is None:
        return ("--symlink", target, str(path))
    make_link(str(point), target)
    return ()


def _prepare_mount_point(
    path: Path, policy: SandboxPolicy, mounted_folders: MountedFolders
) -> None:
    """Make a mount point in a folder of ours, since bubblewrap would follow a link
    that a command left there.
    """
    point = _find_own_path(path, policy, mounted_folders)
    if point is not None:
        os.close(open_point(str(point), is_folder=path.is_dir(), is_ours=True))


def _find_own_path(
    path: Path, policy: SandboxPolicy, mounted_folders: MountedFolders
) -> Path | None:
    """Return the path in a folder of ours that a path of the home or `/tmp` leads to in
    the sandbox; None elsewhere.
    """
    folder_by_point = {Path(point): mounted_folders.temporary for point in TEMPORARY_FOLDERS}
    if policy.home is not None and mounted_folders.private is not None:
        folder_by_point = {
            policy.home: mounted_folders.private / policy.home_name,
            **folder_by_point,
        }
    for point, folder in folder_by_point.items():
        if path.is_relative_to(point) and path != point:
            return folder / path.relative_to(point)
    return None


def _list_proc_options() -> Iterable[str]:
    """Yield the options that make settings in /proc read-only,
    which bubblewrap leaves writable to root.
    """
    for path in filter(os.path.lexists, (f"/proc/{name}" for name in PROC_READ_ONLY)):
        yield from _bind_to_itself("--ro-bind", path)
    for path in filter(os.path.lexists, (f"/proc/{name}" for name in PROC_HIDDEN)):
        yield from ("--ro-bind", "/dev/null", path)


def _list_run_options() -> Iterable[str]:
    """Yield the options that replace /run by a folder with only RUN_ENTRIES."""
    if not Path("/run").is_dir():
        return
    yield from ("--tmpfs", "/run")
    for path in (f"/run/{name}" for name in RUN_ENTRIES):
        if Path(path).is_symlink():
            yield from ("--symlink", str(Path(path).readlink()), path)
        elif os.path.lexists(path):
            yield from _bind_to_itself("--ro-bind", path)


def _hide(
    path: str, policy: SandboxPolicy, binds: dict[str, str], mounts: Iterable[Mount]
) -> Iterable[str]:
    """Yield the options that cover a path, except for the paths mounted below it."""
    # A replica lacks the hidden files of the project.
    if _find_in_replica(path, policy, binds) is not None:
        return
    # Bubblewrap binds with `nodev`, so the device can't be opened: reading fails
    # with "Permission denied".
    yield from ("--tmpfs", path) if Path(path).is_dir() else ("--ro-bind", "/dev/null", path)
    for each in sorted(each for each in binds if is_below(each, (path,))):
        yield from _bind_to_itself(binds[each], each)
    for mount in mounts:
        if is_below(mount.point, (path,)):
            yield from _bind_mount(mount)
    if Path(path).is_dir():
        yield from ("--remount-ro", path)


def _bind_guarded(
    option: str, path: str, policy: SandboxPolicy, binds: Iterable[str]
) -> tuple[str, ...]:
    """Return the options that bind a path to itself;
    in a replica, the replica's own file, if it has one.
    """
    source = _find_in_replica(path, policy, binds)
    if source is not None:
        return (
            (option, source, path)
            if os.path.lexists(source) and os.path.realpath(source) == source
            else ()
        )
    # What is shown in a replica is only read.
    is_in_replica = policy.replica is not None and is_below(path, (str(policy.writable[0]),))
    return _bind_to_itself("--ro-bind" if is_in_replica else option, path)


def _find_in_replica(path: str, policy: SandboxPolicy, binds: Iterable[str]) -> str | None:
    """Return the replica's path for a path; None if there is no replica,
    or it shows the project's own file.
    """
    if policy.replica is None:
        return None
    root = str(policy.writable[0])
    if not is_below(path, (root,)) or is_below(
        path, (each for each in binds if each.startswith(f"{root}/"))
    ):
        return None
    return f"{policy.replica}{path.removeprefix(root)}"


def _bind_to_itself(option: str, path: str) -> tuple[str, str, str]:
    return option, path, path
