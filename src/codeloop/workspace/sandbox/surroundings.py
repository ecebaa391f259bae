"""What a sandboxed command sees outside the project: tools, settings without tokens, caches, and no key.

The disk is read once, and again when one of the watched folders changes; not for each command.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

import codeloop
from codeloop.kit.processes import PROJECT_PROGRAM_FOLDERS
from codeloop.kit.small_files import read_start
from codeloop.workspace.sandbox.home_paths import (
    BASE_FOLDERS,
    CACHES,
    CLONES,
    FOLDER_VARIABLES,
    INSTALL_MARKERS,
    NPM_SETTINGS,
    PROGRAMS,
    SETTINGS,
    TOOLS,
)
from codeloop.workspace.sandbox.restricted_paths import DATA, SOCKETS, SYSTEM, SYSTEM_SECRETS, TOKEN_FILES
from codeloop.workspace.sandbox.secret_files import (
    find_home_secrets,
    find_shallow_secrets,
    holds_token,
)

_TEMPORARY = tuple(Path("/", name) for name in ("tmp", "var/tmp", "run"))
_WITHOUT_SOCKETS = (*_TEMPORARY, Path("/dev"), Path("/proc"))
"""Replaced folders, in which no socket of another program is reachable."""
_SYSTEM = ("/usr/", "/bin/", "/sbin/", "/etc/", "/lib/")
_OWN_PROGRAM = [Path(each) for each in (sys.prefix, sys.base_prefix, sys.executable)] + [Path(codeloop.__file__).parent]
"""The launcher's code: bubblewrap starts it anew inside."""
_SHARED_NPM = (Path("/usr/local/etc/npmrc"), Path("/usr/etc/npmrc"))
_MAX_LINKS = 500
"""Links in a folder of programs that are followed to their targets; further ones are not."""
_SETTINGS_BYTES = 64 * 1024
"""Bytes of a `pyvenv.cfg` that are read; usual ones have some hundred."""
_SECRETS_DEPTH = 2
"""Levels of folders below the top of an installed tool that are searched for secret files."""


class Surroundings(Struct, frozen=True):
    """The visible and hidden paths outside a project. Every path is absolute, resolved, and exists.

    `home`: the folder that a private one replaces, None where the project contains it (`holds_home`). `replaced`:
    folders that look empty but for `visible` and `links`, each with its target. `layered`: caches; `writable`: what the
    configuration opens; `hidden`: what can't be read.
    """

    home: Path | None
    holds_home: bool
    replaced: tuple[Path, ...]
    visible: tuple[Path, ...]
    links: tuple[tuple[Path, str], ...]
    layered: tuple[Path, ...]
    writable: tuple[Path, ...]
    hidden: frozenset[Path]


class SurroundingsInput(Struct, frozen=True):
    """The input of `find_surroundings`. `roots`: the project's folders; `own`: those of ours, never to be seen.

    `writable`, `readable`, `hidden`: what the configuration names, absolute.
    """

    roots: tuple[Path, ...]
    home: Path
    environment: Mapping[str, str]
    own: tuple[Path, ...]
    scratch: Path
    writable: tuple[Path, ...]
    readable: tuple[Path, ...]
    hidden: tuple[Path, ...]


