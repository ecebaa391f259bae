"""Finds the files on this machine that a shell line touches: follows links and expands globs.

The room `shell` reads the paths from the text of the line; here they become real paths.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

from msgspec import Struct

from codeloop.kit.guarded_paths import is_protected, is_secret, needs_confirmation
from codeloop.kit.paths import expand_user_path
from codeloop.kit.wildcard import ANY_TEXT, matches
from codeloop.schema.limits import BASH_FILES
from codeloop.schema.wire import replace
from codeloop.shell.touched_paths import GIT_TOP, Touches
from codeloop.shell.unknown_program import is_written_outside
from codeloop.shell.word_paths import ANYWHERE
from codeloop.workspace.git.index import IndexEntry, read_tracked_files
from codeloop.workspace.workspace import Workspace

# Stands for any protected file in a folder that a line writes files of unknown names to.
_ANY_HOOK = Path(".git", "hooks", "*")


class TouchedFiles(Struct, frozen=True):
    """The files and folders that a line touches, as resolved paths.

    `paths`: all that the line names. `reads`: those whose content is read,
    and `files_below` the files of such folders.
    `writes`: those that are changed; `filled_folders`: folders in which any file may be changed.
    `git_files`: tracked files that git prints. `unpacked`: protected files that may be among what
    the line unpacks or copies.
    """

    paths: tuple[Path, ...]
    reads: tuple[Path, ...]
    files_below: tuple[Path, ...]
    writes: tuple[Path, ...]
    filled_folders: tuple[Path, ...]
    git_files: tuple[Path, ...]
    unpacked: tuple[Path, ...]
    is_uncertain: bool
    """Whether some paths are computed when the line runs."""
    may_read: bool
    """Whether the line may read any file, by such a path or by a glob that
    matches too many files.
    """
    may_write: bool
    """Whether the line may write any file, in the same way."""

    def map_paths(self, resolve: Callable[[Path], Path | None]) -> "TouchedFiles":
        """Return a copy whose paths, except `git_files`,
        `resolve` has replaced: a sandbox may show others there.

        None drops a path.
        """
        fields = ("paths", "reads", "files_below", "writes", "filled_folders", "unpacked")
        mapped = {name: filter(None, map(resolve, getattr(self, name))) for name in fields}
        return replace(
            self, **{name: tuple(dict.fromkeys(paths)) for name, paths in mapped.items()}
        )


def find_touched_files(touches: Touches, directory: Path, workspace: Workspace) -> TouchedFiles:
    """Return the files that a line touches when it runs in a directory. Reads the disk."""
    resolver = _PathResolver(directory, workspace)
    reads = resolver.find_paths(touches.reads)
    possible_reads = [
        path for text in touches.possible_reads for path in resolver.find_likely_paths(text)
    ]
    read_trees, visible_trees = (
        resolver.find_paths(touches.read_trees),
        resolver.find_paths(touches.visible_trees),
    )
    writes = resolver.find_paths(touches.writes, for_writing=True)
    folders = resolver.find_paths(touches.filled_folders, for_writing=True)
    # In a guarded folder, such as `.git/hooks`, every file counts as changed.
    writes += [path for path in folders if _is_guarded(workspace.format_for_user(path))]
    filled_folders = _drop_parents(folders)
    unpacked = [
        folder / _ANY_HOOK
        for folder in resolver.find_paths(touches.unpack_folders, for_writing=True)
    ]
    unpacked += _list_protected_copies(read_trees, filled_folders)
    changed_folders = resolver.find_paths(touches.changed_trees)
    changed_trees = [path for folder in changed_folders for path in _find_protected(folder)]
    below = [*_list_below(read_trees, hidden=True), *_list_below(visible_trees, hidden=False)]
    names = resolver.find_paths(touches.lookups)
    is_uncertain = ANYWHERE in (
        *touches.reads,
        *touches.read_trees,
        *touches.visible_trees,
        *touches.writes,
        *touches.lookups,
    )
    git_files = _list_printed_by_git(touches, resolver)
    has_too_many = resolver.has_too_many or max(len(below), len(git_files)) > BASH_FILES.value
    return TouchedFiles(
        paths=_drop_doubles(
            [directory],
            names,
            reads,
            possible_reads,
            read_trees,
            visible_trees,
            writes,
            filled_folders,
        ),
        reads=_drop_doubles(reads, possible_reads, read_trees, visible_trees),
        files_below=_drop_doubles(below[: BASH_FILES.value]),
        writes=_drop_doubles(filter(_is_changed, writes), changed_trees),
        filled_folders=_drop_doubles(filled_folders, filter(Path.is_dir, changed_folders)),
        git_files=tuple(git_files),
        unpacked=_drop_doubles(unpacked),
        is_uncertain=is_uncertain or resolver.has_too_many,
        may_read=has_too_many or is_uncertain or ANYWHERE in touches.possible_reads,
        may_write=resolver.has_too_many
        or resolver.has_option
        or ANYWHERE in (*touches.writes, *touches.filled_folders, *touches.changed_trees),
    )


def _drop_doubles(*groups: Iterable[Path]) -> tuple[Path, ...]:
    """Return the paths of all groups in their order, each once."""
    return tuple(dict.fromkeys(chain(*groups)))


def _list_protected_copies(trees: list[Path], folders: list[Path]) -> list[Path]:
    """Return where the protected files of trees would be if the trees were copied to folders."""
    if not folders:
        return []
    names = [path.relative_to(tree) for tree in trees for path in _find_protected(tree)]
    return [folder / name for folder in folders for name in names]


class _PathResolver:
    """Resolves the paths of a line, for the directory that the line runs in.

    `has_too_many`: a glob matched more files than BASH_FILES. `has_option`: a glob matched a name
    that begins with a dash, which a program takes for an option.
    """

    def __init__(self, directory: Path, workspace: Workspace) -> None:
        self.directory = directory
        self.top = workspace.root
        self.has_too_many = False
        self.has_option = False

    def find_paths(self, texts: Iterable[str], *, for_writing: bool = False) -> list[Path]:
        """Return the paths that texts stand for, with globs expanded,
        without those computed at run time.
        """
        paths: dict[Path, None] = {}
        for text in texts:
            if text == ANYWHERE:
                continue
            if ANY_TEXT not in text:
                paths[self.resolve(text)] = None
                continue
            expanded = self._expand(text)
            paths |= dict.fromkeys(expanded)
            # A line may create a file whose name is not known: `_` stands for that name.
            if for_writing:
                paths[self.resolve(text.replace(ANY_TEXT, "_"))] = None
        return list(paths)

    def find_likely_paths(self, text: str) -> list[Path]:
        """Return the paths in an argument of an unknown program, if it is likely to be one.

        It is if it leads out of the directory, may hold keys, or names an existing file.
        """
        return [
            path
            for path in self.find_paths([text])
            if is_written_outside(text)
            or is_secret(text)
            or (os.path.lexists(path) and not path.is_dir())
        ]

    def resolve(self, text: str) -> Path:
        """Return the real path, as the system finds it: links are followed
        before `..` is applied.
        """
        if text.startswith(GIT_TOP):
            return Path(os.path.realpath(self.top / text.removeprefix(GIT_TOP).lstrip("/")))
        return Path(os.path.realpath(self.directory / expand_user_path(text)))

    def _expand(self, text: str) -> list[Path]:
        """Return the existing paths that a glob matches, at most BASH_FILES of them."""
        parts = text.split("/")
        first = next(index for index, part in enumerate(parts) if ANY_TEXT in part)
        start = "/".join(parts[:first]) + "/" if first else ""
        folders = [self.resolve(start or ".")]
        for part in parts[first:]:
            if ANY_TEXT in part:
                pattern = part.replace(ANY_TEXT, "*")
                names = [
                    (folder, name) for folder in folders for name in _match_names(folder, pattern)
                ]
                self.has_option = self.has_option or (
                    not start and any(name.startswith("-") for _, name in names)
                )
                folders = [
                    Path(os.path.realpath(folder / name))
                    for folder, name in names[: BASH_FILES.value]
                ]
                self.has_too_many = self.has_too_many or len(names) > BASH_FILES.value
            else:
                folders = [Path(os.path.realpath(folder / part)) for folder in folders]
        return [path for path in folders if os.path.lexists(path)]


def _match_names(folder: Path, pattern: str) -> list[str]:
    """Return the names in a folder that a shell's glob matches: those with a leading
    dot only if it has one, too.
    """
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:
        return []
    return [
        name
        for name in names
        if matches(name, pattern) and (pattern.startswith(".") or not name.startswith("."))
    ]


def _list_printed_by_git(touches: Touches, resolver: _PathResolver) -> list[Path]:
    """Return the tracked files whose text git prints, those that may hold keys first,
    at most BASH_FILES and one.

    A command like `git diff` without a revision prints changed files only.
    """
    if not touches.git_trees and not touches.git_changes:
        return []
    top = str(resolver.resolve(GIT_TOP))
    words = resolver.find_paths(touches.git_limits)
    limits = [path for path in words if os.path.lexists(path)]
    has_revision = len(limits) < len(words) or ANYWHERE in touches.git_limits
    scope = [
        f"{str(path).rstrip('/')}/"
        for path in limits or resolver.find_paths((*touches.git_trees, *touches.git_changes))
    ]
    folders = read_tracked_files(Path(top))
    paths: list[str] = []
    for folder, files in folders.items():
        for name, entry in files.items():
            path = "/".join(filter(None, (top.rstrip("/"), folder, name)))
            is_in_scope = not scope or any(f"{path}/".startswith(each) for each in scope)
            if is_in_scope and (touches.git_trees or has_revision or _differs(path, entry)):
                paths.append(path)
    secrets = [path for path in paths if is_secret(path.removeprefix(top))]
    # One more than the limit, so that the caller sees that there are too many.
    return [Path(path) for path in dict.fromkeys([*secrets, *paths][: BASH_FILES.value + 1])]


def _differs(path: str, entry: IndexEntry) -> bool:
    """Return whether a file may have changed since git's index recorded it."""
    try:
        return not entry.is_unchanged(os.lstat(path))
    except OSError:
        return True


