"""Self-test of a sandbox before use: what it must refuse is attempted, as a command would."""

import errno
import os
from _socket import AF_INET, SOCK_STREAM, socket

from codeloop.workspace.sandbox.launcher.plan import Plan
from codeloop.workspace.sandbox.launcher.suppress import Suppress

_NAME = ".codeloop-probe"
_TEMPORARY = tuple(f"/{name}" for name in ("tmp", "var/tmp"))
_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_NOT_A_FILE = (errno.EISDIR, errno.EOPNOTSUPP)  # a folder opened for writing, a socket: no proof either way


def prove(plan: Plan) -> None:
    """Attempt what the plan does not allow. Raises PermissionError naming the first thing that succeeds."""
    if plan.kind in {"base", "network"}:
        return
    for path in _find_writable(plan):
        if _is_done(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY):
            os.unlink(path)
            raise PermissionError(errno.EPERM, "it lets files be made outside", path)
    if plan.kind == "sandbox-exec":
        _prove_by_name(plan)
        return
    # Landlock knows no exceptions below a folder that may be written; who made the plan knows that.
    may_be_seen = plan.writable if plan.kind == "landlock" else ()
    for path in plan.hidden:
        if any(path.startswith(f"{each}/") for each in may_be_seen):
            continue
        if os.path.isfile(path) and os.stat(path).st_size and _is_done(path, os.O_RDONLY):
            raise PermissionError(errno.EPERM, "it lets hidden files be read", path)
    for path in plan.protected if plan.kind != "landlock" else ():
        if os.path.isfile(path) and _is_done(path, os.O_WRONLY):
            raise PermissionError(errno.EPERM, "it lets protected files be written", path)
    temporary = plan.temporary if plan.kind == "landlock" else _TEMPORARY[0]
    ours = f"{temporary}/{_NAME}"
    if not _is_done(ours, os.O_CREAT | os.O_WRONLY):
        raise PermissionError(errno.EPERM, "nothing can be written in its temporary folder", ours)
    _remove(ours)  # another sandbox with the same folder may prove itself now, too
    if plan.kind != "landlock" and os.getpid() != 1:
        raise PermissionError(errno.EPERM, "it has no processes of its own")


def _prove_by_name(plan: Plan) -> None:
    """Attempt what a macOS profile refuses by path: it mounts nothing, and has no network of its own."""
    ours = f"{plan.temporary}/{_NAME}"
    for path in plan.hidden:
        with Suppress(OSError):
            os.link(path, ours)  # rules by path could be passed by another name of the same file
        for name in (path, ours):
            if _is_done(name, os.O_RDONLY):
                raise PermissionError(errno.EPERM, "it lets what is hidden be read", path)
        _remove(ours)
    for path in plan.protected:
        if _is_done(path, os.O_WRONLY):
            raise PermissionError(errno.EPERM, "it lets protected files be written", path)
    if not _is_done(ours, os.O_CREAT | os.O_WRONLY):
        raise PermissionError(errno.EPERM, "nothing can be written in its temporary folder", ours)
    _remove(ours)  # another sandbox with the same folder may prove itself now, too
    if not plan.network and socket(AF_INET, SOCK_STREAM).connect_ex(("127.0.0.1", 9)) not in _REFUSED:
        raise PermissionError(errno.EPERM, "it lets ports of this machine be reached")


def _find_writable(plan: Plan) -> list[str]:
    """Return paths for new files outside the sandbox: in the folders that are read-only in it, and in `/`."""
    folders = [path for path in (*plan.visible, "/") if os.path.isdir(path)]
    own = (*plan.writable, plan.temporary)
    return [
        os.path.join(folder, f"{_NAME}-{os.getpid()}")
        for folder in folders
        if folder not in _TEMPORARY and not any(folder == each or folder.startswith(f"{each}/") for each in own)
    ]


def _remove(path: str) -> None:
    with Suppress(FileNotFoundError):
        os.unlink(path)


def _is_done(path: str, flags: int) -> bool:
    """Return whether a file can be opened with these flags. Raises OSError for an error that is not a refusal."""
    try:
        os.close(os.open(path, flags | os.O_CLOEXEC, 0o600))
    except OSError as error:
        if error.errno in (*_REFUSED, *_NOT_A_FILE):
            return False
        raise
    return True
