"""The project's environment (Python's interpreter, Yarn's copy of TypeScript),
as language servers are told of it.

Rows of `servers.json` have places for it in their settings and options: a text that is `{python}`
as a whole is replaced by the path of the interpreter,
and left out with its key where there is none.
"""

import base64
import hashlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from codeloop.kit.jsonc import is_list, is_object
from codeloop.kit.small_files import read_start

Places = Mapping[str, Any]
"""The values of places, by their names; those that are unknown here are missing."""

PYTHON, IMPORT_FOLDERS, YARN_TYPESCRIPT = "python", "python-imports", "yarn-typescript"
READ_ENVIRONMENT = "python-environment"
"""The folder of an environment that is not to be executed, for servers that only read it."""
_PLACE = r"\{([a-z-]+)\}"
_OWN_FOLDERS = (".venv", "venv", "env", ".pixi/envs/default", ".conda")
"""Where tools put the environment of a project, from its folder."""
_VERSION_FILES = (".tool-versions", "mise.toml", ".mise.toml")
_TEXT_BYTES = 4_096
_DIRENV_LINE = (
    r"""(?m)^[ \t]*(?:export[ \t]+)?(?:VIRTUAL_ENV|UV_PROJECT_ENVIRONMENT|CONDA_PREFIX)=["']?([^\s"'#;]+)"""
    r"""|^[ \t]*(?:source|\.|source_env)[ \t]+["']?([^\s"'#;]+)/bin/activate\b"""
)
"""A line of `.envrc` that names an environment."""
_DIRENV_LAYOUT = r"(?m)^[ \t]*layout[ \t_]+(?:python\S*|pipenv|uv|poetry)"
_DIRENV_NAMED = (
    r"(?m)^[ \t]*layout[ \t_]+(pyenv|anaconda|conda|mamba|micromamba|miniconda)[ \t]+([\w.-]+)"
)
_POETRY_PATH = r"""(?ms)^\[virtualenvs\][^\[]*?^path[ \t]*=[ \t]*["']([^"']+)"""
_PIPENV_FOLDER = ".local/share/virtualenvs"
_NAMING_FILES = (
    (
        r"""(?s)["']?venvPath["']?\s*[:=]\s*["']([^"']+)["'].*?\bvenv["']?\s*[:=]\s*["']([^"']+)""",
        "pyrightconfig.json",
    ),
    (r"""(?s)\bvenvPath\s*=\s*["']([^"']+)["'].*?\bvenv\s*=\s*["']([^"']+)""", "pyproject.toml"),
    (
        r"""["']python\.(?:defaultInterpreterPath|pythonPath)["']\s*:\s*["']([^"']+)""",
        ".vscode/settings.json",
    ),
    (r"""_\.python\.venv\s*=\s*(?:\{[^}]*?\bpath\s*=\s*)?["']([^"']+)""", "mise.toml"),
    (r"""_\.python\.venv\s*=\s*(?:\{[^}]*?\bpath\s*=\s*)?["']([^"']+)""", ".mise.toml"),
)
"""Patterns of an environment's folder (in one or two parts) or of its interpreter, with the file
that has it.
"""
_MISSING = object()


def fill_places(value: Any, places: Places) -> Any:
    """Return a value with its places filled; an object lacks the keys of those that are unknown."""
    filled = _fill(value, places)
    return None if filled is _MISSING else filled


def _fill(value: Any, places: Places) -> Any:
    if is_object(value):
        items = ((key, _fill(each, places)) for key, each in value.items())
        return {key: each for key, each in items if each is not _MISSING}
    if is_list(value):
        return [each for each in (_fill(item, places) for item in value) if each is not _MISSING]
    if isinstance(value, str) and (match := re.fullmatch(_PLACE, value)):
        return places.get(match[1], _MISSING)
    return value


def find_places(
    root: Path, top: Path, variables: Mapping[str, str], *, is_trusted: bool
) -> dict[str, Any]:
    """Return the values of places for a root of a project, whose work tree begins at `top`.

    Servers execute the interpreter that they are told. So of an untrusted project they are told
    only of an environment that the user has activated,
    and of others the folders that it imports from.
    """
    places: dict[str, Any] = {}
    found = find_python_environment(root, top, variables)
    if found is not None and (
        is_trusted or (found.is_activated and not _is_inside(found.folder, top))
    ):
        places[PYTHON] = str(found.folder / "bin/python")
    elif found is not None:
        places[READ_ENVIRONMENT] = str(found.folder)
        places[IMPORT_FOLDERS] = [
            str(each) for each in sorted(found.folder.glob("lib/python3*/site-packages"))
        ]
    if is_trusted:
        for folder in _list_folders(root, top):
            if (folder / ".yarn/sdks/typescript/lib/tsserver.js").is_file():
                places[YARN_TYPESCRIPT] = str(folder / ".yarn/sdks/typescript/lib")
                break
    return places


class PythonEnvironment(NamedTuple):
    """The folder of an environment, and whether the user has activated it."""

    folder: Path
    is_activated: bool


