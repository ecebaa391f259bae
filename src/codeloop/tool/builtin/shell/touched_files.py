"""Resolves the paths that a shell line touches on this machine: links followed, globs expanded."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from codeloop.kit.guarded_paths import is_confirmed, is_protected, is_secret
from codeloop.kit.small_files import from_home
from codeloop.kit.wildcard import ANY, matches
from codeloop.permission.shell.paths import GIT_TOP, Touches
from codeloop.permission.shell.touches.spelling import ANYWHERE
from codeloop.permission.shell.touches.unknown_words import names_path
from codeloop.schema.limits import BASH_FILES
from codeloop.schema.wire import replace
from codeloop.workspace.git.index import read_tracked_files
from codeloop.workspace.workspace import Workspace

_HOOKS = Path(".git", "hooks", "*")
"""Stands for any protected file where the written path is unknown."""


class TouchedFiles(Struct, frozen=True):
    """What a line touches, as resolved paths.

    `named`: every place; `reads` and `writes`: files whose content is read, files that are changed; `below`: files that
    are read with their folder; `objects`: tracked files that git prints; `fills`: folders in which anything may be
    changed; `unseen`: protected names that what is unpacked or copied may have. `is_uncertain`: where something lies
    is only known later; `may_read`, `may_write`: and it may be any file.
    """

    named: tuple[Path, ...]
    reads: tuple[Path, ...]
    below: tuple[Path, ...]
    writes: tuple[Path, ...]
    fills: tuple[Path, ...]
    objects: tuple[Path, ...]
    unseen: tuple[Path, ...]
    is_uncertain: bool
    may_read: bool
    may_write: bool

    def map_paths(self, resolve: Callable[[Path], Path | None]) -> "TouchedFiles":
        """Return a copy with the paths mapped by `meant` (None drops one), for a sandbox that sees other files."""
        fields = ("named", "reads", "below", "writes", "fills", "unseen")
        mapped = {name: filter(None, map(resolve, getattr(self, name))) for name in fields}
        return replace(self, **{name: tuple(dict.fromkeys(paths)) for name, paths in mapped.items()})


def find_touched(touches: Touches, directory: Path, workspace: Workspace) -> TouchedFiles:
    """Resolve what a line touches when run in a directory. Reads the disk."""
    resolver = _PathResolver(directory, workspace)
    reads = resolver.find_paths(touches.reads)
    perhaps = [path for text in touches.perhaps for path in resolver.perhaps(text)]
    searches, browses = resolver.find_paths(touches.searches), resolver.find_paths(touches.browses)
    writes = resolver.find_paths(touches.writes, for_writing=True)
    folders = resolver.find_paths(touches.fills, for_writing=True)
    writes += [path for path in folders if _is_guarded(workspace.relative(path))]  # anything in it may be changed
    fills = _drop_parents(folders)
    unseen = [folder / _HOOKS for folder in resolver.find_paths(touches.unpacks, for_writing=True)]
    copies = [path.relative_to(folder) for folder in searches for path in _find_protected(folder)] if fills else []
    unseen += [folder / name for folder in fills for name in copies]
    wholes = [path for folder in resolver.find_paths(touches.wholes) for path in _find_protected(folder)]
    below = [*_list_below(searches, hidden=True), *_list_below(browses, hidden=False)]
    names = resolver.find_paths(touches.names)
    is_uncertain = ANYWHERE in (*touches.reads, *touches.searches, *touches.browses, *touches.writes, *touches.names)
    objects = _list_printed_by_git(touches, resolver)
    is_full = resolver.is_full or max(len(below), len(objects)) > BASH_FILES.value
    return TouchedFiles(
        named=tuple(dict.fromkeys([directory, *names, *reads, *perhaps, *searches, *browses, *writes, *fills])),
        reads=tuple(dict.fromkeys([*reads, *perhaps, *searches, *browses])),
        below=tuple(dict.fromkeys(below[: BASH_FILES.value])),
        writes=tuple(dict.fromkeys([*(path for path in writes if _is_changed(path)), *wholes])),
        fills=tuple(dict.fromkeys([*fills, *(path for path in resolver.find_paths(touches.wholes) if path.is_dir())])),
        objects=tuple(objects),
        unseen=tuple(dict.fromkeys(unseen)),
        is_uncertain=is_uncertain or resolver.is_full,
        may_read=is_full or is_uncertain or ANYWHERE in touches.perhaps,
        may_write=resolver.is_full
        or resolver.has_option
        or ANYWHERE in (*touches.writes, *touches.fills, *touches.wholes),
    )


class _PathResolver:
    """Where a line runs. `is_full`: a glob stood for too many files; `has_option`: for one that reads as an option."""

    def __init__(self, directory: Path, workspace: Workspace) -> None:
        self.directory = directory
        self.top = workspace.root
        self.is_full = False
        self.has_option = False

    def find_paths(self, texts: Iterable[str], *, for_writing: bool = False) -> list[Path]:
        """Return the paths of texts, without those only known at run time."""
        paths: dict[Path, None] = {}
        for text in texts:
            if text == ANYWHERE:
                continue
            if ANY not in text:
                paths[self.real(text)] = None
                continue
            expanded = self._expand(text)
            paths |= dict.fromkeys(expanded)
            if for_writing:  # the name may be a new one
                paths[self.real(text.replace(ANY, "_"))] = None
        return list(paths)

    def perhaps(self, text: str) -> list[Path]:
        """Return the paths of an unknown program's word, if it may be one."""
        return [
            path
            for path in self.find_paths([text])
            if names_path(text) or is_secret(text) or (os.path.lexists(path) and not path.is_dir())
        ]

    def real(self, text: str) -> Path:
        """Resolve a path as the system does: links are followed before `..`."""
        if text.startswith(GIT_TOP):
            return Path(os.path.realpath(self.top / text.removeprefix(GIT_TOP).lstrip("/")))
        return Path(os.path.realpath(self.directory / from_home(text)))

    def _expand(self, text: str) -> list[Path]:
        parts = text.split("/")
        first = next(index for index, part in enumerate(parts) if ANY in part)
        start = "/".join(parts[:first]) + "/" if first else ""
        folders = [self.real(start or ".")]
        for part in parts[first:]:
            if ANY in part:
                pattern = part.replace(ANY, "*")
                names = [(folder, name) for folder in folders for name in _match_names(folder, pattern)]
                self.has_option = self.has_option or (not start and any(name.startswith("-") for _, name in names))
                folders = [Path(os.path.realpath(folder / name)) for folder, name in names[: BASH_FILES.value]]
                self.is_full = self.is_full or len(names) > BASH_FILES.value
            else:
                folders = [Path(os.path.realpath(folder / part)) for folder in folders]
        return [path for path in folders if os.path.lexists(path)]


