"""Who besides this user and root could write to a folder, as the kernel decides it."""

import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

_MOST_LINKS = 40
"""The most links that the kernel follows in one path."""
_ACL = "system.posix_acl_access"
_ACL_USER, _ACL_GROUP_OWNER, _ACL_GROUP, _ACL_MASK = 0x02, 0x04, 0x08, 0x10
_WRITE = 2


def find_foreign_writer(folder: str) -> str:
    """Return who else could write to an absolute folder or replace it ("anybody", "the user x"); "" for nobody.

    Each folder on the way counts, and each link: who may write to a folder can replace what is in it. In one with the
    sticky bit (`/tmp`) only the owner of an entry can, and the owner of the folder; anybody may add what is missing.
    """
    for parent, name in _list_lookups(folder):
        try:
            folder_status = parent.stat()
        except OSError:  # it can't be read, so nothing is found below it
            return ""
        try:
            entry = (parent / name).lstat() if name else None
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


def _list_lookups(path: str) -> Iterator[tuple[Path, str]]:
    """Yield the steps of a lookup: a folder and the name that is looked up in it, "" in the last one."""
    at, rest, links = Path("/"), [part for part in path.split("/") if part and part != "."][::-1], 0
    while rest:
        name = rest.pop()
        if name == "..":
            at = at.parent
            continue
        yield at, name
        try:
            target = str((at / name).readlink())
        except OSError:
            at /= name
            continue
        links += 1
        if links > _MOST_LINKS:
            return
        at = Path("/") if target.startswith("/") else at
        rest += [part for part in target.split("/") if part and part != "."][::-1]
    yield at, ""


def _find_writer(folder: Path, folder_status: os.stat_result) -> str:
    """Return who else may write to a folder; its owner may whatever the mode, since it can change that."""
    if writer := _name_foreign_user(folder_status.st_uid):
        return writer
    if folder_status.st_mode & stat.S_IWOTH:
        return "anybody"
    groups = [folder_status.st_gid] if folder_status.st_mode & stat.S_IWGRP else []
    if groups and (entries := _read_acl(folder)):  # with a list, the mode shows its mask in place of the group's rights
        mask = next((rights for tag, rights, _ in entries if tag == _ACL_MASK), 7)
        writers = [(tag, number) for tag, rights, number in entries if rights & mask & _WRITE]
        groups = [folder_status.st_gid] if any(tag == _ACL_GROUP_OWNER for tag, _ in writers) else []
        groups += [number for tag, number in writers if tag == _ACL_GROUP]
        for writer in (_name_foreign_user(number) for tag, number in writers if tag == _ACL_USER):
            if writer:
                return writer
    return next((writer for group in groups if (writer := _name_foreign_group(group))), "")


def _read_acl(folder: Path) -> list[tuple[int, int, int]]:
    """Return the access list of a folder: tag, rights, number of a user or group; empty where there is none."""
    try:
        data = os.getxattr(folder, _ACL)
    except (OSError, AttributeError):  # none is set, or this system has no such lists
        return []
    return list(struct.iter_unpack("<HHI", data[4:])) if len(data) % 8 == 4 else []


@cache
def _name_foreign_user(number: int) -> str:
    """Return a user by name if it is another one than this user and root."""
    if number in {0, os.geteuid()} or (number == _read_unmapped_user() and _is_namespace()):
        return ""
    import pwd

    with suppress(KeyError):
        return f"the user {pwd.getpwuid(number).pw_name}"
    return f"the user {number}"


@cache
def _name_foreign_group(number: int) -> str:
    """Return a group by name if another user is in it."""
    import grp
    import pwd

    try:
        group = grp.getgrgid(number)
    except KeyError:
        return ""
    members = {user.pw_uid for user in pwd.getpwall() if user.pw_gid == number or user.pw_name in group.gr_mem}
    return f"the group {group.gr_name}" if any(map(_name_foreign_user, members)) else ""


@cache
def _read_unmapped_user() -> int:
    """Return the id that the namespace shows for every user outside it."""
    with suppress(OSError, ValueError):
        return int(Path("/proc/sys/kernel/overflowuid").read_text())
    return -1


@cache
def _is_namespace() -> bool:
    """Return whether this process is in a user namespace, where unmapped users can't act."""
    with suppress(OSError):
        return Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]
    return False
