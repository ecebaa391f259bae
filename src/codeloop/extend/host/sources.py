"""Finds a project's extensions: files of its homes, `plugin` entries of the configuration, installed ones."""

import os
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from codeloop import __version__
from codeloop.config.load import Loaded
from codeloop.config.paths import Paths, plugin_name
from codeloop.config.project_root import ProjectRoot
from codeloop.extend.folders import Home
from codeloop.extend.host.extension import Extension, Language
from codeloop.extend.host.offer_cache import find_policy
from codeloop.extend.host.protocol import VERSION
from codeloop.extend.packages.lock import entry_path, entry_place, is_policy, package_name
from codeloop.extend.packages.manifest import MANIFEST, is_claude_plugin, read_manifest
from codeloop.kit.jsonc import is_list, is_object
from codeloop.kit.small_files import read_start
from codeloop.schema.bounds.extension import HOST_BESIDE, HOST_ENTRIES, HOST_FILE
from codeloop.schema.errors import CodeloopError

_LANGUAGES: dict[str, Language] = {
    ".py": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".ts": "javascript",
    ".mts": "javascript",
}
_KINDS: dict[str, Literal["tool", "plugin"]] = {
    "tool": "tool",
    "tools": "tool",
    "plugin": "plugin",
    "plugins": "plugin",
}
POLICY = ("experimental.chat.messages.transform", "tool.execute.before")
"""The assumed hooks of a policy extension whose hooks are unknown: requests and calls."""
_PASSED = frozenset(("node_modules", "__pycache__", ".git"))


class FoundExtensions(NamedTuple):
    """The extensions in calling order; the files that they depend on; warnings."""

    extensions: tuple[Extension, ...]
    files: tuple[Path, ...]
    warnings: tuple[str, ...]


class _SearchScope(Struct, frozen=True):
    """The scope in which entries are resolved."""

    loaded: Loaded
    root: Path
    paths: Paths


def extension_files(homes: Iterable[Home]) -> Iterator[tuple[Home, Literal["tool", "plugin"], Path]]:
    """Yield the files of homes that are extensions, by name: those that begin with `_` or `.` are not."""
    for home in homes:
        if home.only_skills:
            continue
        for folder, kind in _KINDS.items():
            if folder in home.names:
                for file in _files(home.path / folder):
                    yield home, kind, file


def find_ignored_files(homes: Iterable[Home], root: Path) -> tuple[str, ...]:
    """Return the extensions of a project without trust, by their paths in it."""
    paths = (str(file.relative_to(root)) for home, _, file in extension_files(homes) if home.is_project)
    return tuple(path if path.isprintable() else ascii(path) for path in paths)


def find_extensions(
    homes: Iterable[Home],
    loaded: Loaded,
    project_root: ProjectRoot,
    paths: Paths,
    installed: Mapping[str, tuple[str, str]],
    *,
    trusted: bool,
) -> FoundExtensions:
    """Return the extensions in effect. `installed`: as of `find_installed_plugins`. Looks at the disk."""
    where = _SearchScope(loaded, project_root.root, paths)
    extensions: dict[str, Extension] = {}
    files: list[Path] = []
    warnings: list[str] = []
    importable: dict[Path, bytes] = {}
    for name, (value, version) in installed.items():
        path, origin = value.strip(), f"entry point {name}"
        extensions[name] = Extension(name, "python", "plugin", path, origin, _digest(path.encode(), version.encode()))
    for index, entry in enumerate(loaded.config.plugin):
        extension, problem = _entry(where, index, entry)
        if problem:
            warnings.append(problem)
        extension = extension or _missing(where, index, entry, problem)
        if extension is not None:
            extensions[extension.name] = extension
            files.append(Path(extension.path))
    for home, kind, file in extension_files(homes):
        if home.is_project and not trusted:
            continue
        if len(extensions) >= HOST_ENTRIES.value:
            warnings.append(f"{file}: more than {HOST_ENTRIES.value} extensions, left out.")
            continue
        if file.parent not in importable:
            others = _list_importable(file.parent)
            files += [file.parent, *others]
            importable[file.parent] = b"".join(map(_content, others))
        files.append(file)
        name = _format_path(file, where)
        state = b"" if file.suffix in _LANGUAGES else _file_state(file, file.parent).encode("utf-8", "surrogateescape")
        digest = _digest(kind.encode(), name.encode(), _content(file), state, importable[file.parent])
        policy = POLICY if home.is_policy and kind == "plugin" else ()
        language = _LANGUAGES.get(file.suffix, "python")  # a program is started by that host
        extensions[name] = Extension(
            name, language, kind, str(file), str(file), digest, is_project=home.is_project, policy=policy
        )
    warnings += _find_ignored_scripts(home for home in homes if trusted or not home.is_project)
    return FoundExtensions(tuple(extensions.values()), tuple(files), tuple(warnings))


def _is_executable(file: Path) -> bool:
    return file.suffix not in _LANGUAGES and os.access(file, os.X_OK)


def _knows_schema(file: Path) -> bool:
    """Return whether a program may answer `--schema`: a script that never mentions it must not be run."""
    start = _content(file)
    return b"schema" in start or not start.startswith(b"#!")


