"""Translates permission rules that deny files to paths that the sandbox makes
unwritable or unreadable.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from codeloop.kit.wildcard import matches
from codeloop.schema.bounds.sandbox import DENIED_ENTRIES
from codeloop.schema.limits import BASH_FILES
from codeloop.schema.permission import Action
from codeloop.schema.wire import replace
from codeloop.workspace.files.permission_name import NamedTree, make_permission_name
from codeloop.workspace.sandbox.paths.restricted_paths import FOLDERS_NOT_SEARCHED
from codeloop.workspace.sandbox.policy import NO_GRANTS, SandboxGrants

# A name that no file has (of the private use area): a rule that denies it in a folder
# denies every new file there.
_NEW_FILE_NAME = "\ue000any"


class DenyRules(Protocol):
    """The rules that bind a program: those of the session that it runs for,
    or those of the project.
    """

    def list_denials(self, permission: str, /) -> tuple[str, ...]:
        """Return the patterns of rules that deny particular needs of a permission
        (`edit` or `read`).
        """
        ...

    def judge(self, permission: str, patterns: Sequence[str], /) -> Mapping[str, Action]:
        """Return the rules' action for each pattern, without those that are allowed."""
        ...


class _NoRules:
    """Rules that deny nothing."""

    def list_denials(self, _permission: str, /) -> tuple[str, ...]:
        return ()

    def judge(self, _permission: str, _patterns: Sequence[str], /) -> Mapping[str, Action]:
        return {}


NO_RULES: DenyRules = _NoRules()


def add_denied_paths(
    workspace: NamedTree, rules: DenyRules, grants: SandboxGrants = NO_GRANTS
) -> SandboxGrants:
    """Return grants extended by the paths that rules deny.
    Reads the disk if there are such rules.
    """
    unwritable = tuple(_list_denied(workspace, rules, "edit"))
    unreadable = tuple(
        path for path in _list_denied(workspace, rules, "read") if os.path.lexists(path)
    )
    return (
        replace(grants, unwritable=unwritable, unreadable=unreadable)
        if unwritable or unreadable
        else grants
    )


def list_unwritable_files(workspace: NamedTree, rules: DenyRules) -> list[Path]:
    """Return the paths that exist now and that rules deny to write."""
    return [path for path in _list_denied(workspace, rules, "edit") if os.path.lexists(path)]


def has_denials(rules: DenyRules) -> bool:
    """Return whether a rule denies some paths for reading or writing."""
    return bool(rules.list_denials("edit") or rules.list_denials("read"))


def _list_denied(workspace: NamedTree, rules: DenyRules, permission: str) -> Iterator[Path]:
    """Yield the denied files, and the folders in which everything is denied."""
    seen: set[Path] = set()
    for pattern in rules.list_denials(permission):
        for path in _list_candidates(workspace, pattern):
            real = Path(os.path.realpath(path))
            # Of a link, its target and the link itself.
            for each in (real, path.parent.resolve() / path.name):
                if (
                    each in seen
                    or not each.is_relative_to(workspace.root)
                    or each == workspace.root
                ):
                    continue
                seen.add(each)
                yield from _find_denied(workspace, rules, permission, each)


def _find_denied(
    workspace: NamedTree, rules: DenyRules, permission: str, path: Path
) -> Iterator[Path]:
    """Yield a path if it and everything in it is denied;
    of a folder with exceptions, yield the denied files.
    """
    name = make_permission_name(workspace, path)
    if not path.is_dir():
        # A path that does not exist may become a folder.
        if "deny" in rules.judge(permission, [name, f"{name}/{_NEW_FILE_NAME}"]).values():
            yield path
        return
    files = [path / each for each in _list_files_below(path, BASH_FILES.value)]
    names = {make_permission_name(workspace, file): file for file in files}
    verdicts = rules.judge(permission, [*names, f"{name}/{_NEW_FILE_NAME}"])
    if verdicts and all(
        verdicts.get(each) == "deny" for each in (*names, f"{name}/{_NEW_FILE_NAME}")
    ):
        yield path
    else:
        yield from (file for each, file in names.items() if verdicts.get(each) == "deny")


def _list_candidates(workspace: NamedTree, pattern: str) -> Iterator[Path]:
    """Yield the files and folders of a project that a pattern may match;
    for `folder/*` only the folder.
    """
    root = workspace.root
    start, star, rest = pattern.partition("*")
    if "?" in start:
        start, star = start.partition("?")[0], "?"
    if not star:
        yield root / start
        return
    folder = root / start.rpartition("/")[0]
    if start.endswith("/") and not rest.strip("*/"):
        yield folder
        return
    if not folder.is_relative_to(root):
        return
    for name in _list_files_below(folder, DENIED_ENTRIES.value):
        path = folder / name
        if matches(make_permission_name(workspace, path), pattern):
            yield path


def _list_files_below(folder: Path, limit: int) -> Iterator[str]:
    """Yield the relative paths of files below a folder, without installed packages;
    stop after `limit` entries.
    """
    count = 0
    for top, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in FOLDERS_NOT_SEARCHED]
        for name in files:
            yield str(Path(top, name).relative_to(folder))
        count += len(files) + len(folders)
        if count > limit:
            return
