"""Carries references from a private git folder to the real one, by compare and swap,
and takes over the real ones.

The private folder begins with all of them in `packed-refs`, written by us: what stands in files of
their own there is what commands have changed.
"""

import re
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from typing import NamedTuple

from codeloop.workspace.git.private.names import HASH, REF_NAME
from codeloop.workspace.git.private.open_folder import (
    FileChangedError,
    OpenFolder,
    Stamp,
    make_stamp,
)
from codeloop.workspace.git.private.own_git import OwnGit

KEPT_PREFIX = "refs/codeloop/kept/"
"""Where commits stay that a command took a reference away from, or that could not be carried."""
_KEPT_SECONDS = 30 * 24 * 3600
_PACKED_BYTES = 512 * 1024 * 1024
_MAX_LOOSE = 100_000
_REF_BYTES = 1024
_PACKED_LINE = rb"(?m)^([0-9a-f]{40}|[0-9a-f]{64}) (refs/[^\n]+)$"
_PACKED_HEADER = "# pack-refs with: sorted \n"
_TOP_FOLDERS = ("refs", "refs/heads", "refs/tags")
STASH = "refs/stash"
# Enough of a hash to name a commit to a person.
_SHORT = 10

Refs = dict[str, str]
"""The full name of a reference -> its hash. Names with bytes that are not UTF-8 have surrogates."""


class ReadRefs(NamedTuple):
    """References as they are. `symbolic`: the files that name another reference,
    with their content.

    `loose`: those with a file of their own; `packed`: the stamp of the file with the others.
    """

    refs: Refs
    loose: Refs
    symbolic: dict[str, bytes]
    packed: Stamp | None


class RefChange(NamedTuple):
    """A change of one reference; "" where there is none."""

    name: str
    old: str
    new: str


def read_refs(top: OpenFolder, unit: str) -> ReadRefs:
    """Read the references of a git folder below `top`.
    Raises OSError when its `packed-refs` can't be read.
    """
    refs: Refs = {}
    packed = None
    if top.read_stamp(f"{unit}packed-refs") is not None:
        data, status = top.read(f"{unit}packed-refs", _PACKED_BYTES)
        packed = make_stamp(status)
        refs = {
            name.decode("utf-8", "surrogateescape"): commit.decode()
            for commit, name in re.findall(_PACKED_LINE, data)
            if re.fullmatch(REF_NAME, name)
        }
    loose: Refs = {}
    symbolic: dict[str, bytes] = {}
    for path in top.walk(f"{unit}refs", _MAX_LOOSE):
        name = path.removeprefix(unit)
        if name.endswith(".lock") or not re.fullmatch(
            REF_NAME, name.encode("utf-8", "surrogateescape")
        ):
            continue
        with suppress(OSError):
            data, _ = top.read(path, _REF_BYTES)
            if re.fullmatch(HASH, data.strip()):
                loose[name] = data.strip().decode()
            elif data.startswith(b"ref:"):
                symbolic[name] = data
    return ReadRefs({**refs, **loose}, loose, symbolic, packed)


def list_ref_folders(top: OpenFolder, unit: str) -> list[str]:
    """Return the folders in which references have files: their times show that one was added,
    replaced or removed.
    """
    found = [f"{unit}refs"]
    for folder in found:
        found += [f"{folder}/{name}" for name, is_folder in top.list_entries(folder) if is_folder]
        if len(found) > _MAX_LOOSE:
            break
    return found


