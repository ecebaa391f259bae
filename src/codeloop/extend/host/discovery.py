"""Finds the extensions of a project: files in its homes, entries of `plugin` in the configuration,
installed packages.

A policy is an extension that must answer: while it is missing or fails, all actions that its hooks
decide about are refused.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from codeloop import __version__
from codeloop.config.load import LoadedConfig
from codeloop.config.paths import Paths, get_plugin_name
from codeloop.config.project_root import ProjectRoot
from codeloop.extend.homes import Home
from codeloop.extend.host.extension import Extension, Language
from codeloop.extend.host.offer_cache import find_policy_hooks
from codeloop.extend.host.protocol import VERSION
from codeloop.extend.packages.manifest import MANIFEST, is_claude_plugin, read_manifest
from codeloop.extend.packages.plugin_entries import (
    find_entry_path,
    is_marked_policy,
    parse_package_name,
    resolve_entry,
)
from codeloop.kit.jsonc import is_list, is_object
from codeloop.kit.small_files import read_start
from codeloop.schema.bounds.extension import HOST_ENTRIES, HOST_FILE, HOST_WATCHED_FILES
from codeloop.schema.errors import CodeloopError

_LANGUAGES: dict[str, Language] = {
    ".py": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".ts": "javascript",
    ".mts": "javascript",
}
_FOLDER_KINDS: dict[str, Literal["tool", "plugin"]] = {
    "tool": "tool",
    "tools": "tool",
    "plugin": "plugin",
    "plugins": "plugin",
}
ASSUMED_POLICY_HOOKS = ("experimental.chat.messages.transform", "tool.execute.before")
"""The hooks that a policy counts as having while its own are unknown: all
requests and tool calls.
"""
# These are large, or change at each run: reading them would slow every start down.
_SKIPPED_FOLDERS = frozenset(("node_modules", "__pycache__", ".git"))


class FoundExtensions(NamedTuple):
    """The extensions, in the order in which they are called; the files that they depend on;
    warnings for the user.
    """

    extensions: tuple[Extension, ...]
    files: tuple[Path, ...]
    warnings: tuple[str, ...]


class _SearchScope(Struct, frozen=True):
    """The configuration, root folder and paths with which entries are resolved."""

    loaded: LoadedConfig
    root: Path
    paths: Paths


def list_extension_files(
    homes: Iterable[Home],
) -> Iterator[tuple[Home, Literal["tool", "plugin"], Path]]:
    """Yield the extension files of homes, with their home and type.
    A name that begins with `_` or `.` is skipped.
    """
    for home in homes:
        if home.is_foreign:
            continue
        for folder, kind in _FOLDER_KINDS.items():
            if folder in home.names:
                for file in _list_extensions(home.path / folder):
                    yield home, kind, file


def find_ignored_files(homes: Iterable[Home], root: Path) -> tuple[str, ...]:
    """Return the extensions that are ignored while a project is not trusted,
    as paths relative to its root.
    """
    paths = (
        str(file.relative_to(root))
        for home, _, file in list_extension_files(homes)
        if home.is_project
    )
    return tuple(path if path.isprintable() else ascii(path) for path in paths)


def find_extensions(
    homes: Iterable[Home],
    loaded: LoadedConfig,
    project_root: ProjectRoot,
    paths: Paths,
    installed: Mapping[str, tuple[str, str]],
    *,
    trusted: bool,
) -> FoundExtensions:
    """Return the extensions in effect. `installed`: the result of `find_installed_plugins`.
    Reads the disk.
    """
    scope = _SearchScope(loaded, project_root.root, paths)
    extensions: dict[str, Extension] = {}
    files: list[Path] = []
    warnings: list[str] = []
    # By folder: the content of the files in it that its extensions may import.
    importable: dict[Path, bytes] = {}
    for name, (value, version) in installed.items():
        extensions[name] = _make_installed_extension(name, value.strip(), version)
    for index, entry in enumerate(loaded.config.plugin):
        extension, problem = _read_entry(scope, index, entry)
        if problem:
            warnings.append(problem)
        # A policy that can't be loaded keeps its place in the list, so that its hooks refuse
        # instead of being skipped silently.
        extension = extension or _make_placeholder(scope, index, entry, problem)
        if extension is not None:
            extensions[extension.name] = extension
            # The file is watched even if it is broken or missing: the extension is
            # loaded when it is repaired.
            files.append(Path(extension.path))
    for home, kind, file in list_extension_files(homes):
        if home.is_project and not trusted:
            continue
        if len(extensions) >= HOST_ENTRIES.value:
            warnings.append(f"{file}: more than {HOST_ENTRIES.value} extensions, left out.")
            continue
        if file.parent not in importable:
            importable_files = _list_importable(file.parent)
            files += [file.parent, *importable_files]
            # A change of an imported module changes what the extension offers,
            # so its content is part of the digest.
            importable[file.parent] = b"".join(map(_read_content, importable_files))
        files.append(file)
        extension = _make_file_extension(scope, home, kind, file, importable[file.parent])
        extensions[extension.name] = extension
    warnings += _warn_ignored_scripts(home for home in homes if trusted or not home.is_project)
    return FoundExtensions(tuple(extensions.values()), tuple(files), tuple(warnings))


def _make_installed_extension(name: str, path: str, version: str) -> Extension:
    """Return the extension of an entry point. `path`: its value, `module:name`;
    `version`: of its distribution.
    """
    return Extension(
        name=name,
        language="python",
        kind="plugin",
        path=path,
        origin=f"entry point {name}",
        digest=_hash_parts(path.encode(), version.encode()),
    )


def _make_file_extension(
    scope: _SearchScope, home: Home, kind: Literal["tool", "plugin"], file: Path, importable: bytes
) -> Extension:
    """Return the extension of a file in a home. `importable`: the content of the
    files that it may import.
    """
    name = _format_path(file, scope)
    file_state = b""
    if file.suffix not in _LANGUAGES:
        # A program may be longer than what is read of it here, so its size and time count as well.
        file_state = _describe_file(file, file.parent).encode("utf-8", "surrogateescape")
    return Extension(
        name=name,
        # A program in another language is started by the Python host.
        language=_LANGUAGES.get(file.suffix, "python"),
        kind=kind,
        path=str(file),
        origin=str(file),
        digest=_hash_parts(
            kind.encode(), name.encode(), _read_content(file), file_state, importable
        ),
        is_project=home.is_project,
        policy=ASSUMED_POLICY_HOOKS if home.is_policy and kind == "plugin" else (),
    )


def _is_program(file: Path) -> bool:
    """Return whether a file is a program in another language: its suffix is none of ours,
    and it can be executed.
    """
    return file.suffix not in _LANGUAGES and os.access(file, os.X_OK)


def _knows_schema(file: Path) -> bool:
    """Return whether a program may answer `--schema`.
    A script that does not mention the word is never run.
    """
    # Running an arbitrary script to see whether it knows `--schema` could do harm, so the script
    # itself has to mention it.
    start = _read_content(file)
    return b"schema" in start or not start.startswith(b"#!")


def _warn_ignored_scripts(homes: Iterable[Home]) -> Iterator[str]:
    """Yield a warning for each folder of tools that holds scripts which are not tools."""
    for home in homes:
        for folder in () if home.is_foreign else sorted(home.names & {"tool", "tools"}):
            programs = filter(_is_program, _list_candidates(home.path / folder))
            if names := ", ".join(file.name for file in programs if not _knows_schema(file)):
                yield f"{home.path / folder}: {names}: not a tool. An executable in this folder must answer --schema."


def _read_entry(scope: _SearchScope, index: int, entry: Any) -> tuple[Extension | None, str]:
    """Return the extension of one entry of `plugin`; else None,
    and the problem ("" for a package: see its home).
    """
    origin = scope.loaded.provenance.get(f"plugin[{index}]")
    is_project = origin is not None and origin.layer.is_project
    source = str(origin) if origin is not None else "plugin"
    name_or_path, options = (
        (entry[0], entry[1]) if is_list(entry) and len(entry) == 2 else (entry, None)
    )
    if not isinstance(name_or_path, str) or not (options is None or is_object(options)):
        return (
            None,
            f"{source}: expected a path or the name of a package, or one with its options in a list.",
        )
    base = origin.layer.base if origin is not None else scope.root
    path, problem = resolve_entry(name_or_path, base, scope.paths)
    if path is None:
        return None, f"{source}: {problem}"
    if (path / MANIFEST).is_file() or is_claude_plugin(path):
        # A package is not a single extension: its files are found like those of a home.
        return None, ""
    language = _detect_language(path)
    if language is None:
        expectation = "a file that ends in .py, .js, .mjs or .ts, or the folder of a package"
        return None, f"{source}: {path} is not an extension: give {expectation}."
    content = _read_content(path) if path.is_file() else _describe_folder(path)
    name = _make_entry_name(name_or_path, path, scope)
    digest = _hash_parts(b"plugin", name.encode(), content, msgspec.json.encode(options))
    policy = ASSUMED_POLICY_HOOKS if is_marked_policy(entry) else ()
    extension = Extension(
        name=name,
        language=language,
        kind="plugin",
        path=str(path),
        origin=source,
        digest=digest,
        options=options,
        is_project=is_project,
        policy=policy,
    )
    return extension, ""


def _make_placeholder(
    scope: _SearchScope, index: int, entry: Any, problem: str
) -> Extension | None:
    """Return a placeholder for an entry that can't be loaded, if the entry is a policy; else None.

    `problem`: of the entry itself; "": that of its package's manifest counts, if it has one.
    """
    name = get_plugin_name(entry)
    origin = scope.loaded.provenance.get(f"plugin[{index}]")
    base = origin.layer.base if origin is not None else scope.root
    path = find_entry_path(name, base, scope.paths) if name is not None else None
    if name is None or path is None:
        return None
    problem = problem or _find_manifest_problem(path)
    if not problem:
        return None
    remembered_hooks = find_policy_hooks(scope.paths.state / "extensions", str(path))
    assumed_hooks = ASSUMED_POLICY_HOOKS if is_marked_policy(entry) else ()
    policy = tuple(sorted({*remembered_hooks, *assumed_hooks}))
    if not policy:
        return None
    return Extension(
        name=_make_entry_name(name, path, scope),
        language=_detect_language(path) or "python",
        kind="plugin",
        path=str(path),
        origin=str(origin) if origin is not None else "plugin",
        digest="",
        is_project=origin is not None and origin.layer.is_project,
        policy=policy,
        problem=problem,
    )


def _find_manifest_problem(folder: Path) -> str:
    """Return the problem of a package's manifest, or ""."""
    try:
        read_manifest(folder)
    except CodeloopError as error:
        return str(error)
    return ""


