"""Explains a missing module: which of the project's dependency lists has it,
and the command that installs it.

It also finds packages that tests need and that are not installed. A few small files near the folder
of the failed command are read; nothing is run or fetched.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from codeloop.kit.jsonc import is_list, is_object
from codeloop.kit.programs import PROJECT_PROGRAM_FOLDERS, find_program
from codeloop.kit.small_files import read_start

# A larger file is not read.
_MAX_FILE_BYTES = 256 * 1024
# `ModuleNotFoundError: No module named 'yaml.loader'`
_PYTHON_ERROR = r"(?:ModuleNotFoundError|ImportError): No module named '?([A-Za-z_]\w*)"
# `Cannot find module '@scope/name/file.js'`
_NODE_ERROR = r"Cannot find (?:module|package) '((?:@[\w.-]+/)?[a-z][\w.-]*)"
# Names that may be repeated to the model as part of a command.
_SAFE_NAME = r"(?a)[A-Za-z0-9][\w.-]{0,60}"
_REQUIREMENTS_GLOBS = ("requirements*.txt", "*requirements.txt", "requirements/*.txt")
_MAX_LISTS = 20
# Module -> package, where the names differ.
_PACKAGES_BY_MODULE = {
    "yaml": "pyyaml", "PIL": "pillow", "cv2": "opencv-python", "bs4": "beautifulsoup4", "sklearn": "scikit-learn",
    "dateutil": "python-dateutil", "dotenv": "python-dotenv", "attr": "attrs", "git": "gitpython", "jwt": "pyjwt",
    "OpenSSL": "pyopenssl", "serial": "pyserial", "zmq": "pyzmq", "Crypto": "pycryptodome",
    "pkg_resources": "setuptools", "google": "protobuf", "psycopg2": "psycopg2-binary", "xdist": "pytest-xdist",
    "websocket": "websocket-client",
}  # fmt: skip


# The usual names of groups of dependencies: those for tests alone,
# and those for development in general.
_TEST_GROUPS = ("test", "tests", "testing")
_DEV_GROUPS = ("dev", "develop", "development")
_MAX_SHOWN_PACKAGES = 5


class _Declaration(NamedTuple):
    """A clause on the list that declares a package, and the command that installs it."""

    list_clause: str
    command: str


def _declare_extra(name: str, *, uses_uv: bool) -> _Declaration:
    command = f"uv sync --extra {name}" if uses_uv else f"pip install -e '.[{name}]'"
    return _Declaration(f"in the extra `{name}` of pyproject.toml", command)


def _declare_group(name: str, *, uses_uv: bool) -> _Declaration:
    command = f"uv sync --group {name}" if uses_uv else f"pip install --group {name}"
    return _Declaration(f"in the group `{name}` of pyproject.toml", command)


def explain_missing_module(output: str, folder: Path, root: Path) -> str:
    """Return a sentence on the module that a command did not find;
    "" when none is missing, or no list has it.

    The lists are those of the nearest folder from `folder` up to `root` that
    has one with the module.
    """
    python_errors, node_errors = (
        [*re.finditer(_PYTHON_ERROR, output)],
        [*re.finditer(_NODE_ERROR, output)],
    )
    if not python_errors and not node_errors:
        return ""
    name = (python_errors or node_errors)[-1][1]
    find_declarations = _find_python_declarations if python_errors else _find_node_declarations
    folders = [each for each in (folder, *folder.parents) if each.is_relative_to(root)]
    for each in folders:
        for declaration in find_declarations(each, name):
            return f"`{name}` is {declaration.list_clause}; it is not installed. To install it: {declaration.command}"
    return ""


def describe_missing_test_packages(folder: Path, root: Path, environment: Mapping[str, str]) -> str:
    """Return a sentence on the packages that tests need, by the project's own lists,
    and that are not installed.

    "" when none is missing, or when that is unknown: there is no list, or no Python whose packages
    can be listed. In groups that are for more than tests (`dev`),
    only pytest and its plugins count.
    """
    folders = [each for each in (folder, *folder.parents) if each.is_relative_to(root)]
    for each in folders:
        if (each / "package.json").is_file() and not (each / "node_modules").is_dir():
            command = next((found.command for found in _find_node_declarations(each, None)), "")
            if command:
                return (
                    f"What package.json lists is not installed here: there is no "
                    f"node_modules. To install it: {command}"
                )
        wanted = [*_list_test_packages(each)]
        installed = _list_installed(each, environment) if wanted else frozenset[str]()
        for names, declaration in wanted if installed else ():
            missing = sorted(name for name in names if name not in installed)
            if missing:
                hidden_count = len(missing) - _MAX_SHOWN_PACKAGES
                rest = f" and {hidden_count} more" if hidden_count > 0 else ""
                verb = "is" if len(missing) == 1 else "are"
                listed = (
                    f"{', '.join(missing[:_MAX_SHOWN_PACKAGES])}{rest}, {declaration.list_clause},"
                )
                return f"Tests here may need {listed} which {verb} not installed. To install: {declaration.command}"
    return ""


def _list_test_packages(folder: Path) -> Iterator[tuple[set[str], _Declaration]]:
    """Yield the names of the packages that tests need, a set for each list,
    with the list's declaration.
    """
    project, uses_uv = _read_toml(folder / "pyproject.toml"), (folder / "uv.lock").is_file()
    extras = _get_table(_get_table(project, "project"), "optional-dependencies")
    groups = _get_table(project, "dependency-groups")
    for group in (*_TEST_GROUPS, *_DEV_GROUPS):
        if names := _choose_for_tests(group, extras.get(group)):
            yield names, _declare_extra(group, uses_uv=uses_uv)
        if names := _choose_for_tests(group, groups.get(group)):
            yield names, _declare_group(group, uses_uv=uses_uv)
        for path in (
            folder / f"requirements-{group}.txt",
            folder / "requirements" / f"{group}.txt",
        ):
            if names := _choose_for_tests(
                group, _read(path).decode("utf-8", "replace").splitlines()
            ):
                name = path.relative_to(folder).as_posix()
                yield names, _Declaration(f"in {name}", f"pip install -r {name}")


def _choose_for_tests(group: str, requirements: Any) -> set[str]:
    """Return the names in a list of requirements that tests need everywhere: those
    with conditions are left out.
    """
    if not is_list(requirements):
        return set()
    # `colorama; sys_platform == "win32"` has a condition.
    unconditional = [each for each in requirements if isinstance(each, str) and ";" not in each]
    return {
        name
        for name in _read_package_names(unconditional)
        if group in _TEST_GROUPS or name.startswith("pytest")
    }


def _list_installed(folder: Path, environment: Mapping[str, str]) -> frozenset[str]:
    """Return the normalized names of the packages of the project's Python, else of that on PATH;
    empty: not known.
    """
    project_folders = (folder / name for name in PROJECT_PROGRAM_FOLDERS)
    program_folder = next((each for each in project_folders if (each / "python").exists()), None)
    on_path = find_program("python", environment.get("PATH")) or find_program(
        "python3", environment.get("PATH")
    )
    if program_folder is None and on_path:
        program_folder = Path(on_path).parent
    if program_folder is None:
        return frozenset()
    if not (program_folder.parent / "pyvenv.cfg").is_file() and on_path:
        # Not a virtual environment: its packages are next to the program that links lead to.
        program_folder = Path(os.path.realpath(on_path)).parent
    try:
        # Debian has its packages in `dist-packages`.
        top = program_folder.parent
        folders = [
            each for name in ("site", "dist") for each in top.glob(f"lib/python3*/{name}-packages")
        ]
        entries = [each.name for folder in folders for each in folder.iterdir()]
    except OSError:
        return frozenset()
    # `PyYAML-6.0.2.dist-info`
    names = [name for name in entries if name.endswith((".dist-info", ".egg-info"))]
    return frozenset(_normalize(name.rpartition(".")[0].partition("-")[0]) for name in names)


def _find_python_declarations(folder: Path, module: str) -> Iterator[_Declaration]:
    """Yield the lists of a folder that have the package of a module,
    and the project's own module of that name.
    """
    if (folder / module / "__init__.py").is_file() or (folder / f"{module}.py").is_file():
        yield _Declaration("in this folder", f"run from {folder}, or with PYTHONPATH={folder}")
    if (folder / "src" / module).is_dir():
        yield _Declaration("this project's own, below src", "pip install -e . (or PYTHONPATH=src)")
    names = {_normalize(module), _normalize(_PACKAGES_BY_MODULE.get(module, module))}
    project, uses_uv = _read_toml(folder / "pyproject.toml"), (folder / "uv.lock").is_file()
    project_table = _get_table(project, "project")
    if names & _read_package_names(project_table.get("dependencies")):
        yield _Declaration(
            "a dependency of pyproject.toml", "uv sync" if uses_uv else "pip install -e ."
        )
    for extra, requirements in _get_table(project_table, "optional-dependencies").items():
        if names & _read_package_names(requirements) and re.fullmatch(_SAFE_NAME, extra):
            yield _declare_extra(extra, uses_uv=uses_uv)
    for group, requirements in _get_table(project, "dependency-groups").items():
        if names & _read_package_names(requirements) and re.fullmatch(_SAFE_NAME, group):
            yield _declare_group(group, uses_uv=uses_uv)
    poetry = _get_table(_get_table(project, "tool"), "poetry")
    for group, table in _get_table(poetry, "group").items():
        if names & _read_package_names([*_get_table(table, "dependencies")]) and re.fullmatch(
            _SAFE_NAME, group
        ):
            yield _Declaration(
                f"in the group `{group}` of pyproject.toml", f"poetry install --with {group}"
            )
    if names & _read_package_names([*_get_table(poetry, "dependencies")]):
        yield _Declaration("a dependency of pyproject.toml", "poetry install")
    lists = [
        path
        for pattern in _REQUIREMENTS_GLOBS
        for path in sorted(folder.glob(pattern))[:_MAX_LISTS]
    ]
    for path in lists:
        if re.fullmatch(_SAFE_NAME, path.name) and names & _read_package_names(
            _read(path).decode("utf-8", "replace").splitlines()
        ):
            name = path.relative_to(folder).as_posix()
            yield _Declaration(f"in {name}", f"pip install -r {name}")


def _find_node_declarations(folder: Path, module: str | None) -> Iterator[_Declaration]:
    """Yield the lists of package.json that have a package.
    `module` None: those that have any package.
    """
    try:
        package_json: Any = msgspec.json.decode(_read(folder / "package.json") or b"{}")
    except (msgspec.DecodeError, RecursionError):
        return
    locks = {
        "pnpm-lock.yaml": "pnpm install",
        "yarn.lock": "yarn install",
        "bun.lock": "bun install",
    }
    command = next(
        (command for lock, command in locks.items() if (folder / lock).is_file()), "npm install"
    )
    for key in ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies"):
        listed = _get_table(package_json, key)
        if module in listed or (module is None and listed):
            yield _Declaration(f"in the {key} of package.json", command)


def _read(path: Path) -> bytes:
    """Return a small file; empty when it is missing or too large."""
    try:
        data = read_start(path, _MAX_FILE_BYTES + 1)
    except OSError:
        return b""
    return data if len(data) <= _MAX_FILE_BYTES else b""


def _read_toml(path: Path) -> Mapping[str, Any]:
    data = _read(path)
    if not data:
        return {}
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8", "replace"))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _get_table(value: Any, key: str) -> Mapping[str, Any]:
    table = value.get(key) if is_object(value) else None
    return table if is_object(table) else {}


def _read_package_names(requirements: Any) -> set[str]:
    """Return the normalized names of the packages in a list of requirements;
    none for anything but a list.
    """
    texts = (
        [each.strip() for each in requirements if isinstance(each, str)]
        if is_list(requirements)
        else []
    )
    return {
        _normalize(match[0]) for text in texts if (match := re.match(r"[A-Za-z0-9][\w.-]*", text))
    }


def _normalize(name: str) -> str:
    """Return the name of a Python package as indexes compare it: `Foo_Bar.baz` -> `foo-bar-baz`."""
    return re.sub(r"[-_.]+", "-", name).lower()
