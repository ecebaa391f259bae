"""Which repositories are in a project, which of them are the user's, and what is protected there.

`repositories.py` asks here before and after each command.
"""

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from codeloop.kit.guarded_paths import fold_path
from codeloop.schema.bounds.sandbox import NESTED_PRIVATE, NESTED_REPOSITORIES
from codeloop.workspace.git.planted.change_times import read_full_stamp
from codeloop.workspace.git.planted.configured_files import (
    ConfiguredFiles,
    find_configured_files,
    is_copy,
)
from codeloop.workspace.git.planted.layout import (
    GIT_FOLDER_ENTRIES,
    WORK_TREE_ENTRIES,
    find_git_folders,
    list_named_submodules,
    list_project_git_folders,
    list_work_tree_folders,
    read_pointer,
    resolve_git_folder,
)
from codeloop.workspace.git.planted.repository_cleaner import is_inside
from codeloop.workspace.git.planted.repository_finder import RepositoryFinder
from codeloop.workspace.sandbox.paths.linked_paths import is_below_any
from codeloop.workspace.sandbox.paths.restricted_paths import FOLDERS_NOT_SEARCHED


class KnownRepositories:
    """The repositories of a project, as far as they are known.

    `user`: the user's; `of_commands`: those that commands made, with the stamp of each when it was
    last looked through; () if it never was. `roots`, `environment`: as of ProjectRepositories.
    """

    def __init__(
        self, roots: Sequence[Path], finder: RepositoryFinder, environment: Mapping[str, str]
    ) -> None:
        self._roots = roots
        self._finder = finder
        self._environment = environment
        self._configured = ConfiguredFiles(roots, environment)
        self.user: set[Path] = set()
        self.of_commands: dict[Path, tuple[int, ...]] = {}
        # Git directories -> what commands see in their place (`git/private`): its index
        # may name repositories, too.
        self._private_folders: dict[Path, Path] = {}
        self.has_unwatched = False
        """Whether an index names repositories in folders that are not watched."""

    def cover(self, private_folders: Mapping[Path, Path]) -> bool:
        """Take note of git directories in the place of which commands see others.
        Returns whether one of them is new.
        """
        if private_folders.items() <= self._private_folders.items():
            return False
        self._private_folders |= private_folders
        return True

    def list_protected_paths(self) -> list[Path]:
        """Return the paths in the user's repositories that no command may change,
        as far as they are known now.
        """
        paths: list[Path] = []
        for root in self._roots:
            # The first is the work tree's own git directory, the second, if it is a linked one,
            # the shared one.
            tree_folders = itertools.islice(find_git_folders(root), 2)
            paths += self._configured.find(tree_folders, root)
        protected, _ = self.split_nested()
        for entry in protected:
            if entry.parent.name == "worktrees":
                paths += [entry / name for name in WORK_TREE_ENTRIES]
                continue
            folder = resolve_git_folder(entry)
            paths += [entry] if entry.is_file() else [entry / name for name in GIT_FOLDER_ENTRIES]
            if folder is not None:
                tree = entry.parent if fold_path(entry.name) == ".git" else entry
                paths += self._configured.find([folder], tree)
        return list(dict.fromkeys(paths))

    def list_nested_folders(self) -> tuple[Path, ...]:
        """Return the git directories of the user's repositories but the project's own, the nearest
        to the top first: of those whose `.git` is a folder.
        """
        return tuple(
            entry
            for entry in self.split_nested()[0]
            if fold_path(entry.name) == ".git" and entry.is_dir() and not entry.is_symlink()
        )[: NESTED_PRIVATE.value]

    def split_nested(self) -> tuple[list[Path], list[Path]]:
        """Return the user's repositories but the project's own: those that the kernel protects,
        and the others.

        The nearest to the top come first, so that a command can't displace them
        by making many others.
        """
        nested = self.user - set(list_project_git_folders(self._roots))
        ordered = sorted(
            nested, key=lambda path: (fold_path(path.name) != ".git", len(path.parts), path)
        )
        return ordered[: NESTED_REPOSITORIES.value], ordered[NESTED_REPOSITORIES.value :]

    def update_owners(self, may_have_made: Callable[[Path], bool]) -> None:
        """Find all repositories, and decide which of the new ones are the user's.

        `may_have_made`: tells whether a command may have made one.
        """
        entries = self.list_all()
        of_commands = {
            entry: read_full_stamp(entry) for entry in self.of_commands if entry in entries
        }
        new = entries - self.user - of_commands.keys()
        of_commands |= {entry: () for entry in new if may_have_made(entry)}
        self.of_commands = of_commands
        self.user = entries - of_commands.keys()

    def list_all(self) -> set[Path]:
        """Return each `.git` and each bare repository below the project,
        and the folders of linked work trees.
        """
        paths = self._finder.find()
        project_folders = list_project_git_folders(self._roots)
        # Submodules may be in folders that are not searched,
        # and git reads them for the status of the repository.
        submodule_entries = [
            root / name / ".git"
            for root in self._roots
            for folder in itertools.islice(find_git_folders(root), 1)
            for name in list_named_submodules(folder, self._private_folders)
        ]
        self.has_unwatched = any(
            not FOLDERS_NOT_SEARCHED.isdisjoint(path.parts[:-1]) for path in submodule_entries
        )
        known = [*project_folders, *(path for path in submodule_entries if os.path.lexists(path))]
        return {
            *paths,
            *known,
            *(each for folder in known for each in list_work_tree_folders(folder)),
        }

    def list_git_folders(self) -> list[Path]:
        """Return the user's git directories that commands write to: protected ones,
        and those of linked work trees.
        """
        below = (resolve_git_folder(entry) for entry in self.split_nested()[0])
        own = list_project_git_folders(self._roots)
        paths = [path for path in own if not is_below_any(path, self._private_folders)]
        paths += [
            folder
            for folder in below
            if folder is not None
            and is_inside(folder, self._roots)
            and not is_below_any(folder, self._private_folders)
        ]
        return list(
            dict.fromkeys(
                [*paths, *(each for folder in paths for each in list_work_tree_folders(folder))]
            )
        )

    @property
    def has_open_folders(self) -> bool:
        """Whether commands write to git directories of the user, protected or not."""
        return bool(self.list_git_folders() or self.split_nested()[1])

    def list_configured_copies(self, entry: Path) -> list[Path]:
        """Return the files that the user's settings make git run in a new work tree,
        but not in the project.

        A file that the project has too, with the same bytes,
        is left out: the user runs that one already.
        """
        folder = resolve_git_folder(entry) if os.path.lexists(entry) else None
        if folder is None or fold_path(entry.name) != ".git":
            return []
        shared = read_pointer(folder / "commondir") or folder
        configured = find_configured_files(
            dict.fromkeys((shared, folder)), entry.parent, self._roots, self._environment
        )
        unprotected = set(configured) - set(self.list_protected_paths())
        below = [
            Path(top, name)
            for path in unprotected
            for top, _, names in os.walk(path)
            for name in names
        ]
        files = [path for path in (*unprotected, *below) if path.is_file()]
        return [path for path in files if not is_copy(path, entry.parent, self._roots[0])]
