"""What a sandboxed command may read and write: the settings, the rows of `locations` and this project, put together."""

import fnmatch
import itertools
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from codeloop.kit.guarded_paths import PLAIN_NAMES, SECRET_FOLDERS, SECRET_NAMES
from codeloop.kit.processes import OWN_PROGRAMS, which
from codeloop.schema.config import SandboxConfig
from codeloop.schema.limits import SANDBOX_FOLDERS
from codeloop.workspace.sandbox.locations import (
    CACHES,
    GIT_NAMES,
    OWN_NAMES,
    SKIPPED,
    SOCKETS,
    SYSTEM_SECRETS,
    TEST_FOLDERS,
    TOKEN_FILES,
)

_KEY_FILES, _STORES = (".pem", ".key"), (".jks", ".keystore")
_SECRET, _PLAIN = (
    re.compile("|".join(map(fnmatch.translate, names)), re.IGNORECASE) for names in (SECRET_NAMES, PLAIN_NAMES)
)
_TOKENS = {name.rpartition("/")[2]: token for name, token in TOKEN_FILES.items()}
_SECRET_TOPS = frozenset(name.partition("/")[0] for name in SECRET_FOLDERS)
_REPLACED = tuple(f"/{name}/" for name in ("tmp", "var/tmp", "run", "dev", "proc"))
_FRESH = 10.0  # seconds
_NEIGHBOURS = 500  # files beside one that was granted
_HEAD = 4096  # bytes in which a private key says that it is one


class SandboxPolicy(Struct, frozen=True):
    """What commands in one sandbox may do. Every path is absolute, without links, and there; but those in `absent`.

    `writable`: folders and files; `protected`: what below them may only be read; `visible`: seen wherever it lies;
    `hidden`: unreadable; `absent`: may not appear, unless it is in `granted`. `network`: of the machine, none, or by
    host through the proxy.
    """

    writable: tuple[Path, ...]
    protected: tuple[Path, ...]
    visible: tuple[Path, ...]
    hidden: tuple[Path, ...]
    absent: tuple[Path, ...]
    network: Literal["off", "on", "hosts"]
    hosts: tuple[str, ...]
    granted: tuple[Path, ...] = ()

    @property
    def has_secrets(self) -> bool:
        """Return whether something is hidden in what may be written: not every kind of sandbox can do that."""
        return any(path.is_relative_to(folder) for path in self.hidden for folder in self.writable)


class SandboxGrants(Struct, frozen=True):
    """What a person or a rule allowed for one command: places to write, secrets to read. Paths without links."""

    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()


NOTHING = SandboxGrants()


class SandboxPlace(Struct, frozen=True):
    """What a policy is made for. `own`: our folders, of which `scratch` alone may be read. `home`: the person's."""

    root: Path
    directory: Path
    scratch: Path
    environment: Mapping[str, str]
    own: tuple[Path, ...] = ()

    @property
    def home(self) -> Path:
        """The home directory."""
        return Path(self.environment.get("HOME") or "/nonexistent")


class Policies:
    """Makes the policies of one work tree. What lies outside the project is looked at again after a while only."""

    def __init__(self, place: SandboxPlace, config: SandboxConfig) -> None:
        self._place = place
        self.config = config
        self._roots = list(dict.fromkeys(_real(path) for path in (place.root, place.directory)))
        self._looked = -_FRESH
        self._programs: list[int] = []
        self._caches: list[Path] = []
        self._hidden: set[Path] = set()

    def policy(self, grants: SandboxGrants = NOTHING) -> SandboxPolicy:
        """Return the policy of one command. Looks at the disk; makes absent caches and granted files."""
        place, roots = self._place, self._roots
        self._look()
        git = [_real(path) for path in _git_folders(place.root)]
        guarded = [folder / name for folder in git for name in GIT_NAMES]
        guarded += [root / name for root in roots for name in OWN_NAMES]
        guarded += [root / ".git" for root in roots if (root / ".git").is_file()]
        # What has become a link since it was allowed would lead to somewhere else.
        granted = [path for path in grants.writable if _real(path) == path]
        opened, neighbours = _opened(granted, guarded, (*roots, *git, *self._caches), _real(place.home))
        free = {*granted, *(path for path in grants.readable if _real(path) == path)}
        hidden = self._hidden | {path for root in roots for path in _secrets(root)}
        hidden -= free
        shown = [path for path in free if any(path.is_relative_to(each) for each in hidden)]
        seen = (place.home, place.scratch, *map(Path, place.environment.get("PATH", "").split(os.pathsep)))
        return SandboxPolicy(
            writable=tuple(_there((*roots, *git, *self._caches, *opened))),
            protected=tuple(_there((*(path for path in map(_kept, guarded) if path not in free), *neighbours))),
            visible=tuple(_there((*(_real(path) for path in seen if path.is_absolute()), *shown))),
            hidden=tuple(_outermost(_there(hidden))),
            absent=tuple(path for path in guarded if not os.path.lexists(path)),
            granted=tuple(granted),
            network=self.config.network,
            hosts=tuple(self.config.hosts),
        )

    def _look(self) -> None:
        programs = [_changed(folder) for folder in self._own_programs() if folder not in self._roots]
        if time.monotonic() - self._looked < _FRESH and programs == self._programs:
            return
        place, home = self._place, _real(self._place.home)
        configured = [_expanded(path, place) for path in self.config.writable]
        self._caches = [_real(path) for path in (*configured, *_caches(place, self._own_programs()))]
        named = [*place.own, *(_expanded(path, place) for path in self.config.hidden), *map(Path, SYSTEM_SECRETS)]
        reached = [path for path in _bound() if not str(path).startswith(_REPLACED) or path.is_relative_to(home)]
        reached = [path for path in reached if not any(map(path.is_relative_to, self._roots))]
        found = {_real(path) for path in (*named, *_credentials(home), *_sockets(place.environment), *reached)}
        # What holds the project or the home can't be hidden from who works there.
        self._hidden = {path for path in found if not any(each.is_relative_to(path) for each in (*self._roots, home))}
        self._looked = time.monotonic()
        self._programs = programs

    def _own_programs(self) -> list[Path]:
        return [root / name for root in self._roots for name in (".", *OWN_PROGRAMS)]


