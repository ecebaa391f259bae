"""Hashes the files that decide a project's checks: tests, their settings, build files,
and the scripts that they run.

By the hashes a goal's run notices that its checks were changed instead of its code. The globs also
tell what kind of file a turn has changed (`agent/checks/file_kinds.py`).
"""

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from codeloop.kit.glob import compile_glob
from codeloop.kit.programs import find_program
from codeloop.kit.small_files import read_start
from codeloop.kit.text.patterns import compile_once
from codeloop.kit.wildcard import NameSet
from codeloop.workspace.check_environments import (
    ENVIRONMENT_MARK,
    is_started,
    list_hiding_modules,
    list_runner_files,
    read_started_part,
)

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
# Files that build or configure a project as a whole, its checks too: ordinary work changes them,
# that on a goal not.
_BUILD_NAMES = """
pytest.toml .pytest.toml tox.toml nose2.cfg unittest.cfg behave.ini hatch.toml uv.toml phpstan.neon* jsconfig.json
vitest.workspace.* vitest.setup.* vite.config.* jest.setup.* jest-setup.* setupTests.* setup-tests.* mocha.opts
ava.config.* .taprc nyc.config.* .nycrc* .c8rc* playwright.config.* playwright-ct.config.* cypress.config.* cypress.json
wdio.conf.* jasmine.json babel.config.* .babelrc* .swcrc webpack.config.* rollup.config.* esbuild.config.*
metro.config.* .prettierignore .stylelintrc* deno.json deno.jsonc .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pnp.cjs
.pnp.loader.mjs pnpm-workspace.yaml bunfig.toml nx.json turbo.json lerna.json project.json angular.json gulpfile.*
Gruntfile.* .clippy.toml rustfmt.toml .rustfmt.toml nextest.toml rust-toolchain rust-toolchain.toml build.rs Cargo.toml
go.work pom.xml build.gradle build.gradle.kts settings.gradle settings.gradle.kts gradle.properties build.xml build.sbt
mix.exs .formatter.exs Directory.Build.props Directory.Build.targets *.runsettings xunit.runner.json CTestConfig.cmake
CTestCustom.cmake meson.build .golangci.toml .golangci.json .rubocop.yml .simplecov Guardfile .tool-versions mise.toml
.mise.toml .envrc .python-version .nvmrc .node-version .ruby-version .travis.yml
"""
_BUILD_FOLDERS = frozenset((".cargo", ".mvn", ".bundle", ".buildkite", "buildSrc", "__mocks__"))
_SKIPPED_FOLDERS = frozenset(
    (
        ".git",
        "node_modules",
        ".venv",
        "venv",
        "__pycache__",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".pytest_cache",
        "target",
    )
)
# The most files and folders of a project that are listed.
_MAX_ENTRIES = 200_000
# The bytes of a file that are hashed, and those of a script that are searched for other scripts.
_MAX_HASHED_BYTES = 16 * 1024 * 1024
_MAX_SCRIPT_BYTES = 256 * 1024
# Scripts that run scripts are followed to this depth.
_MAX_SCRIPT_DEPTH = 3
# Of files that a check may write in each run, such as a result of the time.
_DATA_SUFFIXES = frozenset(
    (".txt", ".log", ".json", ".csv", ".tsv", ".xml", ".html", ".out", ".tmp", ".db", ".sqlite")
)
# The hash of a file of which nothing affects checks.
_NOTHING = "-" + hashlib.sha256(b"").hexdigest()
_WORD = r"[\w./@+-]+"
_SCRIPT_FILE = r"(?:^|/)(?:(?:GNUm|M|m)akefile|[^/]*\.(?:mk|sh|bash)|\.?[Jj]ustfile|package\.json)$"
# Names of programs that are likely to be checks.
_CHECK_PROGRAM = r"(?i)(?:test|check|lint|verif|spec)[^/]*$"
_RUNNER_FILES = ("GNUmakefile", "makefile", "Makefile", "justfile", "package.json")
# Sections of these files that don't affect checks: dependencies may be added. Those of
# pyproject.toml are below `tool`.
_UNRELATED_SECTIONS = {
    "pyproject.toml": ("poetry", "uv", "setuptools"),
    "package.json": (
        "dependencies",
        "devDependencies",
        "peerDependencies",
        "optionalDependencies",
        "version",
    ),
    "Cargo.toml": ("dependencies", "dev-dependencies", "build-dependencies"),
}
# Lines of other build files that name a dependency and its version,
# which don't affect checks either.
_DEPENDENCY_LINES = {
    "pom.xml": rb"(?s)<dependencies>.*?</dependencies>",
    "build.gradle": rb"""(?m)^\s*\w+[ (]+['"][\w.-]+:[\w.-]+(?::[\w.+-]*)?['"]\)?[ \t]*\n""",
    "build.gradle.kts": rb"""(?m)^\s*\w+\("[\w.-]+:[\w.-]+(?::[\w.+-]*)?"\)[ \t]*\n""",
    "mix.exs": rb"""(?m)^\s*\{:\w+, "[\w.~> =-]+"\},?[ \t]*\n""",
}