def find_python_environment(
    root: Path, top: Path, variables: Mapping[str, str]
) -> PythonEnvironment | None:
    """Return a project's Python environment, the one that its tools would use; None if it has none.

    An activated environment comes first, unless it is the one in which codeloop
    itself is installed.
    """
    named = (variables.get("VIRTUAL_ENV"), _find_activated_conda(variables))
    activated = [
        PythonEnvironment(Path(path), is_activated=True)
        for path in named
        if path and path.startswith("/")
    ]
    is_own = [os.path.realpath(each.folder) == os.path.realpath(sys.prefix) for each in activated]
    candidates = [
        *(each for each, own in zip(activated, is_own, strict=True) if not own),
        *(
            PythonEnvironment(path, is_activated=False)
            for folder in _list_folders(root, top)
            for path in _list_environments(folder, variables)
        ),
        *(each for each, own in zip(activated, is_own, strict=True) if own),
    ]
    return next(
        (each for each in candidates if os.access(each.folder / "bin/python", os.X_OK)), None
    )


def activate_python(variables: Mapping[str, str], places: Places) -> dict[str, str]:
    """Return the variables with those that name the interpreter's environment,
    as when it is activated.
    """
    if PYTHON not in places:
        return dict(variables)
    folder = Path(places[PYTHON]).parent.parent
    others = {
        name: value
        for name, value in variables.items()
        if name not in {"VIRTUAL_ENV", "CONDA_PREFIX"}
    }
    return {
        **others,
        "CONDA_PREFIX" if (folder / "conda-meta").is_dir() else "VIRTUAL_ENV": str(folder),
    }


def list_python_folders(places: Places) -> list[Path]:
    """Return the folders that a program needs to use the interpreter: its environment,
    and the one it is made from.
    """
    if PYTHON not in places:
        return []
    folder = Path(places[PYTHON]).parent.parent
    base = re.search(r"(?m)^home[ \t]*=[ \t]*(/.+?)/bin[ \t]*$", _read_text(folder / "pyvenv.cfg"))
    return [folder, Path(base[1])] if base else [folder]


def _is_inside(path: Path, top: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(top))


def _find_activated_conda(variables: Mapping[str, str]) -> str | None:
    # The base environment is activated in each terminal of many users: it says
    # nothing about the project.
    is_base = variables.get("CONDA_DEFAULT_ENV") == "base"
    return None if is_base else variables.get("CONDA_PREFIX")


def _list_folders(root: Path, top: Path) -> list[Path]:
    """Return the folders from a root up to the top of the work tree."""
    above = [folder for folder in root.parents if folder.is_relative_to(top)]
    return [root, *above]


def _list_environments(folder: Path, variables: Mapping[str, str]) -> Iterator[Path]:
    """Yield where the tools that a folder is set up for put its environment; it need not exist."""
    home = Path(variables.get("HOME") or "/nonexistent")
    if named := variables.get("UV_PROJECT_ENVIRONMENT"):
        yield folder / named
    yield from _list_direnv_environments(folder, home, variables)
    for name in _OWN_FOLDERS:
        yield folder / name
    yield from _list_named_environments(folder, home, variables)
    yield from sorted((folder / ".pixi/envs").glob("*"))
    # PDM writes the path of the interpreter.
    if interpreter := _read_line(folder / ".pdm-python"):
        yield Path(interpreter).parent.parent
    # Elsewhere by a hash of the project's path: poetry, hatch, pipenv. By name: conda.
    if (folder / "pyproject.toml").is_file():
        mark = _hash(os.path.normcase(os.path.realpath(folder)), 32)[:8]
        for place in _list_poetry_folders(folder, home, variables):
            yield from sorted(place.glob(f"*-{mark}-py*"), reverse=True)
        data = Path(variables.get("XDG_DATA_HOME") or home / ".local/share") / "hatch"
        kept = Path(variables.get("HATCH_DATA_DIR") or data) / "env/virtual"
        yield from sorted(kept.glob(f"*/{mark}/*"), key=lambda path: path.name != path.parts[-3])
    if (folder / "Pipfile").is_file():
        place = Path(variables.get("WORKON_HOME") or home / _PIPENV_FOLDER)
        yield from sorted(place.glob(f"*-{_hash(str(folder / 'Pipfile'), 6)}*"))
    yield from _list_conda_environments(folder, home, variables)
    # By a name of the user's own, and those of direnv and pixi.
    for pattern in ("*/pyvenv.cfg", ".direnv/*/bin", ".pixi/envs/*/bin"):
        yield from (path.parent for path in sorted(folder.glob(pattern)))
    yield from _list_versions(folder, home, variables)


