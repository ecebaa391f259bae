"""The directory that an agent works in, path resolution, and the parts that live as long as it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from msgspec import Struct

from codeloop.kit.small_files import from_home
from codeloop.schema.config import SandboxConfig
from codeloop.workspace.files.read_log import ReadLog
from codeloop.workspace.files.temp_files import FOLDER

T = TypeVar("T")
OUTPUT = "tool_"
"""The start of the names of saved outputs."""
UNCONFINED = SandboxConfig(mode="off")


@runtime_checkable
class Running(Protocol):
    """A part of a work tree that starts processes."""

    @property
    def is_busy(self) -> bool:
        """Return whether any of them runs."""
        ...

    async def close(self) -> None:
        """End them all."""
        ...


class ResolvedPath(Struct, frozen=True):
    """A resolved path argument of a tool.

    `path`: absolute, as named (`.` and `..` folded). `real`: with every symbolic link followed, also of the parents
    of a file that does not exist yet. `outside`: `real` is not below the workspace.
    """

    path: Path
    real: Path
    is_outside: bool


class Workspace:
    """A work tree. `root`: its top (the repository's, or the directory itself). `directory`: where the agent works.

    `scratch` is the folder for whole outputs of tools, which `root` need not contain; reading there is not outside.
    `environment` is what child processes get: the user's own without any provider's key.
    `sandbox`: the configuration of the commands' sandbox; `own`: our folders, which no sandboxed command may read.
    `read_log` knows what each session has read; one for all that share the work tree.
    """

    def __init__(
        self,
        root: Path,
        directory: Path,
        scratch: Path,
        environment: dict[str, str],
        sandbox: SandboxConfig = UNCONFINED,
        own: tuple[Path, ...] = (),
    ) -> None:
        self.root = root
        self.directory = directory
        self.scratch = scratch
        self.environment = environment
        self.sandbox = sandbox
        self.own = own
        self.read_log = ReadLog()
        # Where the folders really are when they are opened: one that is replaced by a link later on leads outside.
        self._roots = tuple(Path(os.path.realpath(place)) for place in (root, directory))
        self._scratch = Path(os.path.realpath(scratch))
        folders = [Path(os.path.realpath(place)) for place in own]
        self._inner = tuple(folder for folder in folders if any(top in folder.parents for top in self._roots))
        self._parts: dict[type, Any] = {}
        self._announced: dict[str, Callable[[], object]] = {}

    @property
    def notes(self) -> Path:
        """Our folder for records of writes in progress."""
        return self.scratch.with_name(FOLDER)

    def shared(self, kind: type[T]) -> T:
        """Return this work tree's instance of `kind` (its `Shells`, its `Ripgrep`), created at first use.

        So its module is imported by the tools that use it, and by nobody else.
        """
        if kind not in self._parts:
            self._parts[kind] = kind()
        return self._parts[kind]

    def part(self, kind: type[T]) -> T | None:
        """Return this work tree's instance of `kind` if it exists or was announced, else None."""
        if make := self._announced.pop(kind.__name__, None):
            self.adopt(make())
        return self._parts.get(kind)

    def made(self, name: str) -> Any:
        """Return the part whose class has this name, None where it was not needed yet."""
        return next((part for kind, part in self._parts.items() if kind.__name__ == name), None)

    def announce(self, name: str, make: Callable[[], object]) -> None:
        """Register how to make the part of this class name at first use: until then nothing is imported."""
        self._announced[name] = make

    def give_up(self, kind: type[T]) -> T:
        """Hand a part over to the work tree that replaces this one; closing this one spares it."""
        given = self.shared(kind)
        del self._parts[kind]
        return given

    def adopt(self, part: object) -> None:
        """Take over a part from another work tree's `give_up`."""
        self._parts[type(part)] = part

    @property
    def is_busy(self) -> bool:
        """Return whether something runs here beside turns."""
        return any(part.is_busy for part in self._running())

    async def close(self) -> None:
        """End what runs here."""
        for part in self._running():
            await part.close()

    def _running(self) -> list[Running]:
        return [part for part in self._parts.values() if isinstance(part, Running)]

    def resolve(self, path: str, base: Path | None = None) -> ResolvedPath:
        """Resolve a path as the model wrote it: absolute, relative to `base` (the directory), or with `~`.

        The name of a saved output (`tool_12ab34cd`) leads to it, unless there is a file of that name.
        """
        named = Path(os.path.normpath((base or self.directory) / from_home(path)))
        if path.startswith(OUTPUT) and "/" not in path and not os.path.lexists(named):
            saved = self.scratch / path
            named = saved if os.path.lexists(saved) else named
        real = Path(os.path.realpath(named))
        return ResolvedPath(named, real, not self.contains(real))

    def contains(self, real: Path) -> bool:
        """Return whether a fully resolved path lies in the work tree or the scratch folder.

        Our own folders inside a work tree don't count.
        """
        if real == self._scratch or self._scratch in real.parents:
            return True
        above = (real, *real.parents)
        return any(root in above for root in self._roots) and not any(folder in above for folder in self._inner)

    def relative(self, path: Path) -> str:
        """Return the path for users: relative to the root when it is below it ("" for the root itself)."""
        return _below(path, self.root)

    def shorten(self, path: Path) -> str:
        """Return the path for the model: relative to the directory when it is below it ("." for itself).

        Of a saved output the name.
        """
        if path.parent == self.scratch and path.name.startswith(OUTPUT):
            return path.name
        return _below(path, self.directory) or "."


def _below(path: Path, folder: Path) -> str:
    """Return the path relative to a folder ("" for itself), as it is when it lies elsewhere."""
    for start in (folder, Path(os.path.realpath(folder))):
        if path.is_relative_to(start):
            return "" if path == start else str(path.relative_to(start))
    return str(path)