def _make_entry_name(name: str, path: Path, scope: _SearchScope) -> str:
    """Return the display name of an entry's extension: the package's, the path as written,
    or a shortened one.
    """
    package = parse_package_name(name)
    if package is not None:
        return package.entry
    return _format_path(path, scope) if Path(name).is_absolute() else name


def _detect_language(path: Path) -> Language | None:
    if path.is_dir():
        return "javascript" if (path / "package.json").is_file() else "python"
    return _LANGUAGES.get(path.suffix)


def _list_extensions(folder: Path) -> list[Path]:
    """Return the extension files of a folder, sorted by name: sources,
    and in a folder of tools also programs.
    """
    files = _list_candidates(folder)
    extensions = [file for file in files if file.suffix in _LANGUAGES]
    if _FOLDER_KINDS.get(folder.name) == "tool":
        extensions += [file for file in files if _is_program(file) and _knows_schema(file)]
    return sorted(extensions)


def _list_candidates(folder: Path) -> list[Path]:
    """Return the files of a folder whose names extensions may have, sorted."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    except OSError:
        return []
    return [
        folder / name
        for name in names
        if not name.startswith(("_", ".")) and not name.endswith(".d.ts")
    ]


def _list_importable(folder: Path) -> list[Path]:
    """Return the files that a folder's extensions may import: all files that are
    not extensions themselves.
    """
    return _walk_files(folder, frozenset(_list_extensions(folder)))


def _walk_files(folder: Path, left_out: frozenset[Path] = frozenset()) -> list[Path]:
    """Return the files below a folder, up to a limit, without those that are left out."""
    paths: list[Path] = []
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
        paths += [file for name in sorted(names) if (file := Path(top, name)) not in left_out]
        # All of these files are read or watched at each start, so their number is bounded.
        if len(paths) > HOST_WATCHED_FILES.value:
            break
    return paths[: HOST_WATCHED_FILES.value]


def _read_content(file: Path) -> bytes:
    try:
        return read_start(file, HOST_FILE.value)
    except OSError:
        return b""


def _describe_folder(folder: Path) -> bytes:
    """Return the names, sizes and times of a folder's files as bytes: a change
    of one changes the digest.
    """
    return "\n".join(_describe_file(file, folder) for file in _walk_files(folder)).encode(
        "utf-8", "surrogateescape"
    )


def _describe_file(file: Path, folder: Path) -> str:
    """Return a file's path relative to a folder, its size and its time; "": it can't be read."""
    try:
        stat = file.stat()
    except OSError:
        return ""
    return f"{file.relative_to(folder)} {stat.st_size} {stat.st_mtime_ns}"


def _hash_parts(*parts: bytes) -> str:
    """Return the digest of an extension whose offer depends on these parts."""
    # The version is part of it: an offer that another version of codeloop cached
    # may have another form.
    digest = sha256(f"{__version__} {VERSION}".encode())
    for part in parts:
        # The length separates the parts: otherwise ("ab", "c") and ("a", "bc") had the same digest.
        digest.update(f" {len(part)} ".encode() + part)
    return digest.hexdigest()[:32]


def _format_path(path: Path, scope: _SearchScope) -> str:
    """Return a path as people read it: relative to the project, or to the home."""
    if path.is_relative_to(scope.root):
        return str(path.relative_to(scope.root))
    if path.is_relative_to(scope.paths.home):
        return f"~/{path.relative_to(scope.paths.home)}"
    return str(path)
