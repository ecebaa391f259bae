"""Moves away what git would run or follow in repositories that sandboxed commands made."""

import itertools
import os
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.guarded_paths import fold_path
from codeloop.kit.small_files import read_start
from codeloop.schema.bounds.sandbox import NESTED_REPOSITORIES
from codeloop.workspace.files.path_states import PathStates
from codeloop.workspace.git.index import list_submodules
from codeloop.workspace.git.planted.change_times import (
    CommandRuns,
    find_git_folder,
    list_all_git_folders,
    list_entries,
    list_modules,
    read_deciding_times,
    read_stamp,
)
from codeloop.workspace.git.planted.configured_files import CONFIG_BYTES, find_named_files, read_file_settings
from codeloop.workspace.git.planted.executed_lines import EXECUTED_LINES, LINES_BYTES, UPDATES
from codeloop.workspace.git.planted.finder import RepositoryFinder
from codeloop.workspace.git.planted.git_folder_watch import GitFolderWatch
from codeloop.workspace.git.planted.layout import GIT_NAMES, WORK_TREE_NAMES, git_folders, list_work_trees, read_pointer
from codeloop.workspace.git.planted.links import find_links_out
from codeloop.workspace.git.planted.quarantine import move_away
from codeloop.workspace.git.settings import GitSetting, read_settings

_PATHS_SHOWN = 5
_MAX_REWRITES = 5
_TOO_MANY_FOLDERS = (
    "There are more folders than are looked through for git at a time: look for `.git` in {} and others before git runs"
    " there. More are looked through after the next command."
)
_REFERRING_FILES = ("index", "commondir")
"""The files of a git directory that say where more of it is."""
_SECTION_HEAD = re.compile(r'\s*\[(?:[^\]"]|"(?:[^"\\]|\\.)*")*\]')
_MINIMAL = b"[core]\n\trepositoryformatversion = 0\n"


class _Before(NamedTuple):
    """The state before a command: links out of git directories, lines that git runs by file, and stamps.

    `read`: the folders in which links were looked for, None where they were too many; `unprotected`: stamps of the
    user's repositories that the kernel does not protect.
    """

    links: frozenset[Path]
    read: frozenset[str] | None
    lines: dict[Path, set[bytes]]
    unprotected: dict[Path, tuple[int, ...]]