class CheckFiles(Struct, frozen=True):
    """The files that decide the outcome of checks.
    `hashes`: of each, by its name relative to the project.

    `decisive`: the names of those that count as a change when they are new.
    """

    hashes: dict[str, str]
    decisive: frozenset[str]

    @property
    def environments(self) -> set[str]:
        """The folders of Python environments, with a slash at the end."""
        return {
            name.removesuffix(ENVIRONMENT_MARK)
            for name in self.hashes
            if name.endswith(f"/{ENVIRONMENT_MARK}")
        }


def hash_check_files(
    root: Path,
    commands: Sequence[str],
    path: str | None,
    protect: Sequence[str] = (),
    unprotect: Sequence[str] = (),
) -> CheckFiles:
    """Hash the files below `root` that decide the outcome of the checks `commands`.

    `path`: the PATH that programs are found on. `protect`, `unprotect`: globs of further files, and
    of those that may be changed. Raises ValueError for a glob that is not valid.
    """
    tests, settings = compile_patterns((*TEST_GLOBS, *protect)), compile_patterns(SETTINGS_GLOBS)
    unprotected = compile_patterns(unprotect)
    listed = {*_list_files(root, tests)}
    names = {name for name in listed if any(each.fullmatch(name) for each in tests)}
    build_names = NameSet(_BUILD_NAMES.split())
    decisive = {
        name
        for name in listed
        if name.rpartition("/")[2] in build_names
        or not _BUILD_FOLDERS.isdisjoint(name.split("/")[:-1])
        or any(each.fullmatch(name) for each in settings)
    }
    scripts, words = _find_scripts(root, commands, path)
    runners = {*list_runner_files(root, words)}
    hiding = {*list_hiding_modules(root, names | scripts)}
    decisive |= hiding | {name for name in runners if is_started(name)}
    names |= decisive | scripts | runners
    hashes = {
        # What hides another module hides it with any content,
        # and may be a module of the project since long.
        name: "it hides a module" if name in hiding and name not in scripts else _hash(root, name)
        for name in sorted(names)
        if not any(each.fullmatch(name) for each in unprotected)
    }
    return CheckFiles(hashes, frozenset(decisive))


def find_written_data(before: CheckFiles, now: CheckFiles) -> frozenset[str]:
    """Return the names of the data files that a run of the checks between two looks has made,
    changed or deleted. Tests, settings and programs are never among them.
    """
    changed = dict(before.hashes.items() ^ now.hashes.items())
    kept, code = before.decisive | now.decisive, compile_patterns(TEST_GLOBS[1:])
    return frozenset(
        name
        for name in changed
        if Path(name).suffix in _DATA_SUFFIXES
        and name not in kept
        and not any(each.fullmatch(name) for each in code)
    )


def describe_changes(
    before: CheckFiles, now: CheckFiles, written: Collection[str] = ()
) -> list[str]:
    """Describe each change of a check file in a phrase: `tests/test_a.py was changed`.

    `written`: the names of files that don't count, since the checks write them.
    """
    old = {name: each for name, each in before.hashes.items() if name not in written}
    new = {name: each for name, each in now.hashes.items() if name not in written}
    changes = [f"{name} was deleted" for name in old.keys() - new.keys()]
    changes += [f"{name} was changed" for name in old.keys() & new.keys() if old[name] != new[name]]
    # All of an environment that was made meanwhile is new.
    made = tuple(now.environments - before.environments)
    added = [
        name
        for name in new.keys() - old.keys()
        if name in now.decisive and not name.startswith(made)
    ]
    changes += [
        f"{name} was added" for name in added if not (is_started(name) and new[name] == _NOTHING)
    ]
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


