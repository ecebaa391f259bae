"""Hashes the files that decide a project's checks: tests, their settings, build files, and the scripts that they run.

By the hashes a goal's run notices that its checks were changed instead of its code. The globs also tell what kind of
file a turn has changed (`agent/checks/file_kinds.py`).
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from codeloop.kit.glob import compile_glob
from codeloop.kit.programs import find_program
from codeloop.kit.small_files import read_start
from codeloop.kit.text.patterns import compile_once

# Existing tests must not be changed; new ones may be added.
TEST_GLOBS = (
    "**/{test,tests,spec,specs,__tests__,e2e,testdata,fixtures}/**",
    "**/{test_*.*,*_test.*,*.test.*,*.spec.*,*_spec.*,*Test.*,*Tests.*}",
)
# Files that decide which tests run, and how. A new one counts as a change.
SETTINGS_GLOBS = (
    "**/{conftest.py,pytest.ini,.pytest.ini,tox.ini,setup.cfg,noxfile.py,sitecustomize.py,usercustomize.py}",
    "**/{Makefile,makefile,GNUmakefile,*.mk,justfile,Justfile,.justfile,Rakefile,.rspec,phpunit.xml*}",
    "**/{Taskfile.yml,Taskfile.yaml,package.json,pyproject.toml,tsconfig*.json,biome.json,biome.jsonc}",
    "**/{jest.config.*,vitest.config.*,karma.conf.*,.mocharc*,.eslintrc*,eslint.config.*,.eslintignore,.prettierrc*}",
    "**/{ruff.toml,.ruff.toml,mypy.ini,.mypy.ini,pyrightconfig.json,.flake8,.pylintrc,.coveragerc,clippy.toml}",
    "**/{.golangci.yml,.golangci.yaml,.pre-commit-config.yaml,.gitlab-ci.yml}",
    "**/{.github,.ci,.circleci}/**",
)
_SKIPPED_FOLDERS = frozenset(
    (".git", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox", ".mypy_cache", ".pytest_cache", "target")
)
# The most files and folders of a project that are listed.
_MAX_ENTRIES = 200_000
# The bytes of a file that are hashed, and those of a script that are searched for other scripts.
_MAX_HASHED_BYTES = 16 * 1024 * 1024
_MAX_SCRIPT_BYTES = 256 * 1024
# Scripts that run scripts are followed to this depth.
_MAX_SCRIPT_DEPTH = 3
_WORD = r"[\w./@+-]+"
_SCRIPT_FILE = r"(?:^|/)(?:(?:GNUm|M|m)akefile|[^/]*\.(?:mk|sh|bash)|\.?[Jj]ustfile|package\.json)$"
# Names of programs that are likely to be checks.
_CHECK_PROGRAM = r"(?i)(?:test|check|lint|verif|spec)[^/]*$"
_RUNNER_FILES = ("GNUmakefile", "makefile", "Makefile", "justfile", "package.json")
# Sections of these files that don't affect checks: dependencies may be added. Those of pyproject.toml are below `tool`.
_UNRELATED_SECTIONS = {
    "pyproject.toml": ("poetry", "uv", "setuptools"),
    "package.json": ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies", "version"),
}


def hash_check_files(
    root: Path, commands: Sequence[str], path: str | None, protect: Sequence[str] = (), unprotect: Sequence[str] = ()
) -> dict[str, str]:
    """Hash the files below `root` that decide the outcome of the checks `commands`; returns relative name -> hash.

    `path`: the PATH that programs are found on. `protect`, `unprotect`: globs of further files, and of those that may
    be changed. Raises ValueError for a glob that is not valid.
    """
    patterns = compile_patterns((*TEST_GLOBS, *SETTINGS_GLOBS, *protect))
    unprotected = compile_patterns(unprotect)
    names = {name for name in _list_files(root) if any(each.fullmatch(name) for each in patterns)}
    names |= _find_scripts(root, commands, path)
    return {name: _hash(root, name) for name in sorted(names) if not any(each.fullmatch(name) for each in unprotected)}


def describe_changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Describe each change of a check file in a phrase: `tests/test_a.py was changed`."""
    settings = compile_patterns(SETTINGS_GLOBS)
    changes = [f"{name} was deleted" for name in before.keys() - now.keys()]
    changes += [f"{name} was changed" for name in before.keys() & now.keys() if before[name] != now[name]]
    added = now.keys() - before.keys()
    changes += [f"{name} was added" for name in added if any(each.fullmatch(name) for each in settings)]
    return sorted(changes)


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