class PlantedRepositories:
    """The repositories below a project, and those that commands add.

    `path`: the folder that planted files are moved to; `environment`: the user's, for git's configuration.
    """

    def __init__(self, roots: Sequence[Path], path: Path, environment: Mapping[str, str]) -> None:
        self._roots = roots
        self._quarantine = path
        self._environment = environment
        self._finder = RepositoryFinder(roots)
        self._git_folder_watch = GitFolderWatch()
        self._of_user: set[Path] = set()
        self._of_commands: dict[Path, tuple[int, ...]] = {}
        self._before = _Before(frozenset(), None, {}, {})
        self._turn = threading.Lock()
        self._moves: dict[Path, Path | None] = {}
        self._runs = CommandRuns()

    def list_protected_paths(self) -> list[Path]:
        """Return the paths in the user's repositories that no command may change, as far as they are known now."""
        paths: list[Path] = []
        for root in self._roots:
            paths += find_named_files(itertools.islice(git_folders(root), 2), root, self._roots, self._environment)
        protected, _ = self._list_nested()
        for entry in protected:
            if entry.parent.name == "worktrees":
                paths += [entry / name for name in WORK_TREE_NAMES]
                continue
            folder = find_git_folder(entry)
            paths += [entry] if entry.is_file() else [entry / name for name in GIT_NAMES]
            if folder is not None:
                tree = entry.parent if fold_path(entry.name) == ".git" else entry
                paths += find_named_files([folder], tree, self._roots, self._environment)
        return list(dict.fromkeys(paths))

    def _list_nested(self) -> tuple[list[Path], list[Path]]:
        """Return the user's repositories but the project's own: those that the kernel protects, and the others.

        The nearest to the top come first, so that a command can't displace them by making many others.
        """
        nested = self._of_user - set(_list_own_folders(self._roots))
        ordered = sorted(nested, key=lambda path: (fold_path(path.name) != ".git", len(path.parts), path))
        return ordered[: NESTED_REPOSITORIES.value], ordered[NESTED_REPOSITORIES.value :]

    @property
    def is_same(self) -> bool:
        """Whether nothing has changed since the last note. What commands have made is always checked."""
        return not self._of_commands and self._git_folder_watch.is_same and self._finder.is_same

    def count_at_once(self, more: int) -> bool:
        """Do `begin` (1), `end` (-1) or `note` (0) without reading the disk, if nothing has changed.

        Returns whether that was possible; never waits.
        """
        if not self._turn.acquire(blocking=False):
            return False
        try:
            is_same = self.is_same and (more >= 0 or self._finder.is_whole)
            if is_same:
                self._runs.count(more)
            return is_same
        finally:
            self._turn.release()

    def begin(self) -> None:
        """Record the state before a command: unless another runs, what is new since the last one is the user's."""
        with self._turn:
            self._record_state()
            self._runs.count(1)

    def note(self) -> None:
        """Record which repositories there are, so that `list_protected_paths` includes the user's new ones."""
        with self._turn:
            self._record_state()

    def _record_state(self) -> None:
        if self._runs.running or self.is_same:
            return
        self._git_folder_watch.begin()
        expected = self._list_git_folders()
        more = {root / ".git" for root in self._roots} | self._of_user
        states = _read_states(
            expected, {*more, *(path for path, _ in _list_line_files(self._list_git_folders(), self._roots))}
        )
        here = self._list_repositories()
        self._of_commands = {entry: read_stamp(entry) for entry in self._of_commands if entry in here}
        new = here - self._of_user - self._of_commands.keys()
        self._of_commands |= {entry: () for entry in new if self._runs.may_have_made(entry)}
        self._of_user = here - self._of_commands.keys()
        git_folders = self._list_git_folders()
        scans = [find_links_out(folder) for folder in git_folders]
        paths_read = [folder for scan in scans for folder in scan.read]
        self._before = _Before(
            frozenset(link for scan in scans for link in scan.links),
            None if any(scan.unread for scan in scans) else frozenset(paths_read),
            {
                path: set(pattern.findall(_read(path, LINES_BYTES)))
                for path, pattern in _list_line_files(self._list_git_folders(), self._roots)
            },
            {entry: read_deciding_times(entry) for entry in self._list_nested()[1]},
        )
        is_whole = git_folders == expected and not self._before.unprotected
        self._git_folder_watch.finish(paths_read, states if is_whole else None)

    def end(self) -> str:
        """Check what was created while commands ran. Return a description of what was moved away, or ""."""
        with self._turn:
            self._runs.count(-1)
            return "" if self.is_same and self._finder.is_whole else self._clear_new()

    def _clear_new(self) -> str:
        self._git_folder_watch.reset()
        self._moves = {}
        visited: set[Path] = set()
        new = self._list_repositories() - self._of_user
        older = {each for each in new - self._of_commands.keys() if not self._runs.may_have_made(each)}
        self._of_user |= older
        for entry in sorted(new - older):
            if self._of_commands.get(entry) != read_stamp(entry):
                self._clear(entry, visited)
            else:
                self._move(link for folder in list_all_git_folders(entry) for link in find_links_out(folder).links)
            self._clear_configured_files(entry)
            self._of_commands.setdefault(entry, ())
        for entry, before in self._before.unprotected.items():
            if read_deciding_times(entry) != before and (folder := find_git_folder(entry)) is not None:
                self._clear_folder(folder, visited)
        for folder in _list_own_folders(self._roots):
            self._of_commands.pop(folder, None)  # the kernel protects it from now on
        for folder in self._list_git_folders():
            scan = find_links_out(folder, self._before.read or ())
            self._move(link for link in scan.links if link not in self._before.links)
            self._move(scan.unread if self._before.read is not None else ())
        for path, pattern in _list_line_files(self._list_git_folders(), self._roots):
            self._clear_lines(path, pattern)
        paths = {path: target for path, target in self._moves.items() if target is not None}
        warning = self._finder.unsearched
        warning = warning and _TOO_MANY_FOLDERS.format(_shorten(Path(warning), self._roots))
        if not paths:
            return warning
        paths_shown = ", ".join(_shorten(path, self._roots) for path in list(paths)[:_PATHS_SHOWN])
        paths_shown += " ..." if len(paths) > _PATHS_SHOWN else ""
        where = next(iter(paths.values())).parent
        note = f"Set aside, since git would run or follow it outside the sandbox: {paths_shown}. It is kept in {where}."
        return f"{note} {warning}".rstrip()

    def close(self) -> None:
        """Stop watching."""
        self._finder.close()
        self._git_folder_watch.close()

    def _list_repositories(self) -> set[Path]:
        paths = self._finder.look()
        own = _list_own_folders(self._roots)
        # Also in folders that are not searched: for the status of a repository git reads its submodules.
        named = [
            root / name / ".git"
            for root in self._roots
            for folder in itertools.islice(git_folders(root), 1)
            for name in list_submodules(folder / "index")
        ]
        own += [path for path in named if os.path.lexists(path)]
        return {*paths, *own, *(each for folder in own for each in list_work_trees(folder))}

    def _list_git_folders(self) -> list[Path]:
        """Return the git directories of the user's: the project's own, those below it, and those of work trees."""
        below = (find_git_folder(entry) for entry in self._list_nested()[0])
        paths = [
            *_list_own_folders(self._roots),
            *(folder for folder in below if folder is not None and self._is_inside(folder)),
        ]
        return list(dict.fromkeys([*paths, *(each for folder in paths for each in list_work_trees(folder))]))

    def _is_inside(self, path: Path | None) -> bool:
        """Return whether a path leads to the project, or to the git directories that it has elsewhere."""
        return path is not None and any(map(path.is_relative_to, (*self._roots, *_list_own_folders(self._roots))))

    def _clear(self, entry: Path, visited: set[Path]) -> None:
        """Look through a new `.git` or bare repository."""
        real = Path(os.path.realpath(entry))
        if entry.is_file() and (target := read_pointer(entry, "gitdir:")) is not None:
            real = target
        elif not real.is_dir():
            return
        if not self._is_inside(real) or (real in self._of_user and not _is_work_tree(entry.parent, real)):
            self._move([entry])
        elif real not in self._of_user:
            self._clear_folder(real, visited)

    def _clear_configured_files(self, entry: Path) -> None:
        """Move away what the user's settings make git run in a new work tree, unless the project has the same file."""
        folder = find_git_folder(entry) if os.path.lexists(entry) else None
        if folder is None or fold_path(entry.name) != ".git":
            return
        shared = read_pointer(folder / "commondir") or folder
        named = find_named_files(dict.fromkeys((shared, folder)), entry.parent, self._roots, self._environment)
        found = set(named) - set(self.list_protected_paths())
        below = [Path(top, name) for path in found for top, _, names in os.walk(path) for name in names]
        self._move(
            path for path in (*found, *below) if path.is_file() and not _is_copy(path, entry.parent, self._roots[0])
        )

    def _clear_folder(self, folder: Path, visited: set[Path]) -> None:
        """Move away what git would run or follow in a new git directory."""
        if folder in visited or not folder.is_dir():
            return
        visited.add(folder)
        scan = find_links_out(folder)
        self._move((*scan.links, *scan.unread))
        shared = read_pointer(folder / "commondir")
        is_added = folder.parent.name == "worktrees" and (folder.parent.parent / "HEAD").is_file()
        if shared is not None:
            is_of_user = shared in self._of_user
            is_its_own = shared == folder.parent.parent if is_added else not is_of_user
            if (
                not self._is_inside(shared)
                or not is_its_own
                or (is_of_user and _came_with_programs(shared, self._roots))
            ):
                self._move([folder / "commondir"])
            elif not is_of_user:
                self._clear_folder(shared, visited)
        back = read_pointer(folder / "gitdir")
        if back is not None and back.exists() and not self._is_inside(back):
            self._move([folder / "gitdir"])
        for name in ("config", "config.worktree"):
            self._clear_settings(folder / name)
        self._move(hook for hook in list_entries(folder / "hooks") if hook.suffix != ".sample")
        alternates = folder / "objects/info/alternates"
        names = _read(alternates).decode("utf-8", "surrogateescape").splitlines()
        is_borrowing_inside = all(self._is_inside(Path(os.path.realpath(folder / "objects" / name))) for name in names)
        self._move([folder / "info/attributes", *([] if is_borrowing_inside else [alternates])])
        for name, pattern in EXECUTED_LINES.items():
            self._clear_lines(folder / name, pattern)
        for below in (*list_work_trees(folder), *list_modules(folder)):
            self._clear_folder(below, visited)

    def _clear_settings(self, file: Path) -> None:
        """Remove from a new configuration file every setting that is not known to be harmless."""

        def is_harmless(setting: GitSetting) -> bool:
            if setting.name == "core.worktree":
                return self._is_inside(Path(os.path.realpath(file.parent / setting.value)))
            return setting.is_plain

        data = _read(file)
        original = text = data.decode("utf-8", "surrogateescape") if len(data) < CONFIG_BYTES else "?"
        for _ in range(_MAX_REWRITES):  # a removed line may have hidden another setting, by a continuation for example
            bad = {setting.line for setting in read_settings(text) if not is_harmless(setting)}
            if not bad:
                break
            rows = enumerate(text.split("\n"))
            text = "\n".join(_strip_setting(row) if number in bad else row for number, row in rows)
        else:
            text = _MINIMAL.decode()
        if text != original:
            self._moves[file] = move_away(file, self._quarantine, text.encode("utf-8", "surrogateescape"))

    def _clear_lines(self, path: Path, pattern: re.Pattern[bytes]) -> None:
        text = _read(path, LINES_BYTES)
        if is_cut := len(text) >= LINES_BYTES:  # the rest is not checked, so it is dropped
            text = text[: text.rfind(b"\n") + 1]
        known_lines = self._before.lines.get(path, set())
        if is_cut or any(line not in known_lines for line in pattern.findall(text)):
            rest = pattern.sub(lambda line: line[0] if line[0] in known_lines else b"", text)
            self._moves[path] = move_away(path, self._quarantine, rest)

    def _move(self, paths: Iterable[Path]) -> None:
        self._moves |= {path: move_away(path, self._quarantine) for path in list(paths) if os.path.lexists(path)}


