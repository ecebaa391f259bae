"""The work tree that an agent works in: resolves paths, and holds the services that end with it."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from codeloop.kit.paths import expand_user_path
from codeloop.kit.text.undecodable import find_undecodable
from codeloop.schema.config import SandboxConfig
from codeloop.workspace.files.read_log import ReadLog
from codeloop.workspace.files.temp_files import RECORDS_FOLDER
from codeloop.workspace.tool_bounds import USUAL_BOUNDS

if TYPE_CHECKING:
    from codeloop.workspace.git.other_trees import OtherTrees
    from codeloop.workspace.process.background_jobs import Jobs
    from codeloop.workspace.process.program_sandboxes import ProgramSandboxes
    from codeloop.workspace.process.shells import Shells
    from codeloop.workspace.sandbox.paths.denied_paths import DenyRules
    from codeloop.workspace.search.file_index import FileIndex
    from codeloop.workspace.search.ripgrep import Ripgrep
    from codeloop.workspace.terminal.terminals import Terminals

# The start of the names of saved outputs (`files/saved_outputs.py`).
OUTPUT_PREFIX = "tool_"
UNCONFINED = SandboxConfig(mode="off")


class RunningService(Protocol):
    """A service that starts processes."""

    @property
    def is_busy(self) -> bool:
        """Whether any of its processes runs."""
        ...

    async def close(self) -> None:
        """End all of its processes."""
        ...


ServiceT = TypeVar("ServiceT", bound=RunningService)


class Ground:
    """The folder that is worked in: its path may lead to nothing later, or to another folder.

    It is held open during turns only: as long as a folder is open,
    who watches it is not told that it was removed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._holders = 0

    @contextmanager
    def hold(self) -> Generator[None]:
        """Keep the folder open, so that `find_loss` sees when another one takes its place."""
        self._holders += 1
        if self._descriptor is None:
            with suppress(OSError):
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield
        finally:
            self._holders -= 1
            if self._holders == 0 and self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def find_loss(self) -> str:
        """Return the reason why the folder is lost, a sentence for the model and the user;
        "": it is there.
        """
        try:
            now = self._path.stat()
        except OSError:
            return (
                f"{self._path} is not there any more: it was moved or deleted, or its disk is gone."
            )
        if self._descriptor is None:
            return ""
        before = os.fstat(self._descriptor)
        if (before.st_ino, before.st_dev) == (now.st_ino, now.st_dev):
            return ""
        # Some network file systems give a folder another number now and then, but its name stays.
        with suppress(OSError):
            if now.st_dev == before.st_dev and os.readlink(
                f"/proc/self/fd/{self._descriptor}"
            ) == str(self._path):
                return ""
        return f"{self._path} is another folder now: the one that was there was moved or deleted, or its disk is gone."


class ResolvedPath(Struct, frozen=True):
    """A resolved path argument of a tool.

    `path`: absolute, with `.` and `..` resolved but not links; `real`: with every symbolic link
    followed, even in the parents of a file that does not exist yet;
    `is_outside`: `real` is not in the work tree.
    """

    path: Path
    real: Path
    is_outside: bool


class _Extent(NamedTuple):
    """The folders of a work tree, all of them resolved.
    `own_inside`: those of codeloop in it, which don't count.
    """

    roots: tuple[Path, ...]
    scratch: Path
    own_inside: tuple[Path, ...]