def _changed(folder: Path) -> int:
    """Return when something was added to a folder; 0 when it is not there."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


def _opened(
    granted: Iterable[Path], guarded: Sequence[Path], writable: Sequence[Path], home: Path
) -> tuple[list[Path], list[Path]]:
    """Return what becomes writable for what was granted, and what of that is protected.

    An absent one in a plain folder below the home opens that folder, so that folders and links can be made there, too;
    what is in it already is protected. Elsewhere an empty file is made for it.
    """
    opened: dict[Path, None] = {}
    neighbours: dict[Path, None] = {}
    granted = list(granted)
    for path in granted:
        guard = next((each for each in guarded if path.is_relative_to(each)), None)
        if guard is not None:
            if path == guard or not os.path.lexists(guard):
                continue  # in the project, where it may change now
        elif any(path.is_relative_to(each) for each in writable):
            continue
        if not os.path.lexists(path):
            above = next(folder for folder in path.parents if folder.is_dir())
            if _is_plain(above, home):
                opened[above] = None
                neighbours |= dict.fromkeys(_neighbours(above))
                continue
            try:
                path.touch()
            except OSError:
                continue
        opened[path] = None
    free = [*granted, *writable]
    return list(opened), [each for each in neighbours if not _touches(each, free)]


def _touches(path: Path, free: Iterable[Path]) -> bool:
    """Return whether a path is one of those that may be written, lies below one, or is a link."""
    return path.is_symlink() or any(path.is_relative_to(each) for each in free)


def _is_plain(folder: Path, home: Path) -> bool:
    """Return whether a folder lies below the home, not below one that is hidden there: where people keep their work."""
    if folder == home or not folder.is_relative_to(home):
        return False
    return not any(part.startswith(".") for part in folder.relative_to(home).parts)


def _neighbours(folder: Path) -> list[Path]:
    """Return what lies in a folder, as far as it can be protected one by one."""
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in itertools.islice(entries, _NEIGHBOURS)]
    except OSError:
        return []


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _kept(path: Path) -> Path:
    """Return a path whose parents are real; a link at its end is itself what must not change."""
    return _real(path.parent) / path.name if not path.is_symlink() else _real(path)


def _there(paths: Iterable[Path]) -> list[Path]:
    """Return those that exist, each once, in their order."""
    return [path for path in dict.fromkeys(paths) if os.access(path, os.F_OK)]


def _outermost(paths: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for path in sorted(paths):
        if not found or not path.is_relative_to(found[-1]):
            found.append(path)
    return found


def _expanded(path: str, place: SandboxPlace) -> Path:
    """Return a path of the configuration: absolute, from the home with `~`, or else from the project's root."""
    return place.home / path[2:] if path.startswith("~/") else place.root / path


