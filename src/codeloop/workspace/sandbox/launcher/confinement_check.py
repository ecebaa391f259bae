"""Checks a new sandbox before its first command: attempts what it must refuse, as a command would.

The launcher calls it after `confine`. A sandbox that fails is not used, since a kernel, container
or file system may accept a rule and not enforce it.
"""

import errno
import os
from _socket import AF_INET, SOCK_STREAM, socket

from codeloop.workspace.sandbox.launcher.mounts import TEMPORARY_FOLDERS
from codeloop.workspace.sandbox.launcher.plan import Plan
from codeloop.workspace.sandbox.launcher.suppress import Step, Suppress

_SHELL = "/bin/sh"
_PROBE_NAME = ".codeloop-probe"
_REFUSAL_ERRORS = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
# A folder was opened for writing, or a socket was opened: that is refused without a sandbox, too.
_INCONCLUSIVE_ERRORS = (errno.EISDIR, errno.EOPNOTSUPP)
# RFC 863's discard service, which hardly any machine has: only the kind of the error matters.
_DISCARD_PORT = 9


def check_confinement(plan: Plan) -> None:
    """Attempt what the plan does not allow, and what each command needs.
    Raises OSError for the first surprise.
    """
    # These are only the namespaces that sandboxes share.
    if plan.kind == "base":
        return
    if plan.kind == "network":
        _check_localhost()
        return
    for path in _list_forbidden_files(plan):
        if _can_open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY):
            os.unlink(path)
            raise PermissionError(errno.EPERM, "it lets files be made outside", path)
    if plan.kind == "sandbox-exec":
        _check_seatbelt(plan)
        return
    # Landlock can make no exception below a writable folder.
    # `Sandbox.weakness` reports that to the caller.
    unguarded = plan.writable if plan.kind == "landlock" else ()
    for path in plan.hidden:
        if any(path.startswith(f"{folder}/") for folder in unguarded):
            continue
        if os.path.isfile(path) and os.stat(path).st_size and _can_open(path, os.O_RDONLY):
            raise PermissionError(errno.EPERM, "it lets hidden files be read", path)
    for path in plan.protected if plan.kind != "landlock" else ():
        if os.path.isfile(path) and _can_open(path, os.O_WRONLY):
            raise PermissionError(errno.EPERM, "it lets protected files be written", path)
    if plan.kind == "landlock":
        _check_processes()
    _check_temporary_folder(plan.temporary if plan.kind == "landlock" else TEMPORARY_FOLDERS[0])
    # In a process namespace of its own, the first process has the id 1.
    if plan.kind != "landlock" and os.getpid() != 1:
        raise PermissionError(errno.EPERM, "it has no processes of its own")
    if plan.kind == "bubblewrap" and not plan.network:
        _check_localhost()
    _check_start()


def _check_seatbelt(plan: Plan) -> None:
    """Attempt what a profile of macOS refuses by path: it mounts nothing,
    and has no network of its own.
    """
    probe = f"{plan.temporary}/{_PROBE_NAME}"
    for path in plan.hidden:
        # A rule for a path would not apply to a hard link, another name of the same file.
        with Suppress(OSError):
            os.link(path, probe)
        for name in (path, probe):
            if _can_open(name, os.O_RDONLY):
                raise PermissionError(errno.EPERM, "it lets what is hidden be read", path)
        _remove(probe)
    for path in plan.protected:
        if _can_open(path, os.O_WRONLY):
            raise PermissionError(errno.EPERM, "it lets protected files be written", path)
    _check_temporary_folder(plan.temporary)
    if (
        not plan.network
        and socket(AF_INET, SOCK_STREAM).connect_ex(("127.0.0.1", _DISCARD_PORT))
        not in _REFUSAL_ERRORS
    ):
        raise PermissionError(errno.EPERM, "it lets ports of this machine be reached")


def _check_localhost() -> None:
    """Check that a server in this network can be reached, as the proxy must be. Raises OSError."""
    server, client = (socket(AF_INET, SOCK_STREAM) for _ in range(2))
    with Step("its localhost can't be used"):
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        client.connect(server.getsockname())
    client.close()
    server.close()


def _check_start() -> None:
    """Check that a program can be started as commands are: a security module may refuse it here.
    Raises OSError.
    """
    if not os.access(_SHELL, os.X_OK):
        return
    with Step("no program can be started in it"):
        pid = os.posix_spawn(_SHELL, (_SHELL, "-c", ":"), {}, setsid=True, setsigmask=())
        if os.waitpid(pid, 0)[1]:
            raise PermissionError(errno.EPERM, "it failed", _SHELL)


def _check_processes() -> None:
    """Check that processes can be found, so that they can be ended. Raises FileNotFoundError."""
    try:
        shown_id = os.readlink("/proc/self")
    except OSError:
        shown_id = ""
    if shown_id != str(os.getpid()):
        raise FileNotFoundError(
            errno.ENOENT, "what a command starts can't be found and ended", "/proc"
        )


def _check_temporary_folder(folder: str) -> None:
    """Check that a file can be made in the temporary folder. Raises PermissionError."""
    probe = f"{folder}/{_PROBE_NAME}"
    if not _can_open(probe, os.O_CREAT | os.O_WRONLY):
        raise PermissionError(errno.EPERM, "nothing can be written in its temporary folder", probe)
    # Another sandbox with the same folder may be checked at the same time and remove it first.
    _remove(probe)


def _list_forbidden_files(plan: Plan) -> list[str]:
    """Return a path for a new file in each folder that must be read-only: the
    visible folders and `/`.
    """
    folders = [path for path in (*plan.visible, "/") if os.path.isdir(path)]
    writable = (*plan.writable, plan.temporary)
    read_only = [
        folder
        for folder in folders
        if folder not in TEMPORARY_FOLDERS
        and not any(folder == each or folder.startswith(f"{each}/") for each in writable)
    ]
    read_only += [
        point for _, point, is_writable in plan.binds if not is_writable and os.path.isdir(point)
    ]
    return [os.path.join(folder, f"{_PROBE_NAME}-{os.getpid()}") for folder in read_only]


def _remove(path: str) -> None:
    with Suppress(FileNotFoundError):
        os.unlink(path)


def _can_open(path: str, flags: int) -> bool:
    """Return whether a file can be opened with the given flags.
    Raises OSError for an error that is not a refusal.
    """
    try:
        os.close(os.open(path, flags | os.O_CLOEXEC, 0o600))
    except OSError as error:
        if error.errno in (*_REFUSAL_ERRORS, *_INCONCLUSIVE_ERRORS):
            return False
        raise
    return True