class Workspace:
    """A work tree. `root`: its top (the repository's, or the directory itself).
    `directory`: where the agent works.

    `scratch`: the folder for complete outputs of tools,
    which need not be below `root` and does not count as outside;
    `environment`: of child processes, the user's own without any provider's key; `sandbox`: the
    configuration of the commands' sandbox; `own_folders`: those of codeloop, which no sandboxed
    command may read; `warn` shows a text to the user; `read_log`: shared by all sessions of the
    work tree; `rules`: those that bind programs which run for no session; `bounds`: of its tools,
    set before they are used; `sandbox_note`: what the model has to know of the sandbox on this
    machine, None: it was not examined yet.

    Its services (`shells`, `ripgrep`, ...) are imported and made when they are first used. `close`
    ends those that keep processes: `shells`, `program_sandboxes` and `terminals`.
    """

    def __init__(
        self,
        root: Path,
        directory: Path,
        scratch: Path,
        environment: dict[str, str],
        sandbox: SandboxConfig = UNCONFINED,
        own_folders: tuple[Path, ...] = (),
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.root = root
        self.directory = directory
        self.ground = Ground(directory)
        self.scratch = scratch
        self.environment = environment
        self.sandbox = sandbox
        self.own_folders = own_folders
        self.sandbox_note: str | None = None
        self._warn = warn
        self.read_log = ReadLog()
        self.rules: DenyRules | None = None
        self.bounds = USUAL_BOUNDS
        # Resolved now: if a folder of the path is replaced by a link later,
        # that link leads outside.
        roots = tuple(Path(os.path.realpath(path)) for path in (root, directory))
        real_own_folders = [Path(os.path.realpath(path)) for path in own_folders]
        own_inside = tuple(
            folder for folder in real_own_folders if any(root in folder.parents for root in roots)
        )
        self._extent = _Extent(roots, Path(os.path.realpath(scratch)), own_inside)
        self._services: list[RunningService] = []
        self.follow_jobs: Callable[[Jobs], None] = lambda _jobs: None
        """Called with the background commands before the first one is added."""

    @property
    def write_records_folder(self) -> Path:
        """The folder for records of writes in progress (`files/temp_files.py`)."""
        return self.scratch.with_name(RECORDS_FOLDER)

    @property
    def shells(self) -> "Shells":
        """The shells of the model's commands."""
        return self._shells

    @cached_property
    def _shells(self) -> "Shells":
        from codeloop.workspace.process.shells import Shells

        shells = self._close_later(Shells(self.bounds))
        shells.jobs.on_first = lambda jobs: self.follow_jobs(jobs)
        return shells

    @property
    def has_jobs(self) -> bool:
        """Whether any command was started in the background."""
        # Asking for the shells would make them.
        return "_shells" in vars(self) and not self._shells.jobs.is_empty

    @cached_property
    def program_sandboxes(self) -> "ProgramSandboxes":
        """The sandboxes of hooks, formatters, language servers and extensions that
        have one of their own.
        """
        from codeloop.workspace.process.program_sandboxes import ProgramSandboxes

        programs = "hooks, formatters, language servers and extensions"
        return self._close_later(ProgramSandboxes(self, self._warn, programs))

    @cached_property
    def terminals(self) -> "Terminals":
        """The terminals that clients opened."""
        from codeloop.workspace.terminal.terminals import Terminals

        return self._close_later(Terminals())

    @property
    def other_trees(self) -> "OtherTrees":
        """The other work trees of the repository, if this is a linked one."""
        return self._other_trees

    @cached_property
    def _other_trees(self) -> "OtherTrees":
        from codeloop.workspace.git.other_trees import OtherTrees

        return OtherTrees(self.root)

    @cached_property
    def ripgrep(self) -> "Ripgrep":
        """The search in files."""
        from codeloop.workspace.search.ripgrep import Ripgrep

        return Ripgrep()

    @cached_property
    def file_index(self) -> "FileIndex":
        """The names of the files, for searches by name."""
        from codeloop.workspace.search.file_index import FileIndex

        return FileIndex()

    def take_terminals(self, terminals: "Terminals") -> None:
        """Take over the terminals that the work tree before this one gave up."""
        self.terminals = self._close_later(terminals)

    def give_up_terminals(self) -> "Terminals":
        """Hand the terminals over to the work tree that replaces this one;
        closing this one spares them.
        """
        terminals = self.terminals
        self._services.remove(terminals)
        # So that this work tree makes new ones, should it still be asked: these
        # belong to the next one.
        del self.terminals
        return terminals

    def _close_later(self, service: ServiceT) -> ServiceT:
        """Have `close` end a service too; return the service."""
        self._services.append(service)
        return service

    @property
    def is_busy(self) -> bool:
        """Whether a service has a process that runs: a background command or a terminal."""
        return any(service.is_busy for service in self._services)

    async def rest(self) -> None:
        """End the processes that wait for a next command, which starts them anew."""
        # Asking for them would make them.
        if "_shells" in vars(self):
            is_empty = await self._shells.sandboxes.rest()
            if is_empty and self._shells.launcher.is_idle:
                await self._shells.launcher.close()
        if "program_sandboxes" in vars(self):
            await self.program_sandboxes.rest()

    async def close(self) -> None:
        """End all processes of the services."""
        for service in self._services:
            await service.close()

    def resolve(self, path: str, base: Path | None = None) -> ResolvedPath:
        """Resolve a path as the model wrote it: absolute, relative to `base` (the directory),
        or with `~`.

        The name of a saved output (`tool_12ab34cd`) leads to it,
        unless there is a file of that name. Bytes
        that are not UTF-8 may be written out, as results show them.
        """
        absolute = Path(
            find_undecodable(os.path.normpath((base or self.directory) / expand_user_path(path)))
        )
        if path.startswith(OUTPUT_PREFIX) and "/" not in path and not os.path.lexists(absolute):
            saved_output = self.scratch / path
            absolute = saved_output if os.path.lexists(saved_output) else absolute
        real = Path(os.path.realpath(absolute))
        return ResolvedPath(absolute, real, not self.contains(real))

    def contains(self, real: Path) -> bool:
        """Return whether a fully resolved path lies in the work tree or the scratch folder.

        Our own folders inside a work tree don't count.
        """
        folders, extent = (real, *real.parents), self._extent
        if extent.scratch in folders:
            return True
        is_below_root = any(root in folders for root in extent.roots)
        return is_below_root and not any(each in folders for each in extent.own_inside)

    def format_for_user(self, path: Path) -> str:
        """Format a path for users: relative to the root if it is below it (""
        for the root itself).
        """
        return _relative_to(path, self.root)

    def format_for_model(self, path: Path) -> str:
        """Format a path for the model: relative to the directory if it is
        below it ("." for itself).

        For a saved output, its name alone.
        """
        if path.parent == self.scratch and path.name.startswith(OUTPUT_PREFIX):
            return path.name
        return _relative_to(path, self.directory) or "."


def _relative_to(path: Path, folder: Path) -> str:
    """Return the path relative to a folder ("" for itself), as it is when it lies elsewhere."""
    for start in (folder, Path(os.path.realpath(folder))):
        if path.is_relative_to(start):
            return "" if path == start else str(path.relative_to(start))
    return str(path)
