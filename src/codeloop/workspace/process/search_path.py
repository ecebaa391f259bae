"""Looks up programs on the PATH, and finds reasons why a program may not be the expected one.

The permission gate trusts a command line like `git status` only if nobody else could have put
another `git` there: no folder of the PATH lies in the project, and no other user can write to one.
"""

import os
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

# Variables that make the dynamic linker load code.
_LOADER_VARIABLES = ("LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_")
_PYTHON_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE")
_STEERING_VARIABLES = {
    "file": ("MAGIC",),
    "git": ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_EXEC_PATH", "XDG_CONFIG_HOME"),
    "pip": _PYTHON_VARIABLES,
    "pip3": _PYTHON_VARIABLES,
    "rg": ("RIPGREP_CONFIG_PATH",),
}
"""Program -> variables that name its configuration or code."""

# Linux follows this many links in one path.
_MAX_LINKS = 40
_ACL_ATTRIBUTE = "system.posix_acl_access"
_ACL_USER, _ACL_GROUP_OWNER, _ACL_GROUP, _ACL_MASK = 0x02, 0x04, 0x08, 0x10
_ACL_WRITE, _ACL_ALL_RIGHTS = 2, 7


class ProgramLookup(Struct, frozen=True):
    """The path of a program. `doubt`: why it may not be the expected one,
    or that it is not installed; "": it is.

    `is_shadowable`: a folder of the project comes before it on the PATH,
    where a program of that name could appear.
    """

    path: str = ""
    doubt: str = ""
    is_shadowable: bool = False


class _AclEntry(NamedTuple):
    """An entry of an access list (ACL). `tag`: whom it is for;
    `number`: the id of that user or group, if any.
    """

    tag: int
    rights: int
    number: int


class SearchPath:
    """The folders of a PATH, each checked once. `roots`: the resolved folders
    that an agent may write to.
    """

    def __init__(self, environment: Mapping[str, str], roots: Sequence[str]) -> None:
        self._environment = environment
        self._folders = environment.get("PATH", "").split(os.pathsep)
        self._roots = roots
        self._doubts: dict[str, str] = {}

    def find(self, name: str) -> ProgramLookup:
        """Find a program as a shell does, by a name or a path.

        A folder of the PATH that others can write to makes every program after it uncertain. A
        folder of the project, such as an active environment,
        makes only the programs in it uncertain.
        """
        folder_part, _, name = name.rpartition("/")
        for variable in _STEERING_VARIABLES.get(name, ()):
            if _leads_inside(self._environment.get(variable, ""), self._roots):
                return ProgramLookup(doubt=f"{variable} has `{name}` load what lies in the project")
        is_shadowable = False
        for folder in [folder_part] if folder_part else self._folders:
            path = f"{folder}/{name}"
            if _is_inside(folder, self._roots) or _is_inside(os.path.realpath(folder), self._roots):
                if os.path.lexists(path):
                    return ProgramLookup(doubt=f"`{name}` on the PATH leads into the project")
                is_shadowable = True
                continue
            if folder not in self._doubts:
                self._doubts[folder] = _find_doubt(folder)
            if doubt := self._doubts[folder]:
                return ProgramLookup(doubt=f"{doubt}, where another `{name}` could be")
            if os.access(path, os.X_OK) and not Path(path).is_dir():
                if _is_inside(os.path.realpath(path), self._roots):
                    return ProgramLookup(doubt=f"`{name}` on the PATH leads into the project")
                return ProgramLookup(path, is_shadowable=is_shadowable)
        return ProgramLookup(doubt=f"`{name}` is not installed")


def find_loading_variable(environment: Mapping[str, str], roots: Sequence[str]) -> str:
    """Return a variable that makes programs load code from the project or the current directory;
    "" for none.
    """
    for name, value in environment.items():
        if name.startswith(_LOADER_VARIABLES) and _leads_inside(value, roots):
            return name
    return ""


def _leads_inside(value: str, roots: Sequence[str]) -> bool:
    """Return whether a variable's paths lead into the project or the current directory."""
    # LD_PRELOAD may separate its paths by blanks.
    paths = value.replace(" ", ":").split(":") if value else []
    return any(
        not path.startswith("/") or _is_inside(os.path.realpath(path), roots) for path in paths
    )


def _find_doubt(folder: str) -> str:
    """Return why a folder of the PATH can't be trusted; "": it can."""
    if not folder.startswith("/"):
        return "the PATH has a relative folder"
    writer = find_foreign_writer(folder)
    return f"{writer} can write to {folder} on the PATH" if writer else ""


def _is_inside(path: str, roots: Sequence[str]) -> bool:
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)