def _match_names(folder: Path, pattern: str) -> list[str]:
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:
        return []
    return [name for name in names if matches(name, pattern) and (pattern.startswith(".") or not name.startswith("."))]


def _list_printed_by_git(touches: Touches, resolver: _PathResolver) -> list[Path]:
    """Return the tracked files that git prints, those with keys first: all of them, or only changed ones."""
    if not touches.objects and not touches.changes:
        return []
    top = str(resolver.real(GIT_TOP))
    words = resolver.find_paths(touches.revisions)
    limits = [path for path in words if os.path.lexists(path)]
    has_revision = len(limits) < len(words) or ANYWHERE in touches.revisions
    scope = [
        f"{str(path).rstrip('/')}/" for path in limits or resolver.find_paths((*touches.objects, *touches.changes))
    ]
    folders = read_tracked_files(Path(top))
    paths: list[str] = []
    for folder, files in folders.items():
        for name, entry in files.items():
            path = "/".join(filter(None, (top.rstrip("/"), folder, name)))
            is_meant = not scope or any(f"{path}/".startswith(each) for each in scope)
            if is_meant and (touches.objects or has_revision or _differs(path, entry)):
                paths.append(path)
    secrets = [path for path in paths if is_secret(path.removeprefix(top))]
    return [Path(path) for path in dict.fromkeys([*secrets, *paths][: BASH_FILES.value + 1])]


def _differs(path: str, entry: Any) -> bool:
    try:
        return not entry.same(os.lstat(path))
    except OSError:
        return True


def _is_guarded(name: str) -> bool:
    return is_protected(name) or is_confirmed(name)


def _is_changed(path: Path) -> bool:
    """Return whether writing to a path changes a file; a plain folder is only written into."""
    return is_protected(str(path)) or not path.is_dir()


def _drop_parents(folders: list[Path]) -> list[Path]:
    """Leave out the parents of other new folders."""
    parents = {folder.parent for folder in folders}
    return [folder for folder in folders if folder not in parents or not folder.is_dir()]


def _list_below(folders: list[Path], *, hidden: bool) -> list[Path]:
    paths: list[Path] = []
    for folder in folders:
        for path in _walk(folder, hidden=hidden):
            paths.append(path)
            if len(paths) > BASH_FILES.value:
                return paths
    return paths


def _walk(folder: Path, *, hidden: bool) -> Iterator[Path]:
    for top, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git" and (hidden or not name.startswith("."))]
        for name in files:
            if hidden or not name.startswith("."):
                yield Path(top, name)


def _find_protected(folder: Path) -> Iterator[Path]:
    """Yield the protected files and folders that are lost with a folder."""
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