def _read_states(paths_before: Iterable[Path], more: Iterable[Path]) -> PathStates | None:
    """Return the states of the files that `_record_state` reads; None where a target of theirs is not watched.

    A write through another hard link of the same file notifies no folder.
    """
    if any(list_submodules(each / "index") or (each / "modules").exists() for each in paths_before):
        return None
    paths_read = {*more, *(each / name for each in paths_before for name in _REFERRING_FILES)}
    if any(path.is_symlink() for path in paths_read):
        return None
    return PathStates(str(path) for path in paths_read if not path.is_dir())


def _list_line_files(folders: Iterable[Path], roots: Iterable[Path]) -> list[tuple[Path, re.Pattern[bytes]]]:
    """Return the files that may hold lines that git would run, each with the pattern of such a line."""
    lists = [(folder / name, lines) for folder in folders for name, lines in EXECUTED_LINES.items()]
    lists += [(root / ".gitmodules", UPDATES) for root in roots]
    return lists


def _came_with_programs(folder: Path, roots: Iterable[Path]) -> bool:
    """Return whether a git directory, among the project's files as if it had come with them, names programs."""
    if any(fold_path(part) == ".git" for part in folder.parts) or folder in _list_own_folders(roots):
        return False
    settings = (setting for name in ("config", "config.worktree") for setting in read_file_settings(folder / name))
    hooks = (hook for hook in list_entries(folder / "hooks") if hook.suffix != ".sample")
    return not all(setting.is_plain for setting in settings) or any(True for _ in hooks)


