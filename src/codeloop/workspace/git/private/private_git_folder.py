"""One git folder as sandboxes see it: a private one with small files of its own,
and the real objects beside it.

`synchronise` makes the two equal before and after each command. What changed in the real folder is
taken over; what a command changed is carried over as data (`names.py` lists what, and checks it);
the rest is dropped.
"""

import os
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from codeloop.kit.remove_tree import remove_tree
from codeloop.kit.small_files import create_private_folder
from codeloop.workspace.files.path_states import PathStates
from codeloop.workspace.git.private.base import Base, load_base
from codeloop.workspace.git.private.carrier import Carrier
from codeloop.workspace.git.private.linked_trees import LinkedTrees
from codeloop.workspace.git.private.logs import LogCarrier
from codeloop.workspace.git.private.mounts import (
    SHOWN_FOLDER,
    Mount,
    list_alternates,
    list_granted_files,
    list_mounts,
)
from codeloop.workspace.git.private.names import (
    INDEX_FILE,
    POINTER_FILES,
    SHARED_FILES,
    SHARED_INDEX_PREFIX,
    STATE_FOLDERS,
    TREE_FILES,
    TREE_REFS,
    CarriedFile,
    find_carried_file,
)
from codeloop.workspace.git.private.objects import FULL_ERRORS, carry_large_files, carry_objects
from codeloop.workspace.git.private.open_folder import OpenFolder
from codeloop.workspace.git.private.own_git import OwnGit
from codeloop.workspace.git.private.refs import (
    ReadRefs,
    RefCarrier,
    RefChange,
    Refs,
    list_outdated,
    read_refs,
    write_private_refs,
)
from codeloop.workspace.git.private.shallow import SHALLOW_NAME, correct_shallow
from codeloop.workspace.git.private.units import (
    MAX_STATE_FILES,
    Unit,
    list_closed_refs,
    list_units,
    list_watched,
    remove_locks,
)

if TYPE_CHECKING:
    from codeloop.workspace.git.private.hidden_content import HiddenContent

BASE_NAME = "base.json"
"""The file beside a private folder that says how the two were when they were last made equal."""
_CONFIG_BYTES = 256 * 1024
# Files that git never makes in a main folder, or makes again: what a command left in
# them would mislead later ones.
_MISLEADING_FILES = (
    *("commondir", "info/grafts", "objects/info/commit-graph"),
    "objects/info/commit-graphs/commit-graph-chain",
)