def find_surroundings(surroundings_input: SurroundingsInput) -> Surroundings:
    """Find the tools, settings and caches outside a project. Looks at the disk."""
    home = resolve_links(surroundings_input.home)
    holds_home = any(home.is_relative_to(root) for root in surroundings_input.roots)
    replaced = _list_replaced(surroundings_input.roots, None if holds_home else home)
    layered = [] if home == Path("/") else keep_outermost(_list_caches(surroundings_input, home))
    tracer = _Tracer([*replaced, *_TEMPORARY], surroundings_input.roots)
    settings = [] if holds_home else list(_list_settings(home))
    paths = [
        *surroundings_input.readable,
        surroundings_input.scratch,
        *surroundings_input.writable,
        *_list_tools(surroundings_input, home),
        *settings,
    ]
    paths += [
        *_OWN_PROGRAM,
        *(path for root in surroundings_input.roots for path in _list_project_tools(root, surroundings_input, home)),
    ]
    shown = [path for path in map(tracer.trace, paths) if path is not None and not home.is_relative_to(path)]
    visible = keep_outermost(
        path for path in dict.fromkeys(shown) if is_below_any(path, tracer.zones) and _is_there(path)
    )
    for each in (*surroundings_input.writable, *(surroundings_input.home / row.folder for row in CACHES)):
        tracer.trace(each)
    secrets = {*surroundings_input.own, *surroundings_input.hidden, *map(Path, SYSTEM_SECRETS)}
    # Not the settings: those with a token were left out by `_list_settings`, and a visible one can't be hidden, too.
    secrets |= {*find_home_secrets(home)} - {*settings}
    tools = [path for path in visible if path.is_relative_to(home) and path.is_dir()]
    secrets |= {each for folder in tools for each in find_shallow_secrets(folder, _SECRETS_DEPTH)}
    npm = (*(each for name in NPM_SETTINGS for each in home.glob(name)), *_SHARED_NPM)
    secrets |= {each for each in npm if holds_token(each, TOKEN_FILES[".npmrc"])}
    secrets |= {each for folder in layered for each in find_shallow_secrets(folder, 0)}
    secrets |= {each for folder in ("/etc", "/opt") for each in find_shallow_secrets(folder, 1)}
    secrets |= {*_find_named_sockets(surroundings_input.environment), *_list_sockets(surroundings_input.roots, home)}
    seen = (*visible, *layered, *surroundings_input.roots, *surroundings_input.writable)
    hidden = {
        path for path in map(resolve_links, secrets) if not is_below_any(path, replaced) or is_below_any(path, seen)
    }
    return Surroundings(
        home=None if holds_home or not home.is_dir() else home,
        holds_home=holds_home and home.is_dir(),
        replaced=tuple(replaced),
        visible=tuple(visible),
        links=tuple(tracer.links.items()),
        layered=tuple(path for path in layered if not is_below_any(path, surroundings_input.roots)),
        writable=tuple(
            path for path in map(tracer.trace, surroundings_input.writable) if path is not None and _is_there(path)
        ),
        # A folder that contains the project or the home has to stay visible.
        hidden=frozenset(
            path for path in hidden if not any(each.is_relative_to(path) for each in (*surroundings_input.roots, home))
        ),
    )


def list_watched_paths(surroundings_input: SurroundingsInput) -> tuple[str, ...]:
    """Return the folders and files that change when something is installed, or settings are replaced: about thirty."""
    home = surroundings_input.home
    folders = [home, *(home / name for name in (".config", ".local", ".local/share", ".local/bin", ".cache", ".cargo"))]
    folders += [home / name for name in (".npmrc", ".gitconfig", ".config/pip", ".config/git", ".cargo/bin", "go")]
    folders += [Path(each) for each in _list_path_folders(surroundings_input.environment)]
    folders += [root / name for root in surroundings_input.roots for name in PROJECT_PROGRAM_FOLDERS]
    return tuple(dict.fromkeys(map(str, folders)))


def read_change_times(paths: Iterable[str]) -> tuple[int, ...]:
    """Return the change time of each path in ns (of a folder: of its entries); 0 for a missing one."""
    return tuple(map(_read_change_time, paths))


class _Tracer:
    """Resolves paths, and records the links in `zones` on their way, which the sandbox has to recreate there.

    `zones`: replaced folders. `roots`: the project's folders, in which commands can make links to anywhere.
    """

    def __init__(self, zones: Iterable[Path], roots: Sequence[Path]) -> None:
        self.zones = list(zones)
        self.links: dict[Path, str] = {}
        self._roots = roots

    def trace(self, path: Path) -> Path | None:
        """Resolve a path; None when a link in the project leads it out."""
        paths_found = resolve_links(path)
        if paths_found == path:
            return paths_found
        done, waiting = Path("/"), list(path.parts[1:])
        for _ in range(200):  # steps: links may form a circle
            if not waiting:
                break
            part = waiting.pop(0)
            step = done.parent if part == ".." else done / part
            target = str(step.readlink()) if step.is_symlink() else ""
            if not target:
                done = step
                continue
            if is_below_any(step, self._roots) and not is_below_any(paths_found, self._roots):
                return None
            if is_below_any(step, self.zones):
                self.links[step] = target
            parts = [each for each in target.split("/") if each not in {"", "."}]
            done = Path("/") if target.startswith("/") else done
            waiting = [*parts, *waiting]
        return paths_found


def leads_out(path: Path, roots: Sequence[Path]) -> bool:
    """Return whether a link in the project leads a path out of it."""
    return _Tracer((), roots).trace(path) is None