def _find_ignored_scripts(homes: Iterable[Home]) -> Iterator[str]:
    """Yield a warning for each tools folder with scripts that are no tools."""
    for home in homes:
        for folder in () if home.only_skills else sorted(home.names & {"tool", "tools"}):
            executable = filter(_is_executable, _candidates(home.path / folder))
            if names := ", ".join(file.name for file in executable if not _knows_schema(file)):
                yield f"{home.path / folder}: {names} is no tool: a program there has to answer --schema."


def _entry(where: _SearchScope, index: int, entry: Any) -> tuple[Extension | None, str]:
    """Return the extension of one entry of `plugin`, or why it is none."""
    origin = where.loaded.provenance.get(f"plugin[{index}]")
    is_project = origin is not None and origin.layer.is_project
    source = str(origin) if origin is not None else "plugin"
    named, options = (entry[0], entry[1]) if is_list(entry) and len(entry) == 2 else (entry, None)
    if not isinstance(named, str) or not (options is None or is_object(options)):
        return None, f"{source}: expected a path or the name of a package, or one with its options in a list."
    base = origin.layer.base if origin is not None else where.root
    path, problem = entry_path(named, base, where.paths)
    if path is None:
        return None, f"{source}: {problem}"
    if (path / MANIFEST).is_file() or is_claude_plugin(path):
        return None, ""  # a package: its files are those of a home
    language = _language(path)
    if language is None:
        expectation = "a file that ends in .py, .js, .mjs or .ts, or the folder of a package"
        return None, f"{source}: {path} is not an extension: give {expectation}."
    content = _content(path) if path.is_file() else _folder_state(path)
    name = _entry_name(named, path, where)
    digest = _digest(b"plugin", name.encode(), content, msgspec.json.encode(options))
    policy = POLICY if is_policy(entry) else ()
    return Extension(name, language, "plugin", str(path), source, digest, options, is_project, policy), ""


def _missing(where: _SearchScope, index: int, entry: Any, problem: str) -> Extension | None:
    """Return a substitute for an unloadable entry, if it is known to be a policy."""
    name = plugin_name(entry)
    origin = where.loaded.provenance.get(f"plugin[{index}]")
    base = origin.layer.base if origin is not None else where.root
    path = entry_place(name, base, where.paths) if name is not None else None
    if name is None or path is None or not (problem := problem or _manifest_problem(path)):
        return None
    remembered = find_policy(where.paths.state / "extensions", str(path))
    policy = tuple(sorted({*remembered, *(POLICY if is_policy(entry) else ())}))
    if not policy:
        return None
    return Extension(
        _entry_name(name, path, where),
        _language(path) or "python",
        "plugin",
        str(path),
        str(origin) if origin is not None else "plugin",
        "",
        is_project=origin is not None and origin.layer.is_project,
        policy=policy,
        problem=problem,
    )


def _manifest_problem(folder: Path) -> str:
    """Return why a package can't be read; "": it can."""
    try:
        read_manifest(folder)
    except CodeloopError as error:
        return str(error)
    return ""


def _entry_name(name: str, path: Path, where: _SearchScope) -> str:
    package = package_name(name)
    return (
        package.written if package is not None else name if not Path(name).is_absolute() else _format_path(path, where)
    )


def _language(path: Path) -> Language | None:
    if path.is_dir():
        return "javascript" if (path / "package.json").is_file() else "python"
    return _LANGUAGES.get(path.suffix)


def _files(folder: Path) -> list[Path]:
    """Return the extensions of a folder, sorted."""
    files = _candidates(folder)
    programs = filter(_is_executable, files if _KINDS.get(folder.name) == "tool" else ())
    return sorted([*(file for file in files if file.suffix in _LANGUAGES), *filter(_knows_schema, programs)])


def _candidates(folder: Path) -> list[Path]:
    """Return the files of a folder that may be extensions by their names, sorted."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    except OSError:
        return []
    return [folder / name for name in names if not name.startswith(("_", ".")) and not name.endswith(".d.ts")]


def _list_importable(folder: Path) -> list[Path]:
    """Return the files that a folder's extensions may import: all that are no extensions themselves."""
    own = set(_files(folder))
    paths: list[Path] = []
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _PASSED)
        paths += [file for name in sorted(names) if (file := Path(top, name)) not in own]
        if len(paths) > HOST_BESIDE.value:
            break
    return paths[: HOST_BESIDE.value]


def _content(file: Path) -> bytes:
    try:
        return read_start(file, HOST_FILE.value)
    except OSError:
        return b""


def _folder_state(folder: Path) -> bytes:
    """Return the names, sizes and times of a folder's files."""
    return "\n".join(_file_state(file, folder) for file in _list_importable(folder)).encode("utf-8", "surrogateescape")


def _file_state(file: Path, folder: Path) -> str:
    try:
        state = file.stat()
    except OSError:
        return ""
    return f"{file.relative_to(folder)} {state.st_size} {state.st_mtime_ns}"


def _digest(*parts: bytes) -> str:
    digest = sha256(f"{__version__} {VERSION}".encode())
    for part in parts:
        digest.update(f" {len(part)} ".encode() + part)
    return digest.hexdigest()[:32]


def _format_path(path: Path, where: _SearchScope) -> str:
    if path.is_relative_to(where.root):
        return str(path.relative_to(where.root))
    if path.is_relative_to(where.paths.home):
        return f"~/{path.relative_to(where.paths.home)}"
    return str(path)
