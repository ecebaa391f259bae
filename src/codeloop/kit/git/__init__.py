"""Builds every git command of codeloop, finds the git directories that belong to a work tree,
and computes blob ids.
"""

import os
import re
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from codeloop.kit.programs import find_program, make_safe_environment
from codeloop.kit.small_files import read_start

_MISSING_GIT = "/nonexistent/git"
"""The program named in the error when git is not installed."""

# A repository's own configuration can name programs; none of them may run.
_SAFE_OPTIONS = (
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.attributesFile=/dev/null"),
    *("-c", "core.excludesFile=/dev/null"),
    *("-c", "core.alternateRefsCommand=false"),
    *("-c", "commit.gpgSign=false"),
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "gc.auto=0"),
    # In a submodule, git would read the settings there.
    *("-c", "submodule.recurse=false"),
    *("-c", "fetch.recurseSubmodules=false"),
    *("-c", "rebase.updateRefs=false"),
    "--no-pager",
    "--no-replace-objects",
    "--literal-pathspecs",
)
_OFFLINE_OPTIONS = ("-c", "core.sshCommand=false", "-c", "protocol.allow=never")
# The transport `ext` runs the program that an address names.
_ONLINE_OPTIONS = ("-c", "protocol.ext.allow=never")
_SAFE_ENVIRONMENT = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CEILING_DIRECTORIES": "/",
    "LC_ALL": "C",
}
_OFFLINE_ENVIRONMENT = {
    "GIT_ASKPASS": "",
    "GIT_NO_LAZY_FETCH": "1",
    # Stronger than the repository's own settings: before 2.45 git fetches missing
    # objects of a partial clone.
    "GIT_ALLOW_PROTOCOL": "",
}
# Variables by which the user tells git how to reach a server, and what a caller of ours gives.
_ONLINE_VARIABLES = (
    r"GIT_(ASKPASS|SSH|SSH_COMMAND|SSH_VARIANT|SSL_\w+|HTTP_\w+|PROXY_\w+|CURL_\w+|LFS_SKIP_SMUDGE)"
    r"|GIT_CONFIG_(COUNT|KEY_\d+|VALUE_\d+)|GIT_(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)"
)
_USER_SETTINGS_VARIABLES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
_IGNORE_USER_SETTINGS = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}


class GitCall(Struct, frozen=True):
    """A command that runs git, and the environment to run it in."""

    command: list[str]
    environment: dict[str, str]


def make_git_call(
    folder: Path | None,
    *arguments: str,
    environment: Mapping[str, str],
    uses_user_settings: bool = False,
    is_online: bool = False,
    program: str = "",
) -> GitCall:
    """Return a call of git on a git directory. By itself it runs no other program,
    fetches nothing and writes nothing.

    `folder`: one that codeloop made, never the user's (`own_folder.py`); None: the command makes
    one, or needs none. No variable of `environment` leads git elsewhere. `uses_user_settings`: the
    user's own configuration is read as well.
    `is_online`: git may talk to other repositories. `program`: the path of git;
    if left out, the git on the PATH.
    """
    program = program or find_git(environment) or _MISSING_GIT
    safe_environment = make_safe_environment(environment)
    variables = {
        name: value for name, value in safe_environment.items() if not name.startswith("GIT_")
    }
    variables |= _SAFE_ENVIRONMENT
    if is_online:
        variables |= {
            name: value
            for name, value in environment.items()
            if re.fullmatch(_ONLINE_VARIABLES, name)
        }
    else:
        variables |= _OFFLINE_ENVIRONMENT
    if uses_user_settings:
        variables |= {
            name: environment[name] for name in _USER_SETTINGS_VARIABLES if name in environment
        }
    else:
        variables |= _IGNORE_USER_SETTINGS
    options = (*_SAFE_OPTIONS, *(_ONLINE_OPTIONS if is_online else _OFFLINE_OPTIONS))
    folder_options = () if folder is None else (f"--git-dir={folder}",)
    return GitCall([program, *options, *folder_options, *arguments], variables)


def find_git(environment: Mapping[str, str]) -> str | None:
    """Return the path of git on the PATH of an environment; None: it is not installed."""
    return find_program("git", environment.get("PATH"))


