"""The files that decide a project's checks: tests, their configuration, build files, and the scripts that they run."""

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from codeloop.kit.glob import compile_glob
from codeloop.kit.processes import find_program
from codeloop.kit.small_files import read_start

TESTS = (
    "**/{test,tests,spec,specs,__tests__,e2e,testdata,fixtures}/**",
    "**/{test_*.*,*_test.*,*.test.*,*.spec.*,*_spec.*,*Test.*,*Tests.*}",
)
"""Tests that were there when the work began. New ones may be added."""
SETTINGS = (
    "**/{conftest.py,pytest.ini,.pytest.ini,tox.ini,setup.cfg,noxfile.py,sitecustomize.py,usercustomize.py}",
    "**/{Makefile,makefile,GNUmakefile,*.mk,justfile,Justfile,.justfile,Rakefile,.rspec,phpunit.xml*}",
    "**/{Taskfile.yml,Taskfile.yaml,package.json,pyproject.toml,tsconfig*.json,biome.json,biome.jsonc}",
    "**/{jest.config.*,vitest.config.*,karma.conf.*,.mocharc*,.eslintrc*,eslint.config.*,.eslintignore,.prettierrc*}",
    "**/{ruff.toml,.ruff.toml,mypy.ini,.mypy.ini,pyrightconfig.json,.flake8,.pylintrc,.coveragerc,clippy.toml}",
    "**/{.golangci.yml,.golangci.yaml,.pre-commit-config.yaml,.gitlab-ci.yml}",
    "**/{.github,.ci,.circleci}/**",
)
"""What decides which tests run and how. A new one counts as a change."""
_SKIPPED = frozenset(
    (".git", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox", ".mypy_cache", ".pytest_cache", "target")
)
_ENTRIES = 200_000
"""The most files that are looked at."""
_FILE = 16 * 1024 * 1024
"""How many bytes of a file are hashed."""
_SCRIPT = 256 * 1024
_DEPTH = 3
"""How deep scripts that run scripts are followed."""
_WORD = re.compile(r"[\w./@+-]+")
_RECIPES = re.compile(r"(?:^|/)(?:(?:GNUm|M|m)akefile|[^/]*\.(?:mk|sh|bash)|\.?[Jj]ustfile|package\.json)$")
_CHECKER = re.compile(r"(?:test|check|lint|verif|spec)[^/]*$", re.IGNORECASE)
"""Names of programs that are no more than a check."""
_RUNNERS = ("GNUmakefile", "makefile", "Makefile", "justfile", "package.json")
_NOT_CHECKS = {
    "pyproject.toml": ("poetry", "uv", "setuptools"),
    "package.json": ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies", "version"),
}
"""Sections of these files that don't affect checks, so that a dependency may be added."""


def hash_check_files(
    root: Path, commands: Sequence[str], path: str | None, protect: Sequence[str] = (), unprotect: Sequence[str] = ()
) -> dict[str, str]:
    """Hash the files below `root` that decide the outcome of the checks `commands`; returns relative name -> hash.

    `path`: the PATH that programs are found on. `protect`, `unprotect`: globs of further files, and of those that may
    be changed. Raises ValueError for a glob that is not valid.
    """
    patterns = compile_patterns((*TESTS, *SETTINGS, *protect))
    free = compile_patterns(unprotect)
    names = {name for name in _walk(root) if any(each.fullmatch(name) for each in patterns)}
    names |= _find_scripts(root, commands, path)
    return {name: _hash(root, name) for name in sorted(names) if not any(each.fullmatch(name) for each in free)}


def list_changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Describe each change of a check file in a phrase: `tests/test_a.py was changed`."""
    settings = compile_patterns(SETTINGS)
    deletions = [f"{name} was deleted" for name in before.keys() - now.keys()]
    deletions += [f"{name} was changed" for name in before.keys() & now.keys() if before[name] != now[name]]
    added = now.keys() - before.keys()
    deletions += [f"{name} was added" for name in added if any(each.fullmatch(name) for each in settings)]
    return sorted(deletions)


def compile_patterns(patterns: Iterable[str]) -> list[re.Pattern[str]]:
    """Compile globs: a plain name matches in any folder, `folder/` matches everything in it.

    Raises ValueError for one that is not valid.
    """
    compiled: list[re.Pattern[str]] = []
    for pattern in patterns:
        text = pattern.removeprefix("./")
        text += "**" if text.endswith("/") else ""
        compiled.append(compile_glob(text if "/" in text else f"**/{text}"))
    return compiled


def _walk(root: Path) -> Iterator[str]:
    """Yield the relative names of the files below a folder, skipping the folders that tools create."""
    remaining = _ENTRIES
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(each for each in folders if each not in _SKIPPED)
        for name in files:
            yield os.path.relpath(f"{folder}/{name}", root)
        remaining -= len(files) + len(folders)
        if remaining < 0:
            return


def _find_scripts(root: Path, commands: Sequence[str], path: str | None) -> set[str]:
    """Return the files below `root` that the commands name, run through scripts, or find on the PATH."""
    scripts: set[str] = set()
    texts = [*commands, *(_read(root / file) for file in _RUNNERS)]
    for depth in range(_DEPTH):
        words = dict.fromkeys(word for text in texts for word in _WORD.findall(text))
        new = {name for word in words if (name := _name_script(root, word, path, is_given=depth == 0)) is not None}
        texts = [_read(root / name) for name in new - scripts if _RECIPES.search(name) or _is_shell(root / name)]
        scripts |= new
        if not texts:
            break
    return scripts


def _name_script(root: Path, word: str, path: str | None, *, is_given: bool) -> str | None:
    """Return the relative name of the script or program below `root` that a word refers to, or None."""
    file = root / word
    if "/" not in word and is_given and not file.is_file():
        program = find_program(word, path, in_project=True)
        file = Path(program) if program is not None else file
    if not file.is_file() or not _is_below(file, root):
        return None
    is_script = any(each.search(str(file)) for each in (_RECIPES, _CHECKER)) or os.access(file, os.X_OK)
    return os.path.relpath(file, root) if is_script else None


def _is_below(file: Path, root: Path) -> bool:
    return Path(os.path.normpath(file)).is_relative_to(root)


def _read(file: Path) -> str:
    try:
        return read_start(file, _SCRIPT).decode("utf-8", "replace")
    except OSError:
        return ""


def _is_shell(file: Path) -> bool:
    first = _read(file)[:80].partition("\n")[0]
    return first.startswith("#!") and first.rstrip().endswith(("sh", "bash"))


def _hash(root: Path, name: str) -> str:
    """Hash the part of a file that affects checks; an unreadable file gets a constant."""
    try:
        data = read_start(root / name, _FILE)
        mode = "x" if os.access(root / name, os.X_OK) else "-"
    except (OSError, ValueError):
        return "unreadable"
    return mode + hashlib.sha256(_about_checks(name, data)).hexdigest()


def _about_checks(name: str, data: bytes) -> bytes:
    file = Path(name).name
    other: Iterable[str] = _NOT_CHECKS.get(file, ())
    try:
        match file:
            case "package.json":
                table = json.loads(data)
            case "pyproject.toml":
                table = tomllib.loads(data.decode())["tool"]
            case _:
                return data
        other_entries = {key: value for key, value in table.items() if key not in other}
        return json.dumps(other_entries, sort_keys=True, default=str).encode()
    except (ValueError, KeyError, AttributeError):  # malformed: all of it counts
        return data
