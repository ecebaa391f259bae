"""Finds the paths outside the project that sandboxed commands see,
and those that are hidden from them.

They see tools, settings without tokens, and caches; hidden are secrets, sockets of other programs,
codeloop's folders. `policy.py` searches for the first command, and for a later one after a change
of a watched path or of the machine's sockets, or after 10 s.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

import codeloop
from codeloop.kit.programs import PROJECT_PROGRAM_FOLDERS
from codeloop.workspace.sandbox.paths.home_paths import (
    BASE_FOLDER_VARIABLES,
    CACHES,
    FOLDER_VARIABLES,
    NPM_SETTINGS_FILES,
    SETTINGS_FILES,
    TOOL_FOLDERS,
)
from codeloop.workspace.sandbox.paths.installed_programs import (
    find_base_interpreter,
    list_installed_with,
)
from codeloop.workspace.sandbox.paths.linked_paths import (
    LinkTracer,
    exists,
    is_below_any,
    keep_outermost,
    resolve_links,
)
from codeloop.workspace.sandbox.paths.restricted_paths import (
    DATA_FOLDERS,
    SOCKET_VARIABLES,
    SYSTEM_FOLDER_NAMES,
    SYSTEM_SECRETS,
    TEMPORARY_FOLDERS,
    TOKEN_FILES,
)
from codeloop.workspace.sandbox.paths.secret_files import (
    find_home_secrets,
    find_shallow_secrets,
    holds_token,
)

_ALWAYS_REPLACED = (*TEMPORARY_FOLDERS, Path("/run"))
_FOLDERS_WITHOUT_SOCKETS = (*_ALWAYS_REPLACED, Path("/dev"), Path("/proc"))
"""Replaced folders, in which commands can reach no socket of another program."""
_OWN_PROGRAM_PATHS = [Path(each) for each in (sys.prefix, sys.base_prefix, sys.executable)] + [
    Path(codeloop.__file__).parent
]
"""The launcher's code, which bubblewrap starts again inside the sandbox."""
_SHARED_NPM_SETTINGS = (Path("/usr/local/etc/npmrc"), Path("/usr/etc/npmrc"))
# The levels of folders below the top of an installed tool that are searched for secret files.
_SECRETS_DEPTH = 2


