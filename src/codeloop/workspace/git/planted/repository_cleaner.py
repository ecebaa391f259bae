"""Moves away what git would run or follow in a repository that sandboxed commands made.

`repositories.py` decides which repositories are looked through.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from codeloop.kit.git.settings import GitSetting, read_file_settings, read_settings
from codeloop.kit.guarded_paths import fold_path
from codeloop.kit.small_files import read_start_or_empty
from codeloop.workspace.git.planted.configured_files import MAX_CONFIG_BYTES
from codeloop.workspace.git.planted.layout import (
    EXECUTED_LINES,
    MAX_LINES_BYTES,
    list_entries,
    list_project_git_folders,
    list_submodule_folders,
    list_work_tree_folders,
    read_pointer,
)
from codeloop.workspace.git.planted.links import find_outward_links
from codeloop.workspace.git.planted.quarantine import move_away

_MAX_REWRITES = 5
_SECTION_HEAD = r'\s*\[(?:[^\]"]|"(?:[^"\\]|\\.)*")*\]'
# The least that git accepts as a configuration; replaces one that has more settings
# hidden than can be removed.
_MINIMAL_CONFIG = b"[core]\n\trepositoryformatversion = 0\n"


class RepositoryCleaner:
    """Looks through the git directories of new repositories,
    once for all that are found after a command.

    `quarantine`: the folder that files are moved to;
    `user_repositories`: those that no command made;
    `earlier_lines`: lines that git runs, by file, which were there before the command.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        quarantine: Path,
        user_repositories: AbstractSet[Path] = frozenset(),
        earlier_lines: Mapping[Path, set[bytes]] | None = None,
    ) -> None:
        self._roots = roots
        self._quarantine = quarantine
        self._user_repositories = user_repositories
        self._earlier_lines = earlier_lines or {}
        self._visited: set[Path] = set()
        # Old path -> new path; None where the file could not be moved.
        self.moves: dict[Path, Path | None] = {}

    def move(self, paths: Iterable[Path]) -> None:
        """Move files, links or folders to the quarantine; missing ones are left out."""
        # `paths` may be computed from folders that the moves change,
        # so it is read to its end first.
        self.moves |= {
            path: move_away(path, self._quarantine) for path in list(paths) if os.path.lexists(path)
        }

    def clean_repository(self, entry: Path) -> None:
        """Look through a new `.git` or bare repository."""
        real = Path(os.path.realpath(entry))
        if entry.is_file() and (target := read_pointer(entry, "gitdir:")) is not None:
            real = target
        elif not real.is_dir():
            return
        if not is_inside(real, self._roots) or (
            real in self._user_repositories and not _is_work_tree(entry.parent, real)
        ):
            self.move([entry])
        elif real not in self._user_repositories:
            self.clean_folder(real)

    def clean_folder(self, folder: Path) -> None:
        """Move away what git would run or follow in a new git directory,
        and in those of its submodules.
        """
        if folder in self._visited or not folder.is_dir():
            return
        self._visited.add(folder)
        scan = find_outward_links(folder)
        self.move((*scan.links, *scan.unread_folders))
        self._clean_commondir(folder)
        # A linked work tree's folder names the `.git` file of that work tree.
        tree_entry = read_pointer(folder / "gitdir")
        if (
            tree_entry is not None
            and tree_entry.exists()
            and not is_inside(tree_entry, self._roots)
        ):
            self.move([folder / "gitdir"])
        for name in ("config", "config.worktree"):
            self._clean_settings(folder / name)
        self.move(hook for hook in list_entries(folder / "hooks") if hook.suffix != ".sample")
        self.move([folder / "info/attributes"])
        self._clean_alternates(folder)
        for name, pattern in EXECUTED_LINES.items():
            self.clean_lines(folder / name, pattern)
        for below in (*list_work_tree_folders(folder), *list_submodule_folders(folder)):
            self.clean_folder(below)

    def clean_lines(self, path: Path, pattern: bytes) -> None:
        """Remove the lines of a file that match the pattern and were not
        there before the command.
        """
        text = read_start_or_empty(path, MAX_LINES_BYTES)
        if not text:
            return
        # The rest of a longer file is not checked, so it is dropped.
        is_cut = len(text) >= MAX_LINES_BYTES
        if is_cut:
            text = text[: text.rfind(b"\n") + 1]
        known_lines = self._earlier_lines.get(path, set())
        if is_cut or any(line not in known_lines for line in re.findall(pattern, text)):
            rest = re.sub(pattern, lambda line: line[0] if line[0] in known_lines else b"", text)
            self.moves[path] = move_away(path, self._quarantine, rest)

    def _clean_commondir(self, folder: Path) -> None:
        """Check the file by which a git directory takes objects and settings from another one,
        and that one.
        """
        shared = read_pointer(folder / "commondir")
        if shared is None:
            return
        is_linked_tree = (
            folder.parent.name == "worktrees" and (folder.parent.parent / "HEAD").is_file()
        )
        is_of_user = shared in self._user_repositories
        is_its_own = shared == folder.parent.parent if is_linked_tree else not is_of_user
        is_harmless = is_inside(shared, self._roots) and is_its_own
        if not is_harmless or (is_of_user and _came_with_programs(shared, self._roots)):
            self.move([folder / "commondir"])
        elif not is_of_user:
            self.clean_folder(shared)

    def _clean_alternates(self, folder: Path) -> None:
        """Move away the list of other folders with objects if one of them is
        outside of the project.
        """
        alternates = folder / "objects/info/alternates"
        names = (
            read_start_or_empty(alternates, MAX_CONFIG_BYTES)
            .decode("utf-8", "surrogateescape")
            .splitlines()
        )
        targets = [Path(os.path.realpath(folder / "objects" / name)) for name in names]
        if not all(is_inside(target, self._roots) for target in targets):
            self.move([alternates])

    def _clean_settings(self, file: Path) -> None:
        """Remove from a new configuration file every setting that is not known to be harmless."""
        data = read_start_or_empty(file, MAX_CONFIG_BYTES)
        for _ in range(_MAX_REWRITES):
            rest = self._list_harmless(file, data)
            if rest == data:
                return
            moved_to = move_away(file, self._quarantine, rest)
            self.moves[file] = self.moves.get(file) or moved_to
            # A git that runs may have written a setting since the file was read: what was
            # moved is what was there.
            moved = (
                read_start_or_empty(moved_to, MAX_CONFIG_BYTES) if moved_to is not None else data
            )
            if moved == data:
                return
            data = moved

    def _list_harmless(self, file: Path, data: bytes) -> bytes:
        """Return the text of a configuration file with the settings alone that
        are known to be harmless.
        """

        def is_harmless(setting: GitSetting) -> bool:
            if setting.name == "core.worktree":
                return is_inside(Path(os.path.realpath(file.parent / setting.value)), self._roots)
            return setting.is_harmless

        # A file that is too long to be checked is emptied: `?` is a line that can't be parsed.
        original = text = (
            data.decode("utf-8", "surrogateescape") if len(data) < MAX_CONFIG_BYTES else "?"
        )
        # Several times, since a removed line may have hidden another setting,
        # for example by a continuation.
        for _ in range(_MAX_REWRITES):
            bad_lines = {
                setting.line for setting in read_settings(text) if not is_harmless(setting)
            }
            if not bad_lines:
                break
            rows = enumerate(text.split("\n"))
            text = "\n".join(
                _strip_setting(row) if number in bad_lines else row for number, row in rows
            )
        else:
            # Settings were still found after the last rewrite.
            text = _MINIMAL_CONFIG.decode()
        return data if text == original else text.encode("utf-8", "surrogateescape")


