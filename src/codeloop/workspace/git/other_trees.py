"""The other work trees of a repository, which a session in a linked one must leave as they are."""

import os
from pathlib import Path

from codeloop.kit.git import find_common_folder, find_git_folder


class OtherTrees:
    """The main work tree of a repository and the linked ones,
    as a session in one of the linked ones sees them.

    For a session in the main tree, or outside of git, there are none.
    `root`: the top of the session's own tree.
    """

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.realpath(root))
        folder = find_git_folder(self._root)
        common = None if folder is None else find_common_folder(folder)
        is_linked = folder is not None and common is not None and not folder.samefile(common)
        self._common = Path(os.path.realpath(common)) if is_linked and common is not None else None

    @property
    def exist(self) -> bool:
        """Whether there may be any: whether the session's own tree is a linked one."""
        return self._common is not None

    def find_tree(self, path: Path) -> Path | None:
        """Return the top of the other work tree, or the shared git folder, that holds a path;
        None: neither does.

        `path`: absolute, with links resolved. Reads the disk.
        """
        if self._common is None:
            return None
        folders = {path, *path.parents}
        tops = [each for each in (self._root, *self._list_tops(self._common)) if each in folders]
        # A tree may lie within another one: the innermost is the one that holds the path.
        innermost = max(tops, key=lambda each: len(each.parts), default=None)
        if innermost == self._root and self._common not in folders:
            return None
        # The shared git folder of a bare repository is in no work tree.
        return (
            innermost
            if innermost not in {None, self._root}
            else self._common
            if self._common in folders
            else None
        )

    def list_trees_inside(self) -> list[Path]:
        """Return the tops of other work trees that lie below the session's own one."""
        if self._common is None:
            return []
        return [each for each in self._list_tops(self._common) if self._root in each.parents]

    def _list_tops(self, common: Path) -> list[Path]:
        # Not at the top: it takes git's module with it,
        # which the first command of most sessions does not need.
        from codeloop.workspace.git.linked_trees import list_all_trees

        return sorted({tree.folder for tree in list_all_trees(common)} - {self._root})