class Surroundings(Struct, frozen=True):
    """The visible and hidden paths outside a project.
    Each path is absolute, resolved (not in `links`), and exists.

    `home`: the home, which a private folder replaces; None if the project contains it
    (`holds_home`). `replaced`: folders that look empty except for `visible` and `links`, each with
    its target. `layered`: caches that are read as they are, and whose changes go to a layer of the
    project; `writable`: paths that the configuration names; `hidden`: paths that can't be read,
    some of which may not exist.
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
    """The input of `find_surroundings`. `roots`: the project's folders;
    `own_folders`: codeloop's, hidden.

    `scratch`: the folder of tools' complete outputs, visible even if it is among codeloop's.
    `roots` and `home` are resolved. `writable`, `readable`,
    `hidden`: absolute paths from the configuration.
    """

    roots: tuple[Path, ...]
    home: Path
    environment: Mapping[str, str]
    own_folders: tuple[Path, ...]
    scratch: Path
    writable: tuple[Path, ...]
    readable: tuple[Path, ...]
    hidden: tuple[Path, ...]


def find_surroundings(inputs: SurroundingsInput) -> Surroundings:
    """Find the tools, settings and caches outside a project. Reads the disk."""
    home = inputs.home
    holds_home = any(home.is_relative_to(root) for root in inputs.roots)
    replaced = _list_replaced(inputs.roots, None if holds_home else home)
    layered = [] if home == Path("/") else keep_outermost(_list_caches(inputs))
    tracer = LinkTracer([*replaced, *_ALWAYS_REPLACED], inputs.roots)
    settings = [] if holds_home else list(_list_settings(home))
    paths = [*inputs.readable, inputs.scratch, *inputs.writable, *_list_tools(inputs), *settings]
    paths += _OWN_PROGRAM_PATHS
    paths += [path for root in inputs.roots for path in _list_project_tools(root, inputs)]
    resolved = [
        path
        for path in map(tracer.resolve, paths)
        if path is not None and not home.is_relative_to(path)
    ]
    visible = keep_outermost(
        path
        for path in dict.fromkeys(resolved)
        if is_below_any(path, tracer.replaced_folders) and exists(path)
    )
    # For the links on the way to these, which the tracer records.
    for each in (*inputs.writable, *(home / cache.folder for cache in CACHES)):
        tracer.resolve(each)
    # `_list_settings` has left out settings with a token,
    # and a visible file can't be hidden as well.
    home_secrets = {*find_home_secrets(home)} - {*settings}
    tools = [path for path in visible if path.is_relative_to(home) and path.is_dir()]
    secrets = {
        *inputs.own_folders,
        *inputs.hidden,
        *home_secrets,
        *_list_secrets(home, tools, layered),
    }
    secrets |= {*_list_named_sockets(inputs.environment), *_list_sockets(inputs.roots, home)}
    # A secret in a folder that looks empty need not be hidden, unless something there is visible.
    shown_there = (*visible, *layered, *inputs.roots, *inputs.writable)
    hidden = {
        path
        for path in map(resolve_links, secrets)
        if not is_below_any(path, replaced) or is_below_any(path, shown_there)
    }
    return Surroundings(
        home=None if holds_home or not home.is_dir() else home,
        holds_home=holds_home and home.is_dir(),
        replaced=tuple(replaced),
        visible=tuple(visible),
        links=tuple(tracer.links.items()),
        layered=tuple(path for path in layered if not is_below_any(path, inputs.roots)),
        writable=tuple(
            path
            for path in map(tracer.resolve, inputs.writable)
            if path is not None and exists(path)
        ),
        # A folder that contains the project or the home has to stay visible.
        hidden=frozenset(
            path
            for path in hidden
            if not any(each.is_relative_to(path) for each in (*inputs.roots, home))
        ),
    )


def _list_secrets(home: Path, tools: Iterable[Path], caches: Iterable[Path]) -> Iterator[Path]:
    """Yield the secrets of the system, of installed tools, and in caches."""
    yield from map(Path, SYSTEM_SECRETS)
    for folder in tools:
        yield from find_shallow_secrets(folder, _SECRETS_DEPTH)
    npm_settings = (
        *(path for name in NPM_SETTINGS_FILES for path in home.glob(name)),
        *_SHARED_NPM_SETTINGS,
    )
    yield from (path for path in npm_settings if holds_token(path, TOKEN_FILES[".npmrc"]))
    for folder in caches:
        yield from find_shallow_secrets(folder, 0)
    for system_folder in ("/etc", "/opt"):
        yield from find_shallow_secrets(system_folder, 1)


def list_watched_paths(inputs: SurroundingsInput) -> tuple[str, ...]:
    """Return about thirty folders and files, one of which changes when a tool is installed
    or settings are replaced.
    """
    home = inputs.home
    folders = [
        home,
        *(
            home / name
            for name in (".config", ".local", ".local/share", ".local/bin", ".cache", ".cargo")
        ),
    ]
    folders += [
        home / name
        for name in (".npmrc", ".gitconfig", ".config/pip", ".config/git", ".cargo/bin", "go")
    ]
    folders += [Path(each) for each in _list_path_folders(inputs.environment)]
    folders += [root / name for root in inputs.roots for name in PROJECT_PROGRAM_FOLDERS]
    return tuple(dict.fromkeys(map(str, folders)))


def read_modification_times(paths: Iterable[str]) -> tuple[int, ...]:
    """Return the modification time of each path in ns (a folder's: of its entries);
    0 for a missing one.
    """
    return tuple(map(_read_modification_time, paths))


def _list_replaced(roots: tuple[Path, ...], home: Path | None) -> list[Path]:
    """Return the folders that look empty except for named paths;
    none is the project or lies in it.
    """
    tops = {
        Path("/", root.parts[1])
        for root in roots
        if len(root.parts) > 1 and root.parts[1] not in SYSTEM_FOLDER_NAMES
    }
    folders = {
        path
        for path in (*map(Path, DATA_FOLDERS), *tops)
        if path.is_dir() and resolve_links(path) == path
    }
    if home is not None and home.is_dir() and home != Path("/"):
        folders.add(home)
    return sorted(path for path in folders if not any(path.is_relative_to(root) for root in roots))


def _list_settings(home: Path) -> Iterator[Path]:
    """Yield the settings files that hold no token."""
    for name in SETTINGS_FILES:
        if exists(path := home / name) and not holds_token(path, TOKEN_FILES.get(name)):
            yield path


def _list_tools(inputs: SurroundingsInput) -> Iterator[Path]:
    """Yield the folders of tools: those of the table, those that variables name,
    and those that belong to PATH.
    """
    yield from (path for name in TOOL_FOLDERS if exists(path := inputs.home / name))
    for name in FOLDER_VARIABLES:
        for each in inputs.environment.get(name, "").split(os.pathsep):
            if each.startswith("/"):
                yield Path(each)
                if exists(Path(each, "pyvenv.cfg")) and not is_below_any(
                    resolve_links(Path(each)), inputs.roots
                ):
                    yield from list_installed_with(
                        Path(each, "bin"), inputs.home, roots=inputs.roots
                    )
    for name, parts in BASE_FOLDER_VARIABLES.items():
        base = inputs.environment.get(name, "")
        yield from (Path(base, part) for part in parts if base.startswith("/"))
    folders = {
        resolve_links(Path(folder)): Path(folder)
        for folder in reversed(_list_path_folders(inputs.environment))
    }
    # By target, because `/bin` is `/usr/bin` on most machines, and has 1,000 links.
    for resolved, folder in folders.items():
        if not any(is_below_any(each, inputs.roots) for each in (resolved, folder)):
            yield from list_installed_with(folder, inputs.home, roots=inputs.roots)


def _list_project_tools(root: Path, inputs: SurroundingsInput) -> Iterator[Path]:
    """Yield the base interpreters of a project's environments,
    and environments outside that it links to.
    """
    # A command can write any path into `pyvenv.cfg`, so a folder outside is shown only if
    # it looks like an interpreter.
    active = (
        folder
        for folder in map(Path, _list_path_folders(inputs.environment))
        if folder.is_relative_to(root)
    )
    for folder in (*(root / name for name in PROJECT_PROGRAM_FOLDERS), *active):
        top = resolve_links(folder.parent)
        if not top.is_relative_to(root) and top.name == "node_modules":
            yield top
        if not exists(top / "pyvenv.cfg"):
            continue
        if not top.is_relative_to(root):
            yield from (
                top / each for each in ("bin", "lib", "lib64", "pyvenv.cfg") if exists(top / each)
            )
        base = find_base_interpreter(top / "pyvenv.cfg")
        if base is not None and any(resolve_links(base).parent.glob("lib/python3*/os.py")):
            yield from list_installed_with(resolve_links(base), inputs.home, follow_links=False)


def _list_caches(inputs: SurroundingsInput) -> Iterator[Path]:
    """Yield the caches that exist, where the tools' variables put them."""
    home, environment = inputs.home, inputs.environment
    xdg_folder = environment.get("XDG_CACHE_HOME", "")
    tracer = LinkTracer((), inputs.roots)
    for cache in CACHES:
        named_folder = environment.get(cache.variable, "")
        parent = environment.get(cache.parent_variable, "")
        if named_folder.startswith("/"):
            folder = Path(named_folder)
        elif parent.startswith("/"):
            folder = Path(parent, cache.name_in_parent)
        elif xdg_folder.startswith("/") and cache.folder.startswith(".cache/"):
            folder = Path(xdg_folder, cache.folder.removeprefix(".cache/"))
        else:
            folder = home / cache.folder
        # None: a link in the project leads out of it.
        # A folder that contains the home is not a cache.
        path = tracer.resolve(folder)
        if (
            path is not None
            and path.is_dir()
            and not home.is_relative_to(path)
            and os.access(path, os.W_OK)
        ):
            yield path


def _list_sockets(roots: tuple[Path, ...], home: Path) -> Iterator[Path]:
    """Yield the sockets of other programs, except those in the project."""
    for path in _list_listening_sockets():
        is_reachable = not is_below_any(path, _FOLDERS_WITHOUT_SOCKETS) or path.is_relative_to(home)
        if is_reachable and not is_below_any(path, roots):
            yield path


def _list_path_folders(environment: Mapping[str, str]) -> list[str]:
    return [
        folder for folder in environment.get("PATH", "").split(os.pathsep) if folder.startswith("/")
    ]


def _read_modification_time(path: str) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0


def read_socket_paths() -> frozenset[bytes]:
    """Return the paths of the machine's sockets; none where the system does not tell."""
    try:
        with Path("/proc/net/unix").open("rb") as file:
            # Before a path are seven fields; an abstract socket begins with `@`.
            return frozenset(re.findall(rb"(?m)^[^/@]* (/.*)$", file.read()))
    except OSError:
        return frozenset()


def _list_listening_sockets() -> Iterator[Path]:
    """Yield the sockets at which other programs listen and which may be written."""
    yield from (
        Path(path) for path in map(os.fsdecode, read_socket_paths()) if os.access(path, os.W_OK)
    )


def _list_named_sockets(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the sockets that variables name."""
    for name in SOCKET_VARIABLES:
        # A path, `unix:///run/docker.sock`, or `unix:path=/run/user/1000/bus,guid=...`.
        path = (
            environment.get(name, "")
            .rpartition("unix:")[2]
            .removeprefix("path=")
            .removeprefix("//")
            .split(",")[0]
        )
        if path.startswith("/"):
            yield Path(path)