def _list_replaced(roots: tuple[Path, ...], home: Path | None) -> list[Path]:
    """Return the folders that look empty but for named paths; none that lies in the project or is it."""
    tops = {Path("/", root.parts[1]) for root in roots if len(root.parts) > 1 and root.parts[1] not in SYSTEM}
    paths_found = {path for path in (*map(Path, DATA), *tops) if path.is_dir() and resolve_links(path) == path}
    paths_found |= {home} if home is not None and home.is_dir() and home != Path("/") else set()
    return sorted(path for path in paths_found if not any(path.is_relative_to(root) for root in roots))


def _list_settings(home: Path) -> Iterator[Path]:
    """Yield the files of settings that hold no token."""
    for name in SETTINGS:
        if _is_there(path := home / name) and not holds_token(path, TOKEN_FILES.get(name)):
            yield path


def _list_tools(surroundings_input: SurroundingsInput, home: Path) -> Iterator[Path]:
    """Yield the folders of tools: those of the rows, those that variables name, and what belongs to those of PATH."""
    yield from (path for name in TOOLS if _is_there(path := surroundings_input.home / name))
    for name in FOLDER_VARIABLES:
        for each in surroundings_input.environment.get(name, "").split(os.pathsep):
            if each.startswith("/"):
                yield Path(each)
                if _is_there(Path(each, "pyvenv.cfg")) and not is_below_any(
                    resolve_links(Path(each)), surroundings_input.roots
                ):
                    yield from _list_installed(Path(each, "bin"), home, roots=surroundings_input.roots)
    for name, parts in BASE_FOLDERS.items():
        base = surroundings_input.environment.get(name, "")
        yield from (Path(base, part) for part in parts if base.startswith("/"))
    folders = {
        resolve_links(Path(folder)): Path(folder)
        for folder in reversed(_list_path_folders(surroundings_input.environment))
    }
    for resolved, folder in folders.items():  # by target: `/bin` is `/usr/bin` on most machines, with 1,000 links
        if not any(is_below_any(each, surroundings_input.roots) for each in (resolved, folder)):
            yield from _list_installed(folder, home, roots=surroundings_input.roots)


def _list_project_tools(root: Path, surroundings_input: SurroundingsInput, home: Path) -> Iterator[Path]:
    """Yield the base interpreters of a project's environments, and environments that it links to.

    A command can write any path into `pyvenv.cfg`. So a folder outside is shown only if it looks like an interpreter.
    """
    active = (
        folder
        for folder in map(Path, _list_path_folders(surroundings_input.environment))
        if folder.is_relative_to(root)
    )
    for folder in (*(root / name for name in PROJECT_PROGRAM_FOLDERS), *active):
        top = resolve_links(folder.parent)
        if not top.is_relative_to(root) and top.name == "node_modules":
            yield top
        if not _is_there(top / "pyvenv.cfg"):
            continue
        if not top.is_relative_to(root):
            yield from (top / each for each in ("bin", "lib", "lib64", "pyvenv.cfg") if _is_there(top / each))
        base = _find_base_interpreter(top / "pyvenv.cfg")
        if base is not None and any(resolve_links(base).parent.glob("lib/python3*/os.py")):
            yield from _list_installed(resolve_links(base), home, follow=False)


def _list_installed(folder: Path, home: Path, *, roots: Sequence[Path] = (), follow: bool = True) -> Iterator[Path]:
    """Yield a folder of programs and what was installed with it: an environment, a prefix, what links lead to."""
    if not folder.is_dir():
        return
    yield folder
    top = folder.parent
    if folder.name in PROGRAMS and not _holds_work(top, home):
        markers = [name for name in INSTALL_MARKERS if _is_there(top / name)]
        if not _is_there(top / ".git"):
            yield from (top,) if markers else ()
        else:  # only known entries: the rest of a repository may be the user's private work
            markers += [name for marker, names in CLONES if _is_there(top / marker) for name in names.split()]
            yield from (each for name in markers if _is_there(each := top / name))
        base = _find_base_interpreter(top / "pyvenv.cfg") if "pyvenv.cfg" in markers else None
        if base is not None and not _is_there(base.parent / "pyvenv.cfg"):
            yield from _list_installed(base, home, follow=False)
    for name in ("lib/node_modules", "../node_modules") if folder.name in PROGRAMS else ():
        yield from (each for each in (top / name,) if _is_there(each))
    if folder.name == ".bin":
        yield top
    for target in _list_link_targets(folder, roots) if follow else ():
        yield target
        parts = target.parts
        if "node_modules" in parts:
            yield Path(*parts[: parts.index("node_modules") + 1])
        elif target.parent.name in PROGRAMS and target.parent != folder:
            yield from _list_installed(target.parent, home, follow=False)