def _list_files(root: Path, tests: Sequence[re.Pattern[str]]) -> Iterator[str]:
    """Yield the relative names of the files below a folder, skipping the folders that tools create.

    Links to folders are yielded; they are followed if what is in them is a test by its name.
    """
    remaining = _MAX_ENTRIES
    tops, followed = [root], {os.path.realpath(root)}
    while tops:
        for folder, folders, files in os.walk(tops.pop()):
            folders[:] = sorted(each for each in folders if each not in _SKIPPED_FOLDERS)
            links = [each for each in folders if Path(folder, each).is_symlink()]
            for name in (*files, *links):
                yield os.path.relpath(f"{folder}/{name}", root)
            for name in links:
                target = os.path.realpath(f"{folder}/{name}")
                inner = f"{os.path.relpath(f'{folder}/{name}', root)}/x"
                if target not in followed and any(each.fullmatch(inner) for each in tests):
                    followed.add(target)
                    tops.append(Path(folder, name))
            remaining -= len(files) + len(folders)
            if remaining < 0:
                return


def _find_scripts(
    root: Path, commands: Sequence[str], path: str | None
) -> tuple[set[str], set[str]]:
    """Return the files below `root` that the commands name, run through scripts,
    or find on the PATH; and all words.
    """
    scripts: set[str] = set()
    all_words: set[str] = set()
    texts = [*commands, *(_read(root / file) for file in _RUNNER_FILES)]
    for depth in range(_MAX_SCRIPT_DEPTH):
        words = dict.fromkeys(word for text in texts for word in re.findall(_WORD, text))
        all_words.update(words)
        # Only the commands themselves name programs that are found on the PATH.
        names = (_resolve_script(root, word, path, may_be_program=depth == 0) for word in words)
        found = {name for name in names if name is not None}
        texts = [
            _read(root / name)
            for name in found - scripts
            if re.search(_SCRIPT_FILE, name) or _is_shell(root / name)
        ]
        scripts |= found
        if not texts:
            break
    return scripts, all_words


def _resolve_script(root: Path, word: str, path: str | None, *, may_be_program: bool) -> str | None:
    """Return the relative name of the script or program below `root` that a word refers to,
    or None.

    `may_be_program`: the word may name a program on the PATH,
    as those of the commands themselves do.
    """
    file = root / word
    if "/" not in word and may_be_program and not file.is_file():
        program = find_program(word, path, in_project=True)
        file = Path(program) if program is not None else file
    if not file.is_file() or not _is_below(file, root):
        return None
    is_script = any(
        each.search(str(file))
        for each in (compile_once(_SCRIPT_FILE), compile_once(_CHECK_PROGRAM))
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
    """Hash the part of a file that affects checks, and the target of a link;
    an unreadable file gets a constant.
    """
    target = ""
    try:
        target = os.readlink(root / name) if (root / name).is_symlink() else ""
        data = read_start(root / name, _MAX_HASHED_BYTES)
        mode = "x" if os.access(root / name, os.X_OK) else "-"
    except (OSError, ValueError):
        return f"unreadable {target}"
    part = _extract_relevant_part(name, data)
    return mode + hashlib.sha256(part).hexdigest() + target


def _parse_toml(data: bytes) -> dict[str, Any]:
    # Imported late: what kind a file is needs none of it.
    import tomllib

    return tomllib.loads(data.decode())


def _extract_relevant_part(name: str, data: bytes) -> bytes:
    """Return a file's content without the sections that don't affect checks."""
    file = Path(name).name
    if is_started(name):
        return read_started_part(name, data)
    unrelated: Iterable[str] = _UNRELATED_SECTIONS.get(file, ())
    try:
        match file:
            case "package.json":
                table = json.loads(data)
            case "pyproject.toml":
                table = _parse_toml(data)["tool"]
            case "Cargo.toml":
                table = _parse_toml(data)
            case _:
                return (
                    re.sub(_DEPENDENCY_LINES[file], b"", data)
                    if file in _DEPENDENCY_LINES
                    else data
                )
        related_entries = {key: value for key, value in table.items() if key not in unrelated}
        return json.dumps(related_entries, sort_keys=True, default=str).encode()
    # A malformed file counts as a whole, and so does a pyproject.toml without a table `tool`.
    except (ValueError, KeyError, AttributeError):
        return data