def _git_folders(root: Path) -> Iterator[Path]:
    """Yield the git directories of a work tree and of its submodules, wherever they really are."""
    top = root / ".git"
    if top.is_file():
        try:
            named = top.read_text(encoding="utf-8", errors="surrogateescape").removeprefix("gitdir:").strip()
        except OSError:
            return
        top = _real(root / named)
        if not (top / "HEAD").is_file():
            return  # not what git takes for one: nothing outside becomes writable because of it
    if not top.is_dir():
        return
    yield top
    common = top / "commondir"
    if common.is_file():
        try:
            shared = _real(top / common.read_text(encoding="utf-8", errors="surrogateescape").strip())
        except OSError:
            return
        if (shared / "HEAD").is_file() and top.parent == shared / "worktrees":
            yield shared
            top = shared
    waiting = [top / "modules"]
    while waiting:
        folder = waiting.pop()
        for each in _folders(folder):
            if (each / "HEAD").is_file():
                yield each
                waiting.append(each / "modules")
            else:
                waiting.append(each)


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _caches(place: SandboxPlace, own: Iterable[Path]) -> Iterator[Path]:
    """Yield the folders that the tools of this machine and of the project (`own`) fill, made when they are absent."""
    own = list(own)
    path = place.environment.get("PATH")
    installed: dict[str, bool] = {}
    for cache in CACHES:
        if cache.program not in installed:
            here = (folder / cache.program for folder in own)
            installed[cache.program] = which(cache.program, path) is not None or any(map(_is_program, here))
        given = place.environment.get(cache.variable, "") if cache.variable else ""
        base = place.environment.get("XDG_CACHE_HOME", "")
        if given.startswith("/"):
            folder = Path(given)
        elif base.startswith("/") and cache.folder.startswith(".cache/"):
            folder = Path(base) / cache.folder.removeprefix(".cache/")
        else:
            folder = place.home / cache.folder
        if installed[cache.program] and not os.access(folder, os.F_OK) and os.access(place.home, os.W_OK):
            try:
                folder.mkdir(parents=True)
            except OSError:
                continue
        # A cache that leads elsewhere, or holds the home, is not one.
        if os.access(folder, os.W_OK) and not _real(place.home).is_relative_to(_real(folder)):
            yield folder


def _is_program(path: Path) -> bool:
    return os.access(path, os.X_OK)


def _credentials(home: Path) -> Iterator[Path]:
    yield from (home / name for name in SECRET_FOLDERS)
    yield from (home / name for name, token in TOKEN_FILES.items() if _holds(home / name, token))
    try:
        with os.scandir(home) as entries:
            names = [entry.name for entry in entries if _SECRET.fullmatch(entry.name) and entry.is_file()]
    except OSError:
        return
    yield from (home / name for name in names if _is_secret(name, home / name))


def _holds(path: Path, token: bytes) -> bool:
    """Return whether a file holds a token."""
    try:
        with path.open("rb") as file:
            return re.search(token, file.read(_HEAD * 16)) is not None
    except OSError:
        return False


def _bound() -> Iterator[Path]:
    """Yield the socket of every program that serves one here: what lies where it may be read could be connected to."""
    try:
        with Path("/proc/net/unix").open(encoding="utf-8", errors="surrogateescape") as rows:
            places = [row.rstrip("\n").split(None, 7)[7:] for row in rows]
    except OSError:
        return
    yield from {
        Path(place[0]) for place in places if place and place[0].startswith("/") and os.access(place[0], os.W_OK)
    }


def _sockets(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the sockets that variables lead to."""
    for name in SOCKETS:
        path = environment.get(name, "").rpartition("unix:")[2].removeprefix("path=").removeprefix("//").split(",")[0]
        if path.startswith("/"):
            yield Path(path)


def _secrets(root: Path) -> Iterator[Path]:
    """Yield the files of a project that hold secrets, by their names; of a large project, those near its top."""
    waiting = [root]
    for folder in waiting:
        try:
            with os.scandir(folder) as entries:
                rows = [(entry.name, Path(entry.path), entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError:
            continue
        for name, path, is_folder in rows:
            if name in _SECRET_TOPS:
                yield from (_real(place) for each in SECRET_FOLDERS if (place := folder / each).exists())
            if is_folder:
                if name not in SKIPPED and len(waiting) < SANDBOX_FOLDERS.value:
                    waiting.append(path)
            elif _is_secret(name, path):
                yield _real(path)


def _is_secret(name: str, path: Path) -> bool:
    """Return whether a file is secret by its name; of those that tools need, or that tests have, by what it holds."""
    if not _SECRET.fullmatch(name) or _PLAIN.fullmatch(name):
        return False
    if name in _TOKENS:
        return _holds(path, _TOKENS[name])
    if name.endswith(_STORES):
        return not TEST_FOLDERS & set(path.parts)
    return not name.endswith(_KEY_FILES) or (_holds(path, b"PRIVATE KEY") and not TEST_FOLDERS & set(path.parts))