def _holds_work(folder: Path, home: Path) -> bool:
    """Return whether a folder holds more than installed files: the home, its parents, `~/.local`."""
    path = resolve_links(folder)
    return home.is_relative_to(path) or path in {home / ".local", home / ".cargo"} or len(path.parts) < 3


def _find_base_interpreter(configuration: Path) -> Path | None:
    """Return the folder of programs that a virtual environment was made from."""
    try:
        rows = os.fsdecode(read_start(configuration, _SETTINGS_BYTES)).splitlines()
    except OSError:
        return None
    values = [row.partition("=")[2].strip() for row in rows if row.partition("=")[0].strip() == "home"]
    return Path(values[0]) if values and values[0].startswith("/") else None


def _list_link_targets(folder: Path, roots: Sequence[Path]) -> list[Path]:
    """Return the files in other folders that links in a folder lead to, but not through a link of the project."""
    paths_found: list[Path] = []
    try:
        with os.scandir(folder) as entries:
            links = [Path(entry.path) for entry in entries if entry.is_symlink()]
    except OSError:
        return paths_found
    is_of_system = f"{folder}/".startswith(_SYSTEM)
    for link in links:
        target = str(link.readlink())
        # Most stay in the folder, or in those of the system.
        if "/" in target and not target.startswith((*_SYSTEM, f"{folder}/")) and (target[0] == "/" or not is_of_system):
            paths_found.append(link)
    tracer = _Tracer((), roots)
    targets = (tracer.trace(link) for link in paths_found[:_MAX_LINKS])
    return [path for path in targets if path is not None and path.is_file()]


def _list_caches(surroundings_input: SurroundingsInput, home: Path) -> Iterator[Path]:
    """Yield the caches that exist, where the tools' variables put them."""
    environment = surroundings_input.environment
    general = environment.get("XDG_CACHE_HOME", "")
    tracer = _Tracer((), surroundings_input.roots)
    for cache in CACHES:
        name, below = cache.base
        if (value := environment.get(cache.variable, "")).startswith("/"):
            folder = Path(value)
        elif (base := environment.get(name, "")).startswith("/"):
            folder = Path(base, below)
        elif general.startswith("/") and cache.folder.startswith(".cache/"):
            folder = Path(general, cache.folder.removeprefix(".cache/"))
        else:
            folder = home / cache.folder
        # None: a link of the project leads out. A folder that contains the home is not a cache.
        path = tracer.trace(folder)
        if path is not None and path.is_dir() and not home.is_relative_to(path) and os.access(path, os.W_OK):
            yield path


def _list_sockets(roots: tuple[Path, ...], home: Path) -> Iterator[Path]:
    """Yield the sockets of other programs, without those in the project."""
    for path in _find_listening():
        if not is_below_any(path, _WITHOUT_SOCKETS) or path.is_relative_to(home):
            yield from () if is_below_any(path, roots) else (path,)


def _list_path_folders(environment: Mapping[str, str]) -> list[str]:
    return [folder for folder in environment.get("PATH", "").split(os.pathsep) if folder.startswith("/")]


def resolve_links(path: Path) -> Path:
    """Return a path without links."""
    return Path(os.path.realpath(path))


def keep_outermost(paths: Iterable[Path]) -> list[Path]:
    """Return the paths that lie below none of the others, sorted."""
    paths_found: list[Path] = []
    for path in sorted(paths):
        if not paths_found or not path.is_relative_to(paths_found[-1]):
            paths_found.append(path)
    return paths_found


def is_below_any(path: Path, folders: Iterable[Path]) -> bool:
    """Return whether a path is one of the folders or lies below one."""
    return any(path.is_relative_to(folder) for folder in folders)


def _is_there(path: Path) -> bool:
    return os.access(path, os.F_OK)


def _read_change_time(path: str) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0


def _find_listening() -> Iterator[Path]:
    """Yield the sockets at which other programs listen and which may be written."""
    try:
        with Path("/proc/net/unix").open(encoding="utf-8", errors="surrogateescape") as rows:
            bound = [row.rstrip("\n").split(None, 7)[7:] for row in rows]
    except OSError:
        bound = []
    yield from {Path(each[0]) for each in bound if each and each[0].startswith("/") and os.access(each[0], os.W_OK)}


def _find_named_sockets(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the sockets that variables lead to."""
    for name in SOCKETS:
        path = environment.get(name, "").rpartition("unix:")[2].removeprefix("path=").removeprefix("//").split(",")[0]
        if path.startswith("/"):
            yield Path(path)