class RefCarrier:
    """Carries the changes of one git folder's references.
    `notes`: what user and model should know of them.
    """

    def __init__(
        self, git: OwnGit, parents: Mapping[bytes, tuple[bytes, ...]], closed: frozenset[str]
    ) -> None:
        """`parents`: those of the commits that were just carried, by hash;
        `closed`: references that stay as they are.

        With one of these, what is below it stays, too.
        """
        self.closed = closed
        self._git = git
        self._parents = parents
        self.notes: list[str] = []

    def carry(self, base: Refs, private: Refs, real: Refs) -> list[RefChange]:
        """Make the changes from `base` to `private` in the real folder.
        Returns those that were made.
        """
        changes: list[RefChange] = []
        kept: dict[str, str] = {}
        for name in sorted(base.keys() | private.keys()):
            old, new, now = base.get(name, ""), private.get(name, ""), real.get(name, "")
            if new in {old, now} or name.startswith(KEPT_PREFIX):
                continue
            if name in self.closed or any(name.startswith(f"{each}/") for each in self.closed):
                if new:
                    kept[name] = new
                self.notes.append(
                    f"{_describe(name)} belongs to another work tree: it is as it was"
                    f"{f': the commit of the command is {_name_kept(name, new)}' if new else ''}"
                )
                continue
            if now != old:
                if new:
                    kept[name] = new
                self.notes.append(
                    f"{_describe(name)} was changed outside of the sandbox at the same time, so the command's change"
                    f" of it was not kept there{f': it is {_name_kept(name, new)}' if new else ''}"
                )
                continue
            changes.append(RefChange(name, old, new))
        made = self._apply(changes)
        for change in [change for change in changes if change not in made]:
            # Another program was faster, say, or holds the lock.
            names = self.keep(change.name, [change.new] if change.new else [])
            self.notes.append(
                f"{_describe(change.name)} was not changed outside of the sandbox: git refused it,"
                f" or objects are missing{f'; the commit of the command is {names[0]}' if names else ''}"
            )
        for change in made:
            if change.name.startswith("refs/replace/"):
                shown = (
                    "is shown as it is again"
                    if not change.new
                    else f"is shown as {change.new[:_SHORT]} by git now"
                )
                commit = change.name.removeprefix("refs/replace/")[:_SHORT]
                self.notes.append(
                    f"{commit} {shown} ({change.name}); `git --no-replace-objects` shows what is there"
                )
                continue
            # The log of the stash says what it lost; what a remote has is there.
            if (
                not change.old
                or change.name.startswith((STASH, "refs/remotes/"))
                or self._is_forward(change)
            ):
                continue
            if not change.new or not change.name.startswith("refs/heads/"):
                kept[change.name] = change.old
            self.notes.append(_describe_change(change))
        self._apply(
            [RefChange(_name_kept(name, commit), "", commit) for name, commit in kept.items()]
        )
        return made

    def keep(self, name: str, commits: Iterable[str]) -> list[str]:
        """Keep commits that a command took away from the log of a reference.
        Returns the references that keep them.
        """
        changes = self._apply(
            [RefChange(_name_kept(name, commit), "", commit) for commit in commits]
        )
        return [change.name for change in changes]

    def drop(self, names: Iterable[str], real: Refs) -> None:
        """Remove references of ours that have served their time."""
        self._apply([RefChange(name, real[name], "") for name in names])

    def _apply(self, changes: list[RefChange]) -> list[RefChange]:
        """Change references by compare and swap: all, or else each that can be.
        Returns the changes that were made.
        """
        if not changes:
            return []
        new = dict.fromkeys(change.new for change in changes if change.new)
        is_complete = not new or self.has_all(new)
        if is_complete and self._update(changes):
            return changes
        return [
            change
            for change in changes
            if (is_complete or not change.new or self.has_all([change.new]))
            and self._update([change])
        ]

    def has_all(self, commits: Iterable[str]) -> bool:
        """Return whether the real folder has everything that these commits need."""
        rows = "".join(f"{commit}\n" for commit in commits).encode()
        return self._git.succeeds(
            ("rev-list", "--objects", "--quiet", "--stdin", "--not", "--all"), rows
        )

    def _update(self, changes: list[RefChange]) -> bool:
        rows: list[str] = []
        # What is removed makes room: `a/b` can't be there before `a` has gone.
        for removed in (True, False):
            part = [change for change in changes if (not change.new) == removed]
            if not part:
                continue
            rows += ["start"]
            for change in part:
                if removed:
                    rows += [f"delete {change.name}", change.old]
                elif change.old:
                    rows += [f"update {change.name}", change.new, change.old]
                else:
                    rows += [f"create {change.name}", change.new]
            rows += ["prepare", "commit"]
        data = "".join(f"{row}\0" for row in rows).encode("utf-8", "surrogateescape")
        return self._git.succeeds(("update-ref", "--stdin", "-z"), data)

    def _is_forward(self, change: RefChange) -> bool:
        """Return whether nothing is lost by a change: the new commit has the old one behind it."""
        old, waiting, seen = change.old.encode(), [change.new.encode()], set[bytes]()
        while waiting:
            commit = waiting.pop()
            if commit == old:
                return True
            if commit not in seen:
                seen.add(commit)
                waiting += self._parents.get(commit, ())
        if not change.new or not change.name.startswith("refs/heads/"):
            return False
        return self._git.succeeds(("merge-base", "--is-ancestor", change.old, change.new))


