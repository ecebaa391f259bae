"""Finds what a project's checks load besides the project's own files; `check_files.py` hashes it.

These are test runners in `.venv` and `node_modules`, what every Python program loads there as it
starts, and modules that are loaded in place of others.
"""

import itertools
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from codeloop.kit.small_files import read_start_or_empty

ENVIRONMENT_MARK = "pyvenv.cfg"
"""The file at the top of a Python environment."""
# Files of an environment that every Python program in it loads,
# or every run of pytest (as its plugins).
_STARTED_FILE = re.compile(
    r"(?:.*/)?site-packages/(?:[^/]+\.pth|(?:site|user)customize(?:[./].+)?|[^/]+\.dist-info/entry_points\.txt)"
)
# The most files of packages, and packages, whose files are hashed:
# create-react-app has about 1,000.
_MAX_PACKAGE_FILES = 20_000
_MAX_PACKAGES = 1_500
_MAX_RECORD_BYTES = 4 * 1024 * 1024
_LOADED_SUFFIXES = (".py", ".so", ".pyd", ".js", ".cjs", ".mjs", ".json", ".node")
# Folders that Python searches for modules if the project has them, besides those of its tests.
_SOURCE_FOLDERS = (".", "src", "lib")
# Programs that load plugins by themselves: all distributions with such an
# entry point belong to them.
_PLUGIN_GROUPS = {"pytest": b"[pytest11]"}


def list_runner_files(root: Path, words: Iterable[str]) -> Iterator[str]:
    """Yield the relative names of the files that programs named by `words` load from
    environments of the project.
    """
    names = {word.rpartition("/")[2] for word in words}
    below = itertools.chain(_list_python_files(root, names), _list_node_files(root, names))
    for path in itertools.islice(below, _MAX_PACKAGE_FILES):
        yield os.path.relpath(path, root)


def is_started(name: str) -> bool:
    """Return whether a file of an environment acts by its mere presence,
    so that a new one counts as a change.
    """
    return _STARTED_FILE.fullmatch(name) is not None


def read_started_part(name: str, data: bytes) -> bytes:
    """Return the part of such a file that acts: the lines of a `.pth` that Python runs,
    the plugins of pytest.
    """
    file = name.rpartition("/")[2]
    if file.endswith(".pth"):
        return b"\n".join(
            line for line in data.splitlines() if line.startswith((b"import ", b"import\t"))
        )
    if file == "entry_points.txt":
        sections = re.split(rb"(?m)^(?=\[)", data)
        return b"".join(
            each for each in sections if any(map(each.startswith, _PLUGIN_GROUPS.values()))
        )
    return data


def list_hiding_modules(root: Path, names: Iterable[str]) -> Iterator[str]:
    """Yield the files and packages of a project that Python loads in place of
    others of the same name.

    These hide a module of Python, of pytest, or one of the tests among `names` (a package
    or a library beside it).
    """
    names = set(names)
    tests = {name for name in names if name.endswith(".py")}
    hidden = sys.stdlib_module_names | {"pytest", "_pytest", "pluggy", "iniconfig"}
    folders = dict.fromkeys(
        (*_SOURCE_FOLDERS, *(_find_module_folder(root, name) for name in tests))
    )
    for folder in folders:
        for path in _list_folder(root / folder):
            if path.name.partition(".")[0] in hidden and (file := _find_module(path)) is not None:
                yield os.path.relpath(file, root)
    for name in tests:
        file = root / name
        for path in (file.with_suffix(""), *file.parent.glob(f"{_escape(file.stem)}.*so")):
            if (found := _find_module(path)) is not None:
                yield os.path.relpath(found, root)


def _find_module_folder(root: Path, name: str) -> str:
    """Return the folder that Python searches for modules when it loads a test:
    the one above its packages.
    """
    folder = (root / name).parent
    while folder != root and (folder / "__init__.py").is_file():
        folder = folder.parent
    return os.path.relpath(folder, root)


def _find_module(path: Path) -> Path | None:
    """Return the file that Python loads for a module at a path: itself,
    or what makes a folder a package; or None.
    """
    if path.suffix in {".py", ".so", ".pyd", ".pyc"}:
        return path if path.is_file() else None
    starts = (path / f"__init__{end}" for end in (".py", ".pyc", ".so"))
    return None if "." in path.name else next((each for each in starts if each.is_file()), None)


def _escape(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)