def _is_copy(path: Path, tree: Path, root: Path) -> bool:
    """Return whether a file of a work tree has the same bytes as that of the project."""
    if not path.is_relative_to(tree) or not path.resolve().is_relative_to(tree):
        return False
    data = _read(path)
    return len(data) < CONFIG_BYTES and data == _read(root / path.relative_to(tree))


def _is_work_tree(tree: Path, folder: Path) -> bool:
    """Return whether a git directory says that this is its work tree: a further one, or a submodule."""
    if (back := read_pointer(folder / "gitdir")) is not None:
        return back.parent == tree
    places = [setting.value for setting in read_file_settings(folder / "config") if setting.name == "core.worktree"]
    return places != [] and Path(os.path.realpath(folder / places[-1])) == tree


def _list_own_folders(roots: Iterable[Path]) -> list[Path]:
    return [folder for root in roots for folder in git_folders(root)]


def _shorten(path: Path, roots: Iterable[Path]) -> str:
    root = next((root for root in roots if path.is_relative_to(root)), None)
    return str(path.relative_to(root) if root is not None else path)


def _read(file: Path, most: int = CONFIG_BYTES) -> bytes:
    """Return the start of a regular file; nothing when it can't be read."""
    try:
        return read_start(file, most)
    except OSError:
        return b""


def _strip_setting(row: str) -> str:
    """Return a line of a configuration file without its setting."""
    match = _SECTION_HEAD.match(row)
    return match[0] if match else ""