def _list_named_environments(
    folder: Path, home: Path, variables: Mapping[str, str]
) -> Iterator[Path]:
    """Yield the environments elsewhere that a file of the folder names, or that name the folder."""
    places = (Path(variables.get("WORKON_HOME") or home / ".virtualenvs"), home / _PIPENV_FOLDER)
    if named := _read_line(folder / ".venv"):
        # A file in place of the folder: a path, or a name where such tools keep them.
        yield from (place / _expand(named, folder, home) for place in (folder, *places))
    for pattern, name in _NAMING_FILES:
        for match in re.finditer(pattern, _read_text(folder / name)):
            path = folder / _expand("/".join(filter(None, match.groups())), folder, home)
            is_interpreter = path.parent.name == "bin" and not (path / "bin").is_dir()
            yield path.parent.parent if is_interpreter else path
    for place in places:
        for mark in sorted(place.glob("*/.project")):
            if os.path.realpath(_read_line(mark)) == os.path.realpath(folder):
                yield mark.parent


def _expand(text: str, folder: Path, home: Path) -> str:
    for name in ("$HOME", "${HOME}", "${env:HOME}", "~"):
        text = text.replace(name, str(home))
    for name in ("$PWD", "${PWD}", "$(pwd)", "${workspaceFolder}", "{{config_root}}"):
        text = text.replace(name, str(folder))
    return text


def _list_conda_environments(
    folder: Path, home: Path, variables: Mapping[str, str]
) -> Iterator[Path]:
    text = _read_text(folder / "environment.yml") or _read_text(folder / "environment.yaml")
    if prefix := re.search(r"(?m)^prefix:[ \t]*(/.+?)[ \t]*$", text):
        yield Path(prefix[1])
    if name := re.search(r"(?m)^name:[ \t]*([\w.-]+)", text):
        for place in _list_conda_folders(home, variables):
            yield place / "envs" / name[1]
        listed = map(Path, _read_text(home / ".conda/environments.txt").splitlines())
        yield from (path for path in listed if path.is_absolute() and path.name == name[1])


def _list_versions(folder: Path, home: Path, variables: Mapping[str, str]) -> Iterator[Path]:
    """Yield the installations of Python that a version manager uses in a folder: pyenv, asdf,
    mise.
    """
    if name := _read_line(folder / ".python-version"):
        yield Path(variables.get("PYENV_ROOT") or home / ".pyenv") / "versions" / name
    text = "\n".join(_read_text(folder / name) for name in _VERSION_FILES)
    for found in re.finditer(r"""(?m)^python[ \t]*(?:=[ \t]*["'])?[ \t]*([\w.-]+)""", text):
        asdf = Path(variables.get("ASDF_DATA_DIR") or home / ".asdf")
        mise = Path(variables.get("MISE_DATA_DIR") or home / ".local/share/mise")
        yield from (place / "installs/python" / found[1] for place in (asdf, mise))


def _list_direnv_environments(
    folder: Path, home: Path, variables: Mapping[str, str]
) -> Iterator[Path]:
    """Yield the environments that a folder's `.envrc` activates, as far as it can be read
    without being run.
    """
    text = _read_text(folder / ".envrc")
    for match in re.finditer(_DIRENV_LINE, text):
        path = _expand(match[1] or match[2], folder, home)
        if "$" not in path:
            yield folder / path
    if re.search(_DIRENV_LAYOUT, text):
        yield from sorted((folder / ".direnv").glob("python-*"), reverse=True)
    for match in re.finditer(_DIRENV_NAMED, text):
        if match[1] == "pyenv":
            yield Path(variables.get("PYENV_ROOT") or home / ".pyenv") / "versions" / match[2]
        else:
            for place in _list_conda_folders(home, variables):
                yield place / "envs" / match[2]


def _list_poetry_folders(folder: Path, home: Path, variables: Mapping[str, str]) -> list[Path]:
    if named := variables.get("POETRY_VIRTUALENVS_PATH"):
        return [Path(named)]
    caches = [
        Path(variables.get("XDG_CACHE_HOME") or home / ".cache") / "pypoetry",
        home / "Library/Caches/pypoetry",
    ]
    if named := variables.get("POETRY_CACHE_DIR"):
        caches.insert(0, Path(named))
    settings = Path(variables.get("XDG_CONFIG_HOME") or home / ".config") / "pypoetry/config.toml"
    set_paths = [
        Path(found[1].replace("{cache-dir}", str(caches[0])).replace("~", str(home)))
        for file in (folder / "poetry.toml", settings)
        if (found := re.search(_POETRY_PATH, _read_text(file)))
    ]
    return [*set_paths, *(cache / "virtualenvs" for cache in caches)]


def _list_conda_folders(home: Path, variables: Mapping[str, str]) -> list[Path]:
    named = (variables.get(name) for name in ("CONDA_ROOT", "MAMBA_ROOT_PREFIX"))
    usual = ("miniconda3", "miniforge3", "mambaforge", "anaconda3", "micromamba", ".conda")
    return [*(Path(each) for each in named if each), *(home / name for name in usual)]


def _hash(text: str, byte_count: int) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:byte_count]).decode()


def _read_line(file: Path) -> str:
    lines = _read_text(file).split("\n", 1)
    return lines[0].strip()


def _read_text(file: Path) -> str:
    try:
        return read_start(file, _TEXT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