def write_private_refs(
    top: OpenFolder, unit: str, current: ReadRefs, real: ReadRefs, *, is_new: bool = False
) -> Refs | None:
    """Make a private git folder have the real references. `current`: what was read of it; `is_new`:
    no command has seen it yet. Raises OSError.

    What a command has changed since `current` was read stays. Returns the references that the
    folder had or got, without such changes; None while git works on all of them.
    """
    different = set(current.loose)
    if not is_new:
        names = current.refs.keys() | real.refs.keys()
        different |= {name for name in names if current.refs.get(name) != real.refs.get(name)}
    with ExitStack() as locks:
        held = {name for name in sorted(different) if _hold(top, unit, name, current, locks)}
        if different or is_new or current.packed is None:
            rows = "".join(
                f"{commit} {name}\n"
                for name, commit in sorted(real.refs.items(), key=_sort_by_bytes)
            )
            data = (_PACKED_HEADER + rows).encode("utf-8", "surrogateescape")
            try:
                top.write(f"{unit}packed-refs", data, expected=current.packed, is_locked=True)
            except (FileExistsError, FileChangedError):
                return None
        for name in held & current.loose.keys():
            with suppress(OSError):
                top.remove(f"{unit}{name}")
    for folder in reversed(list_ref_folders(top, unit)):
        if folder.removeprefix(unit) not in _TOP_FOLDERS:
            top.remove_folder(folder)
    for folder in _TOP_FOLDERS:
        top.make_folder(f"{unit}{folder}")
    for name, data in real.symbolic.items():
        if current.symbolic.get(name) != data:
            top.write(f"{unit}{name}", data)
    for name in current.symbolic.keys() - real.symbolic.keys():
        top.remove(f"{unit}{name}")
    seen = {**real.refs}
    for name in different - held:
        # A command changes it just now, from what it was.
        seen.pop(name, None)
        if name in current.refs:
            seen[name] = current.refs[name]
    return seen


def _hold(top: OpenFolder, unit: str, name: str, current: ReadRefs, locks: ExitStack) -> bool:
    """Lock a private reference as git does, until `locks` are released. Returns whether it is as it
    was read: a command may be about to write it, or have written it.
    """
    path = f"{unit}{name}"
    try:
        top.make_folder(path.rpartition("/")[0])
        top.create(f"{path}.lock")
    except OSError:
        return False
    locks.callback(_remove_quietly, top, f"{path}.lock")
    try:
        now = top.read(path, _REF_BYTES)[0].strip().decode()
    except FileNotFoundError:
        now = None
    except (OSError, ValueError):
        return False
    return now == current.loose.get(name)


def _remove_quietly(top: OpenFolder, path: str) -> None:
    with suppress(OSError):
        top.remove(path)


def list_outdated(refs: Iterable[str]) -> list[str]:
    """Return the references of `KEPT_PREFIX` that are older than a month."""
    limit = time.strftime("%Y%m%d", time.gmtime(time.time() - _KEPT_SECONDS))
    return [
        name
        for name in refs
        if name.startswith(KEPT_PREFIX) and name.removeprefix(KEPT_PREFIX)[:8] < limit
    ]


def _sort_by_bytes(row: tuple[str, str]) -> bytes:
    return row[0].encode("utf-8", "surrogateescape")


def _name_kept(name: str, commit: str) -> str:
    """Return the reference under which a commit is kept.
    Its day comes first, so that old ones are found.
    """
    return f"{KEPT_PREFIX}{time.strftime('%Y%m%d', time.gmtime())}/{name.removeprefix('refs/')}-{commit[:_SHORT]}"


def _describe(name: str) -> str:
    for prefix, kind in (("refs/heads/", "branch "), ("refs/tags/", "tag "), ("refs/remotes/", "")):
        if name.startswith(prefix):
            return kind + name.removeprefix(prefix)
    return "the stash" if name == STASH else name


def _describe_change(change: RefChange) -> str:
    name, old = _describe(change.name), change.old[:_SHORT]
    if not change.new:
        return f"{name} was deleted: its commit is kept as {_name_kept(change.name, change.old)}"
    if change.name.startswith("refs/heads/"):
        return f"{name} was moved from {old} to {change.new[:_SHORT]}: {old} is in its log"
    return f"{name} was moved: its old commit is kept as {_name_kept(change.name, change.old)}"