def _is_guarded(name: str) -> bool:
    """Return whether files of that name, such as git hooks and CI workflows,
    decide what runs later.
    """
    return is_protected(name) or needs_confirmation(name)


def _is_changed(path: Path) -> bool:
    """Return whether writing to a path changes a file; a plain folder is only written into."""
    return is_protected(str(path)) or not path.is_dir()


def _drop_parents(folders: list[Path]) -> list[Path]:
    """Return the folders without the parents of others: `mkdir -p a/b` names both `a` and `a/b`."""
    parents = {folder.parent for folder in folders}
    return [folder for folder in folders if folder not in parents or not folder.is_dir()]


def _list_below(folders: list[Path], *, hidden: bool) -> list[Path]:
    """Return the files below folders, at most BASH_FILES and one.
    `hidden`: those whose names begin with a dot, too.
    """
    paths: list[Path] = []
    for folder in folders:
        for path in _walk(folder, hidden=hidden):
            paths.append(path)
            if len(paths) > BASH_FILES.value:
                return paths
    return paths


def _walk(folder: Path, *, hidden: bool) -> Iterator[Path]:
    for top, folders, files in os.walk(folder):
        folders[:] = [
            name for name in folders if name != ".git" and (hidden or not name.startswith("."))
        ]
        for name in files:
            if hidden or not name.startswith("."):
                yield Path(top, name)


def _find_protected(folder: Path) -> Iterator[Path]:
    """Yield the protected files and folders below a folder;
    the search ends after BASH_FILES entries.
    """
    if not folder.is_dir():
        return
    count = 0
    for top, folders, files in os.walk(folder):
        for name in (*folders, *files):
            count += 1
            if is_protected(str(Path(top, name).relative_to(folder))):
                yield Path(top, name)
        folders[:] = [name for name in folders if name != ".git"]
        if count > BASH_FILES.value:
            return
