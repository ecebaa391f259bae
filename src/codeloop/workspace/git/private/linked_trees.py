"""Keeps the folders of linked work trees in a git folder in step with what the user and commands
made and removed.
"""

import os
import re
from pathlib import Path

from codeloop.kit.remove_tree import remove_tree
from codeloop.kit.small_files import read_start_or_empty
from codeloop.workspace.git.planted.layout import read_pointer
from codeloop.workspace.git.private.base import Base
from codeloop.workspace.git.private.carrier import Carrier
from codeloop.workspace.git.private.names import HASH
from codeloop.workspace.git.private.open_folder import OpenFolder
from codeloop.workspace.git.private.own_git import OwnGit
from codeloop.workspace.git.private.refs import RefCarrier
from codeloop.workspace.git.private.units import Unit, is_below

_POINTER_BYTES = 4096


class LinkedTrees:
    """The folders of linked work trees in a real git folder. `place`: as of OwnGit.
    Methods raise OSError.
    """

    def __init__(self, real: Path, base: Base, place: Path) -> None:
        self._real = real
        self._base = base
        self._place = place

    def match(self, real: OpenFolder, private: OpenFolder, units: list[Unit]) -> None:
        """Forget the linked work trees that the real folder has no more,
        and take on those that a command made.
        """
        known = {unit.path for unit in units}
        for unit in [unit for unit in units if unit.is_main]:
            for name, is_folder in private.list_entries(f"{unit.path}worktrees"):
                path = f"{unit.path}worktrees/{name}/"
                if path in known or not is_folder:
                    continue
                if self._base.get(f"{path}gitdir") != (None, None):
                    self._base.forget(path)
                    remove_tree(private.path / path)
                elif self._make(real, private, path):
                    units.append(Unit(path, is_main=False, has_tree=True))

    def drop_removed(self, carrier: Carrier, unit: Unit) -> bool:
        """Drop the folder of a linked work tree that a command has removed, folder and files.
        Returns whether it has.

        The commit that was checked out there is kept, unless a branch has it.
        """
        tree = read_pointer(self._real / unit.path / "gitdir")
        if (
            unit.is_main
            or not unit.has_tree
            or carrier.private.read_stamp(unit.path.rstrip("/")) is not None
        ):
            return False
        if tree is None or os.path.lexists(tree):
            return False
        head = (
            read_start_or_empty(self._real / unit.path / "HEAD", _POINTER_BYTES)
            .decode(errors="replace")
            .strip()
        )
        if re.fullmatch(HASH, head.encode()):
            main = Unit(unit.path.rpartition("worktrees/")[0], is_main=True, has_tree=False)
            RefCarrier(OwnGit(self._real / main.path, self._place), {}, frozenset()).keep(
                f"refs/{unit.path.rstrip('/')}", [head]
            )
        self._base.forget(unit.path)
        remove_tree(self._real / unit.path)
        carrier.has_written = True
        return True

    def _make(self, real: OpenFolder, private: OpenFolder, path: str) -> bool:
        """Make the folder of a linked work tree that a command made, if it lies in the project.
        Returns whether it is.

        Its pointers are written by us: only the place of the work tree is the command's.
        """
        try:
            entry = Path(
                os.fsdecode(private.read(f"{path}gitdir", _POINTER_BYTES)[0].removesuffix(b"\n"))
            )
            tree = entry.parent
            is_inside = entry.name == ".git" and is_below(tree, self._base.roots)
            if not is_inside or str(tree) != os.path.realpath(tree):
                return False
            # With a lock it is still being made.
            is_locked = private.read_stamp(f"{path}index.lock") is not None
            if is_locked or read_pointer(entry, "gitdir:") != self._real / path:
                return False
            for name, text in (("commondir", b"../..\n"), ("gitdir", os.fsencode(f"{entry}\n"))):
                stamp = real.write(f"{path}{name}", text)
                self._base.put(f"{path}{name}", stamp, private.read_stamp(f"{path}{name}"))
            private.make_folder(f"{path}info")
        except OSError:
            return False
        return True