def is_inside(path: Path, roots: Sequence[Path]) -> bool:
    """Return whether a path leads to the project,
    or to the git directories that it has elsewhere.
    """
    return any(map(path.is_relative_to, (*roots, *list_project_git_folders(roots))))


def _came_with_programs(folder: Path, roots: Iterable[Path]) -> bool:
    """Return whether a git directory that lies among the project's files, as if it came with them,
    names programs.
    """
    if any(
        fold_path(part) == ".git" for part in folder.parts
    ) or folder in list_project_git_folders(roots):
        return False
    settings = (
        setting
        for name in ("config", "config.worktree")
        for setting in read_file_settings(folder / name)
    )
    hooks = [hook for hook in list_entries(folder / "hooks") if hook.suffix != ".sample"]
    return bool(hooks) or not all(setting.is_harmless for setting in settings)


def _is_work_tree(tree: Path, folder: Path) -> bool:
    """Return whether a git directory says that this is its work tree: a further one,
    or a submodule.
    """
    tree_entry = read_pointer(folder / "gitdir")
    if tree_entry is not None:
        return tree_entry.parent == tree
    trees = [
        setting.value
        for setting in read_file_settings(folder / "config")
        if setting.name == "core.worktree"
    ]
    # git takes the last of several settings.
    return bool(trees) and Path(os.path.realpath(folder / trees[-1])) == tree


def _strip_setting(row: str) -> str:
    """Return a line of a configuration file without its setting: git allows one
    after the head of a section.
    """
    match = re.match(_SECTION_HEAD, row)
    return match[0] if match else ""