def find_foreign_writer(folder: str) -> str:
    """Return who else could write to an absolute folder or replace it ("anybody", "the user x");
    "" for nobody.

    "Else" means: besides this user and root.
    """
    # Each folder and link on the way counts: who can write to a folder can replace its entries. In
    # a folder with the sticky bit (`/tmp`) only the owners of the entry and the folder can, but
    # anybody can add a missing entry.
    for parent, name in _list_lookup_steps(folder):
        try:
            # Without links: every part of the path was looked up.
            folder_status = os.lstat(parent)
        except OSError:
            # It can't be read, so no program is found below it.
            return ""
        try:
            entry = os.lstat(_join(parent, name)) if name else None
        except OSError:
            entry = None
        if entry is not None and folder_status.st_mode & stat.S_ISVTX:
            writer = _name_foreign_user(folder_status.st_uid) or _name_foreign_user(entry.st_uid)
        else:
            writer = _find_writer(parent, folder_status)
        if writer:
            return writer
        if name and entry is None:
            return ""
    return ""


def _list_lookup_steps(path: str) -> Iterator[tuple[str, str]]:
    """Yield the steps of the kernel's lookup of a path: a folder and the name that is
    looked up in it, at last "".
    """
    # Strings, not `Path`: each decision about a command takes dozens of these steps.
    folder, links = "/", 0
    # The names that are still to be looked up, the next one last.
    names = _split_names(path)[::-1]
    while names:
        name = names.pop()
        if name == "..":
            folder = folder.rpartition("/")[0] or "/"
            continue
        yield folder, name
        entry = _join(folder, name)
        try:
            target = os.readlink(entry)
        except OSError:
            folder = entry
            continue
        links += 1
        if links > _MAX_LINKS:
            return
        folder = "/" if target.startswith("/") else folder
        names += _split_names(target)[::-1]
    yield folder, ""


def _join(folder: str, name: str) -> str:
    return f"{folder}{name}" if folder == "/" else f"{folder}/{name}"


def _split_names(path: str) -> list[str]:
    return [name for name in path.split("/") if name and name != "."]


def _find_writer(folder: str, folder_status: os.stat_result) -> str:
    """Return who else may write to a folder; "" for nobody."""
    # The owner may, whatever the mode, because they can change it.
    if writer := _name_foreign_user(folder_status.st_uid):
        return writer
    if folder_status.st_mode & stat.S_IWOTH:
        return "anybody"
    groups = [folder_status.st_gid] if folder_status.st_mode & stat.S_IWGRP else []
    # With an access list, the mode shows the list's mask in place of the group's rights.
    if groups and (entries := _read_acl(folder)):
        mask = next((entry.rights for entry in entries if entry.tag == _ACL_MASK), _ACL_ALL_RIGHTS)
        writers = [entry for entry in entries if entry.rights & mask & _ACL_WRITE]
        groups = (
            [folder_status.st_gid]
            if any(entry.tag == _ACL_GROUP_OWNER for entry in writers)
            else []
        )
        groups += [entry.number for entry in writers if entry.tag == _ACL_GROUP]
        for writer in (
            _name_foreign_user(entry.number) for entry in writers if entry.tag == _ACL_USER
        ):
            if writer:
                return writer
    return next((writer for group in groups if (writer := _name_foreign_group(group))), "")


def _read_acl(folder: str) -> list[_AclEntry]:
    """Return the access list of a folder; empty if it has none."""
    try:
        data = os.getxattr(folder, _ACL_ATTRIBUTE)
    except (OSError, AttributeError):
        # None is set, or this system has no such lists.
        return []
    # A version in four bytes, then the entries of eight bytes each.
    return (
        [_AclEntry(*fields) for fields in struct.iter_unpack("<HHI", data[4:])]
        if len(data) % 8 == 4
        else []
    )


@cache
def _name_foreign_user(number: int) -> str:
    """Return a description of a user; "" for this user, root,
    and what a user namespace shows for users outside.
    """
    if number in {0, os.geteuid()} or (number == _read_unmapped_user() and _is_in_user_namespace()):
        return ""
    import pwd

    with suppress(KeyError):
        return f"the user {pwd.getpwuid(number).pw_name}"
    return f"the user {number}"


@cache
def _name_foreign_group(number: int) -> str:
    """Return a description of a group that has another user in it; "" for other groups."""
    import grp
    import pwd

    try:
        group = grp.getgrgid(number)
    except KeyError:
        return ""
    members = {
        user.pw_uid
        for user in pwd.getpwall()
        if user.pw_gid == number or user.pw_name in group.gr_mem
    }
    return f"the group {group.gr_name}" if any(map(_name_foreign_user, members)) else ""


@cache
def _read_unmapped_user() -> int:
    """Return the user id that a namespace shows for all users outside of it;
    -1 if it is unknown.
    """
    with suppress(OSError, ValueError):
        return int(Path("/proc/sys/kernel/overflowuid").read_text())
    return -1


@cache
def _is_in_user_namespace() -> bool:
    """Return whether this process is in a user namespace, where unmapped users can't act."""
    with suppress(OSError):
        return Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]
    return False
