"""The directory that an agent works in, and how its paths are resolved."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from codeloop.workspace.files.read_log import ReadLog
from codeloop.workspace.files.temp_files import FOLDER
from codeloop.workspace.process.shells import Shells
from codeloop.workspace.search.file_index import FileIndex
from codeloop.workspace.search.ripgrep import Ripgrep


class Target(Struct, frozen=True):
    """A path that a tool was given, resolved.

    `path`: absolute, as named (`.` and `..` folded). `real`: with every symbolic link followed, also of the parents
    of a file that does not exist yet. `outside`: `real` is not below the workspace.
    """

    path: Path
    real: Path
    outside: bool


@dataclass(frozen=True)
class Workspace:
    """A work tree. `root`: its top (the repository's, or the directory itself). `directory`: where the agent stands.

    `scratch` is the folder for whole outputs of tools, which `root` need not contain; reading there is not outside.
    `environment` is what child processes get: the user's own without any provider's key.
    `read_log` knows what each session has read; one for all that share the work tree.
    """

    root: Path
    directory: Path
    scratch: Path
    environment: dict[str, str]
    read_log: ReadLog = field(default_factory=ReadLog, compare=False, repr=False)
    shells: Shells = field(default_factory=Shells, compare=False, repr=False)
    ripgrep: Ripgrep = field(default_factory=Ripgrep, compare=False, repr=False)
    names: FileIndex = field(default_factory=FileIndex, compare=False, repr=False)

    @property
    def notes(self) -> Path:
        """Our folder for notes of writes under way."""
        return self.scratch.with_name(FOLDER)

    _roots: tuple[Path, ...] = field(init=False, compare=False, repr=False)
    """Where the folders really are when they are opened: one that is replaced by a link later on leads outside."""

    def __post_init__(self) -> None:
        """Find out where the folders really are."""
        roots = tuple(Path(os.path.realpath(place)) for place in (self.root, self.directory, self.scratch))
        object.__setattr__(self, "_roots", roots)

    def resolve(self, path: str, base: Path | None = None) -> Target:
        """Resolve a path as the model wrote it: absolute, relative to `base` (the directory), or with `~`."""
        try:
            given = Path(path).expanduser()
        except RuntimeError:
            given = Path(path)  # `~name` of nobody stays as it is
        named = Path(os.path.normpath((base or self.directory) / given))
        real = Path(os.path.realpath(named))
        return Target(named, real, not self.contains(real))

    def contains(self, real: Path) -> bool:
        """Return whether a fully resolved path lies in the work tree or the scratch folder."""
        return any(real == root or root in real.parents for root in self._roots)

    def relative(self, path: Path) -> str:
        """Return the path as people read it: relative to the root when it is below it ("" for the root itself)."""
        return _below(path, self.root)

    def shown(self, path: Path) -> str:
        """Return the path as a model reads it: relative to the directory when it is below it ("." for itself)."""
        return _below(path, self.directory) or "."


def _below(path: Path, folder: Path) -> str:
    """Return the path relative to a folder ("" for itself), as it is when it lies elsewhere."""
    for start in (folder, Path(os.path.realpath(folder))):
        if path.is_relative_to(start):
            return "" if path == start else str(path.relative_to(start))
    return str(path)