class PrivateGitFolder:
    """A real git folder, with those in it (work trees, submodules), and the private one for it.

    `place`: our folder for it; `hidden`: the tracked files that commands may not read.
    Methods raise OSError. Several threads may call them.
    """

    def __init__(
        self, real: Path, place: Path, roots: tuple[Path, ...], hidden: tuple[Path, ...] = ()
    ) -> None:
        self.real = real
        self.private = place / "git"
        self._place = place
        base_file = place / BASE_NAME
        base = load_base(base_file)
        if base is None or base.real != real:
            base = Base(base_file, real, roots, hidden)
        base.roots, base.hidden = roots, hidden
        self._base = base
        self._linked_trees = LinkedTrees(real, self._base, place / "own")
        self._lock = threading.Lock()
        self._states: PathStates | None = None
        # Submodules that a command has made, of which was told.
        self._named_modules: set[str] = set()
        self.has_waiting = False
        """Whether something waits until no command runs, and what they made was looked through."""
        self.granted: tuple[str, ...] = ()
        """Paths below it that commands may change here, although others may not."""
        # What keeps tracked files from commands, if they may not read some.
        self.content = _make_content(real, place, hidden) if hidden else None

    @property
    def is_unchanged(self) -> bool:
        """Whether neither of the two has changed since they were made equal;
        False if that can't be known.
        """
        return self._states is not None and self._states.are_unchanged()

    def synchronise(self, *, is_idle: bool, is_checked: bool = False) -> list[str]:
        """Make the two equal. Returns notes on what the user and the model should know.

        `is_idle`: no command that sees the private folder runs; `is_checked`: the repositories that
        commands made in the project were looked through since.
        """
        with self._lock:
            try:
                return self._synchronise(is_idle=is_idle, is_checked=is_checked)
            except OSError as error:
                if error.errno in FULL_ERRORS:
                    # It stays where it is until there is room.
                    raise
                # A command has left what can't be read, say: then nothing of it is carried,
                # and it is made anew.
                self._base.forget("")
                notes = self._synchronise(is_idle=is_idle, is_checked=is_checked)
                return [
                    *notes,
                    f"what the command left in {self.real} can't be read: that is as it was",
                ]

    def _synchronise(self, *, is_idle: bool, is_checked: bool) -> list[str]:
        create_private_folder(self.private)
        real = OpenFolder(self.real)
        try:
            private = OpenFolder(self.private)
        except OSError:
            real.close()
            raise
        try:
            units = list_units(self.real, self._base.roots)
            self._linked_trees.match(real, private, units)
            states = PathStates(
                str(top.path / path)
                for top in (real, private)
                for unit in units
                for path in list_watched(top, unit, is_private=top is private)
            )
            carrier = Carrier(real, private, self._base, is_idle=is_idle, is_checked=is_checked)
            if is_idle:
                remove_locks(private, units)
            units = [unit for unit in units if not self._linked_trees.drop_removed(carrier, unit)]
            if self.content is not None:
                carrier.notes += self.content.refresh(real, units)
            for unit in units:
                self._prepare_unit(carrier, unit)
            carrier.notes += self._describe_new_modules(private)
            # References before objects: what they need is there by then,
            # though a command goes on meanwhile.
            private_refs = {
                unit.path: read_refs(private, unit.path) for unit in units if unit.is_main
            }
            for path in private_refs:
                carry_large_files(real, private, path)
            parents = {
                unit.path: carry_objects(
                    real, private, unit.path, self._bind_git(unit), is_idle=is_idle
                )
                for unit in units
                if unit.is_main
            }
            for unit in units:
                closed = list_closed_refs(self.real, unit, units)
                refs = RefCarrier(self._bind_git(unit), parents.get(unit.path, {}), closed)
                current = private_refs.get(unit.path)
                changes = (
                    self._carry_refs(carrier, refs, unit, current) if current is not None else []
                )
                LogCarrier(carrier, refs).carry(unit.path, changes, has_tree=unit.has_tree)
                self._carry_files(carrier, unit)
                carrier.notes += refs.notes
            if self.content is not None:
                carrier.notes += self.content.refresh(real, units)
            self._base.save()
            self.has_waiting = carrier.has_waiting
            # Times from before anything was read: they hold only if nothing was written since.
            self._states = None if carrier.has_written else states
        finally:
            real.close()
            private.close()
        return carrier.notes

    def _describe_new_modules(self, private: OpenFolder) -> list[str]:
        """Return a note on each submodule whose repository a command has made here,
        where it stays.
        """
        new = {
            name
            for name, is_folder in private.list_entries("modules")
            if is_folder
            and name not in self._named_modules
            and not (self.real / "modules" / name).exists()
        }
        self._named_modules |= new
        text = "the repository of submodule {} was not kept: run `git submodule add` by itself, which asks for it"
        return [text.format(name) for name in sorted(new)]

    def _prepare_unit(self, carrier: Carrier, unit: Unit) -> None:
        """Make the folders of a git folder, from nothing if a command has
        left no git folder there.
        """
        private, base = carrier.private, self._base
        is_known = base.get(f"{unit.path}{'HEAD' if unit.is_main else 'gitdir'}") != (None, None)
        if is_known and not self._is_git_folder(private, unit):
            carrier.notes.append(
                f"the command tried to delete {self.real / unit.path}: it is as it was"
            )
            base.forget(unit.path)
            is_known = False
        if not is_known:
            self._make_unit(private, unit)
            carrier.has_written = True
        if not unit.is_main:
            return
        for name in _MISLEADING_FILES:
            with suppress(OSError):
                private.remove(f"{unit.path}{name}")
        alternates = f"{unit.path}objects/info/alternates"
        lines = [f"../{SHOWN_FOLDER}/objects"]
        if self.content is None or self.content.find_objects(unit.path) is None:
            lines += list_alternates(self.real / unit.path / "objects")
        text = os.fsencode("".join(f"{line}\n" for line in lines))
        with suppress(OSError):
            if private.read(alternates, _CONFIG_BYTES)[0] == text:
                return
        private.write(alternates, text)

    def _make_unit(self, private: OpenFolder, unit: Unit) -> None:
        """Make an empty git folder in the private one."""
        if unit.path:
            remove_tree(private.path / unit.path)
        else:
            for name, _ in private.list_entries():
                remove_tree(private.path / name)
        for name in (
            "info",
            *(("objects/info", "objects/pack", "refs/heads", "refs/tags") if unit.is_main else ()),
        ):
            private.make_folder(f"{unit.path}{name}")

    def _is_git_folder(self, private: OpenFolder, unit: Unit) -> bool:
        """Return whether a private git folder is one still.
        Git itself never removes what is looked for.
        """
        folders = ["objects", "refs"] if unit.is_main else []
        if not all((private.path / unit.path / name).is_dir() for name in folders):
            return False
        if self._base.refs.get(unit.path) and private.read_stamp(f"{unit.path}packed-refs") is None:
            return False
        head = TREE_FILES["HEAD"]
        try:
            return head.check(private.read(f"{unit.path}HEAD", head.max_bytes)[0], b"") is not None
        except OSError:
            return False

    def _carry_refs(
        self, carrier: Carrier, refs: RefCarrier, unit: Unit, current: ReadRefs
    ) -> list[RefChange]:
        """Carry the references of a git folder. `current`: those of the private one."""
        base = self._base.refs.get(unit.path)
        real = read_refs(carrier.real, unit.path)
        changes: list[RefChange] = []
        if base is not None and base != current.refs:
            changes = refs.carry(base, current.refs, real.refs)
            if outdated := list_outdated(real.refs):
                refs.drop(outdated, real.refs)
            carrier.has_written = True
            real = read_refs(carrier.real, unit.path)
        is_equal = (
            current.refs == real.refs and not current.loose and current.symbolic == real.symbolic
        )
        seen: Refs | None = real.refs
        if not is_equal or base is None:
            carrier.has_written = True
            seen = write_private_refs(
                carrier.private, unit.path, current, real, is_new=base is None and not current.refs
            )
        # Where the real ones could not be written, they count as changed the next time.
        self._base.refs[unit.path] = current.refs if seen is None else seen
        return changes

    def _carry_files(self, carrier: Carrier, unit: Unit) -> None:
        """Carry the files of a git folder, the index last: what it names is there by then."""
        top, names = unit.path, dict[str, CarriedFile]()
        one_way = [
            *(() if unit.is_main else POINTER_FILES),
            *(() if unit.has_tree else ("HEAD", "ORIG_HEAD")),
        ]
        one_way += SHARED_FILES if unit.is_main and not unit.has_tree else ()
        for name in one_way:
            carrier.take_over(f"{top}{name}")
        if not unit.has_tree:
            return
        index_file = self.content.make_index_file(top) if self.content is not None else INDEX_FILE
        if unit.is_main:
            correct_shallow(carrier, f"{top}{SHALLOW_NAME}", self._bind_git(unit))
            names |= SHARED_FILES
            names |= dict.fromkeys(
                () if top else list_granted_files(self.real, self.granted),
                find_carried_file("granted"),
            )
        names |= TREE_FILES
        folders = STATE_FOLDERS if unit.is_main else (*STATE_FOLDERS, *TREE_REFS)
        known = [path.removeprefix(top) for path in self._base.files if path.startswith(top)]
        for folder in folders:
            paths = {name for name in known if name.startswith(f"{folder}/")}
            for side in (carrier.real, carrier.private):
                paths |= {
                    path.removeprefix(top) for path in side.walk(f"{top}{folder}", MAX_STATE_FILES)
                }
            names |= {name: find_carried_file(name) for name in sorted(paths)}
        for side in (carrier.real, carrier.private):
            entries = [
                name for name, is_folder in side.list_entries(top.rstrip("/")) if not is_folder
            ]
            names |= dict.fromkeys(
                (name for name in entries if name.startswith(SHARED_INDEX_PREFIX)), INDEX_FILE
            )
        names["HEAD"] = TREE_FILES["HEAD"]._replace(check=partial(self._check_head, carrier, unit))
        for name, how in names.items():
            carrier.carry(f"{top}{name}", how)
        for folder in folders:
            # Git takes the folder itself as the sign that a rebase is under way. One that held
            # nothing before may have just been made by a git that runs.
            had_files = any(name.startswith(f"{folder}/") for name in known)
            if had_files:
                carrier.real.remove_folder(f"{top}{folder}")
            if had_files or carrier.is_idle:
                carrier.private.remove_folder(f"{top}{folder}")
        check = partial(self._check_index, carrier, unit)
        carrier.carry(f"{top}index", index_file._replace(check=check))

    def _check_head(self, carrier: Carrier, unit: Unit, data: bytes, _real: bytes) -> bytes | None:
        """Check a HEAD: it names a branch, or a commit that is there.
        Raises FileExistsError if it may come yet.
        """
        head = TREE_FILES["HEAD"].check(data, b"")
        commit = data.strip().decode("utf-8", "replace")
        if (
            head is None
            or data.startswith(b"ref:")
            or any(commit in refs.values() for refs in self._base.refs.values())
        ):
            return head
        main = _find_main(unit)
        if RefCarrier(self._bind_git(main), {}, frozenset()).has_all([commit]):
            return head
        if not carrier.is_idle:
            raise FileExistsError(f"{unit.path}HEAD")
        return None

    def _check_index(self, carrier: Carrier, unit: Unit, data: bytes, real: bytes) -> bytes | None:
        """Check an index, and carry the objects that a command has made since the others were
        carried: it may name them.
        """
        main = _find_main(unit)
        git = self._bind_git(main)
        carry_objects(carrier.real, carrier.private, main.path, git, is_idle=carrier.is_idle)
        return INDEX_FILE.check(data, real)

    def remove(self) -> None:
        """Remove the private folder, after `synchronise`. Raises OSError."""
        remove_private_folder(self._place)

    def list_mounts(self) -> list[Mount]:
        """Return what a sandbox sees in place of the real folder; see `list_mounts`.
        Call it after `synchronise`.
        """
        private = OpenFolder(self.private)
        try:
            find_objects = self.content.find_objects if self.content is not None else None
            mounts = list_mounts(self.real, private, self._base.roots, self.granted, find_objects)
        finally:
            private.close()
        # An empty file in place of one that is in conflict would count as its resolution;
        # a device is nothing that git adds.
        unmerged = self.content.unmerged if self.content is not None else ()
        return [*mounts, *(Mount(os.devnull, str(path), is_writable=False) for path in unmerged)]

    def _bind_git(self, unit: Unit) -> OwnGit:
        return OwnGit(self.real / unit.path, self._place / "own")


def _make_content(real: Path, place: Path, hidden: tuple[Path, ...]) -> "HiddenContent":
    from codeloop.workspace.git.private.hidden_content import HiddenContent

    return HiddenContent(real, place, hidden)


def _find_main(unit: Unit) -> Unit:
    """Return the git folder that has the objects of another one, or of itself."""
    if unit.is_main:
        return unit
    return Unit(unit.path.rpartition("worktrees/")[0], is_main=True, has_tree=False)


def remove_private_folder(place: Path) -> None:
    """Remove the folder of a private git folder. Raises OSError."""
    # First what says how it was: else a process that is ended here would look like
    # a command that deleted all.
    (place / BASE_NAME).unlink(missing_ok=True)
    remove_tree(place)