def make_git_settings(
    settings: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables that add settings (name -> value) to those that `environment`
    already has for git.
    """
    count = environment.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isascii() and count.isdecimal() else 0
    variables = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (name, value) in enumerate(settings.items(), first):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


_MAX_POINTER_BYTES = 4096
# The size of an index of ten million files.
_MAX_FILE_BYTES = 1024**3
_FILES_READ_BY_EVERY_CALL = (
    *(
        "HEAD",
        "config",
        "config.worktree",
        "commondir",
        "gitdir",
        "packed-refs",
        "shallow",
        "index",
    ),
    *("info/attributes", "info/exclude", "info/grafts", "objects/info/alternates"),
)
# What a call of ours follows if it is a link, with the folders in it.
_FOLLOWED_ENTRIES = (
    *("HEAD", "index", "packed-refs", "shallow", "FETCH_HEAD"),
    *("objects", "refs", "logs", "worktrees", "reftable"),
)
_SETTLED_NS = 2_000_000_000
"""The coarsest step of a file system's times."""


def find_git_folder(top: Path) -> Path | None:
    """Return the git directory of a work tree by its top folder;
    None: there is none, or it may be another's.

    A link or a pointer has to lead to a directory that names this work tree in turn, and the owner
    has to be the user, as git demands (see `explain_refused_folder`).
    """
    try:
        folder = _follow_entry(top / ".git", top)
        return folder if folder is not None and not _explain_refusal(folder, top) else None
    except (OSError, ValueError):  # ValueError: the file names no path
        return None


def explain_refused_folder(top: Path) -> str:
    """Return why the git directory of a folder is not used, and what to do;
    "": it is, or there is none.
    """
    try:
        folder = _follow_entry(top / ".git", top)
        return "" if folder is None else _explain_refusal(folder, top)
    except (OSError, ValueError):
        return ""


def _follow_entry(entry: Path, top: Path) -> Path | None:
    """Return the git directory that a `.git` is or leads to, then without links in its path;
    None: there is none.

    Raises OSError, ValueError.
    """
    if stat.S_ISDIR(entry.lstat().st_mode):
        folder = entry
    else:
        # In a linked work tree, `.git` is a file: `gitdir: /path/of/the/git/directory`.
        target = entry if entry.is_dir() else _follow_pointer(entry, b"gitdir:", top)
        folder = None if target is None else Path(os.path.realpath(target))
    return folder if folder is not None and (folder / "HEAD").is_file() else None


def _explain_refusal(folder: Path, top: Path) -> str:
    """Return why a git directory is not used for a work tree; "": it is. Raises OSError."""
    foreign = next(
        (path for path in (top, top / ".git", folder) if not _belongs_to_user(path)), None
    )
    if foreign is not None and not is_listed_as_safe(top, os.environ, counts_star=True):
        return (
            f"{foreign} belongs to another user, so the repository of {top} is not used, nor what it configures. "
            f"If you trust it: {_format_trust_command(top)}"
        )
    if folder == top / ".git" or _leads_back(folder, top) or is_listed_as_safe(top, os.environ):
        return ""
    return (
        f"{top / '.git'} leads to {folder}, which does not name {top} as its work tree, so {top} counts as a folder "
        f"without a repository. If both are yours: {_format_trust_command(top)}"
    )


def _format_trust_command(top: Path) -> str:
    # Imported late: it is for repositories that git refuses.
    import shlex

    return f"git config --global --add safe.directory {shlex.quote(str(top))}"


def _belongs_to_user(path: Path) -> bool:
    """Return whether a file belongs to the user, or to the one who called `sudo`.
    Raises OSError.
    """
    owner = path.lstat().st_uid
    return owner == os.geteuid() or (os.geteuid() == 0 and os.environ.get("SUDO_UID") == str(owner))


def _leads_back(folder: Path, top: Path) -> bool:
    """Return whether a git directory names the work tree whose `.git` leads to it,
    or is among its files.
    """
    real_top = Path(os.path.realpath(top))
    if folder.is_relative_to(real_top):
        return True
    back = _follow_pointer(folder / "gitdir", b"", folder)
    if back is not None:
        # The name itself may be a link: to the `.git` of another work tree.
        return Path(os.path.realpath(back.parent)) / back.name == real_top / ".git"
    # Imported late: most projects have a plain folder `.git`,
    # and its patterns take long to compile.
    from codeloop.kit.git.settings import read_file_settings

    trees = [
        setting.value
        for setting in read_file_settings(folder / "config")
        if setting.name == "core.worktree"
    ]
    return bool(trees) and Path(os.path.realpath(folder / trees[-1])) == real_top


def is_listed_as_safe(
    top: Path, environment: Mapping[str, str], *, counts_star: bool = False
) -> bool:
    """Return whether the user's own git settings name a work tree in `safe.directory`.

    `counts_star`: `*`, which stands for all folders, counts too.
    """
    from codeloop.kit.git.user_settings import read_user_settings

    is_safe = False
    for setting in read_user_settings(environment).settings:
        if setting.name == "safe.directory":
            is_safe = _names_folder(setting.value, top, environment, counts_star=counts_star) or (
                # As in git, an empty value forgets those before it.
                is_safe and bool(setting.value)
            )
    return is_safe


def _names_folder(
    value: str, top: Path, environment: Mapping[str, str], *, counts_star: bool
) -> bool:
    if value == "*":
        return counts_star
    path = f"{environment.get('HOME', '')}{value[1:]}" if value.startswith("~/") else value
    real_top = Path(os.path.realpath(top))
    if not path.startswith("/"):
        return False
    if path.endswith("/*"):
        return Path(os.path.realpath(path.removesuffix("/*"))) in real_top.parents
    return Path(os.path.realpath(path)) == real_top


def find_blocking_file(folder: Path) -> Path | None:
    """Return a file of a git directory on which git would block: a pipe, a device,
    or a far too large file.

    None: git can read the directory. Checks the files that every call of git reads,
    not each reference and object.
    """
    names = list(_FILES_READ_BY_EVERY_CALL)
    with suppress(OSError):
        head = read_start(folder / "HEAD", _MAX_POINTER_BYTES)
        if head.startswith(b"ref: refs/") and b"\0" not in head:
            names.append(os.fsdecode(head.removeprefix(b"ref:").strip()))
    return next(
        (path for path in (folder / name for name in names) if not _is_harmless(path)), None
    )


def _is_harmless(path: Path) -> bool:
    """Return whether git would not block on a path: it is absent, a folder,
    or a regular file that is not too large.
    """
    try:
        status = path.stat()
    except OSError:
        # Git fails on it at once, without waiting.
        return True
    return stat.S_ISDIR(status.st_mode) or (
        stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_FILE_BYTES
    )


def find_common_folder(folder: Path) -> Path:
    """Return the git directory with the objects: for a linked work tree, that of the main one.

    Any other `commondir` counts for nothing: git makes none, so a program of somebody else has.
    """
    common = _follow_pointer(folder / "commondir", b"", folder)
    if common is None or os.path.realpath(common / "worktrees") != os.path.realpath(folder.parent):
        return folder
    return Path(os.path.realpath(common))


def is_led_elsewhere(folder: Path) -> bool:
    """Return whether git itself takes objects and settings from elsewhere for a git directory,
    by a `commondir`.
    """
    return os.path.lexists(folder / "commondir") and find_common_folder(folder) == folder


def find_outside_link(folder: Path) -> Path | None:
    """Return a link in a git directory that makes git read or write elsewhere;
    None: there is none.
    """
    top = os.path.realpath(folder)
    objects = str(folder / "objects")
    waiting = [str(folder / name) for name in _FOLLOWED_ENTRIES]
    for path in waiting:
        try:
            status = os.lstat(path)
        except OSError:
            continue
        if stat.S_ISLNK(status.st_mode):
            if not Path(os.path.realpath(path)).is_relative_to(top):
                return Path(path)
        elif stat.S_ISDIR(status.st_mode):
            # Whoever plants a link changes the folder that it is in, and with that the time of its
            # change, which no program can set. So what was read of a folder holds as long as that
            # time is the same, unless it is so new that a further change could bear it as well.
            is_settled = time.time_ns() - status.st_ctime_ns > _SETTLED_NS
            read = _read_entries if is_settled else _read_entries.__wrapped__
            links, folders = read(path, status.st_ctime_ns, status.st_ino)
            waiting += links
            # Of objects, which may be many, only the folders themselves are looked at.
            if path != objects:
                waiting += folders
    return None


@lru_cache(maxsize=1 << 16)
def _read_entries(path: str, changed_at: int, inode: int) -> tuple[list[str], list[str]]:
    """Return the links in a folder, and the folders in it; none if it can't be read."""
    del changed_at, inode
    links, folders = list[str](), list[str]()
    with suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            if entry.is_symlink():
                links.append(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
    return links, folders


def _follow_pointer(file: Path, prefix: bytes, base: Path) -> Path | None:
    """Return the path that a file of git's holds after `prefix`, relative to `base`;
    None when it holds none.
    """
    try:
        content = read_start(file, _MAX_POINTER_BYTES)
    except OSError:
        return None
    if not content.startswith(prefix) or not content or b"\0" in content:
        return None
    return base / os.fsdecode(content.removeprefix(prefix).strip())


def compute_blob_id(data: bytes) -> bytes:
    """Return the id of a blob with these bytes in a repository with SHA-1: 20 bytes."""
    # Imported late: most commands compute no id, and its library is large.
    from hashlib import sha1

    # Git hashes a header with the kind and the size before the content.
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).digest()