def _list_files(root: Path) -> Iterator[str]:
    """Yield the relative names of the files below a folder, skipping the folders that tools create."""
    remaining = _MAX_ENTRIES
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(each for each in folders if each not in _SKIPPED_FOLDERS)
        for name in files:
            yield os.path.relpath(f"{folder}/{name}", root)
        remaining -= len(files) + len(folders)
        if remaining < 0:
            return


def _find_scripts(root: Path, commands: Sequence[str], path: str | None) -> set[str]:
    """Return the files below `root` that the commands name, run through scripts, or find on the PATH."""
    scripts: set[str] = set()
    texts = [*commands, *(_read(root / file) for file in _RUNNER_FILES)]
    for depth in range(_MAX_SCRIPT_DEPTH):
        words = dict.fromkeys(word for text in texts for word in re.findall(_WORD, text))
        # Only the commands themselves name programs that are found on the PATH.
        names = (_resolve_script(root, word, path, may_be_program=depth == 0) for word in words)
        found = {name for name in names if name is not None}
        texts = [
            _read(root / name) for name in found - scripts if re.search(_SCRIPT_FILE, name) or _is_shell(root / name)
        ]
        scripts |= found
        if not texts:
            break
    return scripts


def _resolve_script(root: Path, word: str, path: str | None, *, may_be_program: bool) -> str | None:
    """Return the relative name of the script or program below `root` that a word refers to, or None.

    `may_be_program`: the word may name a program on the PATH, as those of the commands themselves do.
    """
    file = root / word
    if "/" not in word and may_be_program and not file.is_file():
        program = find_program(word, path, in_project=True)
        file = Path(program) if program is not None else file
    if not file.is_file() or not _is_below(file, root):
        return None
    is_script = any(
        each.search(str(file)) for each in (compile_once(_SCRIPT_FILE), compile_once(_CHECK_PROGRAM))
    ) or os.access(file, os.X_OK)
    return os.path.relpath(file, root) if is_script else None


def _is_below(file: Path, root: Path) -> bool:
    return Path(os.path.normpath(file)).is_relative_to(root)


def _read(file: Path) -> str:
    try:
        return read_start(file, _MAX_SCRIPT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _is_shell(file: Path) -> bool:
    first = _read(file)[:80].partition("\n")[0]
    return first.startswith("#!") and first.rstrip().endswith(("sh", "bash"))


def _hash(root: Path, name: str) -> str:
    """Hash the part of a file that affects checks; an unreadable file gets a constant."""
    try:
        data = read_start(root / name, _MAX_HASHED_BYTES)
        mode = "x" if os.access(root / name, os.X_OK) else "-"
    except (OSError, ValueError):
        return "unreadable"
    return mode + hashlib.sha256(_extract_relevant_part(name, data)).hexdigest()


def _extract_relevant_part(name: str, data: bytes) -> bytes:
    """Return a file's content without the sections that don't affect checks."""
    file = Path(name).name
    unrelated: Iterable[str] = _UNRELATED_SECTIONS.get(file, ())
    try:
        match file:
            case "package.json":
                table = json.loads(data)
            case "pyproject.toml":
                # Imported late: what kind a file is needs none of it.
                import tomllib

                table = tomllib.loads(data.decode())["tool"]
            case _:
                return data
        related_entries = {key: value for key, value in table.items() if key not in unrelated}
        return json.dumps(related_entries, sort_keys=True, default=str).encode()
    # A malformed file counts as a whole, and so does a pyproject.toml without a table `tool`.
    except (ValueError, KeyError, AttributeError):
        return data