def _list_folder(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _list_python_files(root: Path, names: set[str]) -> Iterator[Path]:
    """Yield what programs of these names load from the project's Python environments."""
    for environment in _list_folder(root):
        if not (environment / ENVIRONMENT_MARK).is_file():
            continue
        yield environment / ENVIRONMENT_MARK
        yield from (
            path for path in _list_folder(environment / "bin") if path.name.startswith("python")
        )
        for site in environment.glob("lib/python*/site-packages"):
            entries = _list_folder(site)
            for path in entries:
                if path.is_dir() and path.name.endswith("customize"):
                    yield from path.rglob("*.*")
                elif is_started(f"{site.name}/{path.name}"):
                    yield path
            distributions = {
                _normalise(each.name.split("-")[0]): each
                for each in entries
                if each.suffix == ".dist-info"
            }
            yield from (
                file
                for each in distributions.values()
                if (file := each / "entry_points.txt").is_file()
            )
            for each in _follow_distributions(distributions, {_normalise(name) for name in names}):
                yield from _list_recorded_files(site, each)


def _follow_distributions(distributions: Mapping[str, Path], names: set[str]) -> list[Path]:
    """Return the distributions of these names, with their plugins and with what they require."""
    wanted = [name for name in names if name in distributions]
    for runner, group in _PLUGIN_GROUPS.items():
        if runner in wanted:
            entry_points = {
                name: read_start_or_empty(folder / "entry_points.txt", _MAX_RECORD_BYTES)
                for name, folder in distributions.items()
            }
            wanted += [name for name, text in entry_points.items() if group in text]
    found: dict[str, Path] = {}
    while wanted and len(found) < _MAX_PACKAGES:
        name = wanted.pop()
        if name in found or name not in distributions:
            continue
        found[name] = distributions[name]
        metadata = read_start_or_empty(found[name] / "METADATA", _MAX_RECORD_BYTES).decode(
            "utf-8", "replace"
        )
        required = re.findall(r"(?m)^Requires-Dist:\s*([\w.-]+)((?:.*extra\s*==)?)", metadata)
        wanted += [_normalise(each) for each, extra in required if not extra]
    return [*found.values()]


def _list_recorded_files(site: Path, distribution: Path) -> Iterator[Path]:
    """Yield the files with code that a distribution has installed;
    none of one from a folder, such as the project.
    """
    if b"file:" in read_start_or_empty(distribution / "direct_url.json", _MAX_RECORD_BYTES):
        return
    # Imported late: few folders have environments.
    import csv

    text = read_start_or_empty(distribution / "RECORD", _MAX_RECORD_BYTES).decode(
        "utf-8", "replace"
    )
    # Imported late: only an environment with packages has such a list.

    for row in csv.reader(text.splitlines()):
        if row and row[0].endswith(_LOADED_SUFFIXES):
            yield Path(os.path.normpath(site / row[0]))


def _normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _list_node_files(root: Path, names: set[str]) -> Iterator[Path]:
    """Yield what programs of these names load from `node_modules`: their links, their packages,
    and what these need.
    """
    modules = root / "node_modules"
    wanted: list[Path] = []
    for name in sorted(names):
        program = modules / ".bin" / name
        if os.path.lexists(program):
            yield program
            wanted += [
                _find_package(Path(os.path.realpath(program))),
                Path(os.path.realpath(modules / name)),
            ]
    found: set[Path] = set()
    while wanted and len(found) < _MAX_PACKAGES:
        package = wanted.pop()
        manifest = _read_manifest(package)
        # Outside of `node_modules` it is a package of the project itself,
        # which the work may change.
        if package in found or manifest is None or "node_modules" not in package.parts:
            continue
        found.add(package)
        for top, folders, files in os.walk(package):
            # Packages that a package holds are followed where they are needed.
            folders[:] = [each for each in folders if each != "node_modules"]
            yield from (Path(top, each) for each in files if each.endswith(_LOADED_SUFFIXES))
        needed = [
            each for key in ("dependencies", "peerDependencies") for each in manifest.get(key) or ()
        ]
        wanted += [
            place for each in needed if (place := _resolve_package(package, each, root)) is not None
        ]


def _find_package(file: Path) -> Path:
    """Return the folder of the package that a file belongs to."""
    return next((each for each in file.parents if (each / "package.json").is_file()), file)


def _read_manifest(package: Path) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(
            read_start_or_empty(package / "package.json", _MAX_RECORD_BYTES), type=dict[str, Any]
        )
    except ValueError:
        return None


def _resolve_package(package: Path, name: str, root: Path) -> Path | None:
    """Return the folder of a package that another one loads by its name;
    None: there is none in the project.
    """
    for folder in (package, *package.parents):
        place = folder / "node_modules" / name
        if (place / "package.json").is_file():
            return Path(os.path.realpath(place))
        if folder == root:
            break
    return None
