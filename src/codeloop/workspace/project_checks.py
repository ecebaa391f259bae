"""The commands with which a project tests, lints, type-checks and builds itself, read from its files. None is run."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import NamedTuple

import msgspec

from codeloop.kit.processes import PROJECT_PROGRAM_FOLDERS, find_program
from codeloop.kit.small_files import read_start

KINDS = ("test", "lint", "types", "build")
_FILE = 128 * 1024
"""Bytes of one file that are read; a larger one is not understood."""
_PER_SOURCE = 2
"""The most commands of one kind that are taken from one file."""
_WORDS = {
    **dict.fromkeys(("test", "tests", "unittest", "spec"), "test"),
    **dict.fromkeys(("lint", "check", "style"), "lint"),
    **dict.fromkeys(("types", "type", "typecheck", "typing", "mypy", "pyright", "tsc", "dts"), "types"),
    **dict.fromkeys(("build", "compile", "dist", "package"), "build"),
}
"""The first word of a script's name -> its purpose. Other names are ignored."""
_NAME = re.compile(r"[A-Za-z][\w:.-]{0,29}", re.ASCII)
_TARGET = re.compile(r"^([A-Za-z][\w.-]*+)[ \t]*+:(?![=:])", re.ASCII | re.MULTILINE)
_RECIPE = re.compile(r"^@?([A-Za-z][\w-]*+)[^:=\n]*+:(?!=)", re.ASCII | re.MULTILINE)
_TABLE = re.compile(r"\[\[?([\w.\"-]{1,100})\]", re.ASCII)
_KEY = re.compile(r"\"?([A-Za-z][\w:.-]*)\"?[ \t]*=", re.ASCII)
_LOCKS = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
}
_RUNNERS = {"poe.tasks": "poe", "taskipy.tasks": "task", "pdm.scripts": "pdm run", "rye.scripts": "rye run"}
_HATCH = re.compile(r"tool\.hatch\.envs\.([A-Za-z][\w-]{0,29})\.scripts", re.ASCII)
_PYTHON = {
    "pytest": ("test", "pytest"),
    "ruff": ("lint", "ruff check"),
    "mypy": ("types", "mypy"),
    "pyright": ("types", "pyright"),
    "basedpyright": ("types", "basedpyright"),
    "tox": ("test", "tox"),
}
"""A table of pyproject.toml below `tool` -> what it means."""
_MARKERS = {
    "pytest.ini": ("test", "pytest"),
    "tox.ini": ("test", "tox"),
    "noxfile.py": ("test", "nox"),
    "ruff.toml": ("lint", "ruff check"),
    ".ruff.toml": ("lint", "ruff check"),
    ".pre-commit-config.yaml": ("lint", "pre-commit run"),
    "mypy.ini": ("types", "mypy"),
    "pyrightconfig.json": ("types", "pyright"),
    "tsconfig.json": ("types", "tsc --noEmit"),
    ".golangci.yml": ("lint", "golangci-lint run"),
    ".golangci.yaml": ("lint", "golangci-lint run"),
}
"""A file -> the check that its presence implies."""


_COMMAND = re.compile(r"\t[ \t@+-]{0,9}(?:[A-Za-z_]\w*=\S*[ \t]){0,5}([A-Za-z][\w.+-]{0,29})(?=[ \t;]|$)", re.ASCII)
"""A line of a recipe that begins with a program's plain name."""
_SHELL = frozenset(
    (
        *("case", "cd", "command", "echo", "eval", "exec", "exit", "export", "false", "for", "if", "printf", "pwd"),
        *("read", "set", "source", "test", "time", "trap", "true", "type", "umask", "unset", "until", "wait", "while"),
    )
)
"""Shell builtins."""
_RECIPE_LINES = 20
_SCRIPT = 400
"""Bytes of a script of package.json that are looked through."""


_IN_SCRIPTS = re.compile(
    r"(?<![\w./@-])(vitest|jest|mocha|ava|jasmine|playwright|cypress|tap|tsc|vue-tsc|eslint|biome|prettier|oxlint|xo"
    r"|standard|rollup|vite|webpack|esbuild|tsup|turbo|nx|lerna)(?![\w./-])"
)
"""Programs recognised in a script of package.json; its other words are ignored."""
_ONE_TEST = {
    "pytest": "{} PATH::NAME",
    "cargo test": "cargo test NAME",
    "go test": "go test ./PKG -run NAME",
    "vitest": "npx vitest run PATH -t NAME",
    "jest": "npx jest PATH -t NAME",
    "mocha": "npx mocha PATH -g NAME",
}
"""The command for all tests -> how one test is run; `{}` is the command for all."""


class Check(NamedTuple):
    """A command of a project, what it is for, and the programs that it runs by name; `shown`: those of a script."""

    kind: str
    command: str
    runs: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()


def project_checks(folder: Path, root: Path, names: Iterable[str], path: str | None) -> str:
    """Return a project's check commands in one line, by kind; empty when its files name none.

    `names`: what lies in `folder`; a link is read only if it leads inside `root`. A program that is neither in the
    project's own environment nor on `path` is marked.
    """
    checks = _collect_commands(folder, root, names, path)
    rows = [f"{kind}: {', '.join(_choose_usable(commands))}" for kind, commands in checks.items() if commands]
    one = next((row for command in _choose_usable(checks["test"]) if (row := _run_one_test(command))), "")
    return "; ".join([*rows, *([f"one test: {one}"] if one else [])])


def has_usable_check(folder: Path, root: Path, names: Iterable[str], path: str | None) -> bool:
    """Return whether a project's files name a check command whose program is there; arguments as `project_checks`."""
    checks = _collect_commands(folder, root, names, path)
    return any(not _lacks_program(command) for commands in checks.values() for command in commands)


def _collect_commands(folder: Path, root: Path, names: Iterable[str], path: str | None) -> dict[str, dict[str, None]]:
    """Return the check commands that a project's files name, by kind, in order."""
    there = frozenset(names)
    reader = _Reader(folder, root, there)
    checks: dict[str, dict[str, None]] = {kind: {} for kind in KINDS}
    for check in chain.from_iterable(source(reader) for source in _SOURCES):
        checks[check.kind].setdefault(_locate(check, folder, there, path))
    return checks


def _choose_usable(commands: Iterable[str]) -> list[str]:
    """Return the commands that can be run; where none can, all of them."""
    every = [*commands]
    return [each for each in every if not _lacks_program(each)] or every


def _lacks_program(command: str) -> bool:
    return command.endswith(("(not installed)", "on the PATH)"))


def _run_one_test(command: str) -> str:
    """Return how to run one test, given the command for all; empty where unknown."""
    runner = next((name for name in _ONE_TEST if re.search(rf"(?:^|[/(]|, ){name}(?![\w-])", command)), None)
    return "" if runner is None or _lacks_program(command) else _ONE_TEST[runner].format(command)


class _Package(msgspec.Struct):
    scripts: dict[str, msgspec.Raw] = {}


class _Reader(NamedTuple):
    folder: Path
    root: Path
    names: frozenset[str]

    def text(self, name: str) -> str:
        """Return a small file of the folder; empty when it is missing, too large, or leads outside the project."""
        if name not in self.names:
            return ""
        file = self.folder / name
        try:
            if file.is_symlink() and not file.resolve().is_relative_to(self.root):
                return ""
            data = read_start(file, _FILE + 1)
        except (OSError, RuntimeError, ValueError):  # RuntimeError: links in a circle
            return ""
        return data.decode("utf-8", "replace") if len(data) <= _FILE else ""

    def toml(self, name: str) -> dict[str, list[str]]:
        """Return the tables of a TOML file, each with the keys that are on lines of their own."""
        tables: dict[str, list[str]] = {}
        keys: list[str] = []
        for line in self.text(name).splitlines():
            if header := _TABLE.match(line):
                keys = tables.setdefault(header[1].replace('"', ""), [])
            elif key := _KEY.match(line):
                keys.append(key[1])
        return tables


def _match_names(names: Iterable[str], command: str) -> Iterator[Check]:
    """Yield a check for each kind that a script or target is named after, the shortest names first."""
    usable = sorted({name for name in names if _NAME.fullmatch(name)}, key=lambda name: (len(name), name))
    for kind in KINDS:
        fitting = (name for name in usable if _WORDS.get(re.split(r"[:._-]", name, maxsplit=1)[0].lower()) == kind)
        yield from (Check(kind, f"{command} {name}") for name in islice(fitting, _PER_SOURCE))


def _make(reader: _Reader) -> Iterator[Check]:
    for name in ("GNUmakefile", "makefile", "Makefile"):
        if text := reader.text(name):
            return _targets(text)
    return iter(())


def _targets(text: str) -> Iterator[Check]:
    """Yield a Makefile's targets, each with what its recipe runs."""
    lines = text.splitlines()
    recipes: dict[str, list[str]] = {}
    for number, line in enumerate(lines, 1):
        if target := _TARGET.match(line):
            below = takewhile(lambda each: each.startswith("\t") or not each.strip(), lines[number:])
            recipes[target[1]] = list(islice(below, _RECIPE_LINES))
    for check in _match_names(recipes, "make"):
        matches = filter(None, map(_COMMAND.match, recipes[check.command.removeprefix("make ")]))
        yield check._replace(runs=tuple(command[1] for command in matches if command[1] not in _SHELL))


def _no_checks(reader: _Reader) -> Iterator[Check]:
    for name in ("justfile", "Justfile", ".justfile"):
        if text := reader.text(name):
            return _match_names(_RECIPE.findall(text), "just")
    return iter(())


def _package_json(reader: _Reader) -> Iterator[Check]:
    try:
        package = msgspec.json.decode(reader.text("package.json") or "{}", type=_Package)
    except (msgspec.DecodeError, RecursionError):
        return iter(())
    manager = next((tool for lock, tool in _LOCKS.items() if lock in reader.names), "npm")
    return _show_runs(_match_names(package.scripts, f"{manager} run"), package.scripts)


def _show_runs(checks: Iterable[Check], scripts: Mapping[str, msgspec.Raw]) -> Iterator[Check]:
    for check in checks:
        script = bytes(scripts[check.command.rpartition(" ")[2]])[:_SCRIPT].decode("utf-8", "replace")
        yield check._replace(shown=tuple(dict.fromkeys(_IN_SCRIPTS.findall(script)))[:_PER_SOURCE])


def _python(reader: _Reader) -> Iterator[Check]:
    tables = reader.toml("pyproject.toml")
    tools = {name.split(".")[1] for name in tables if name.startswith("tool.")}
    for table, command in _RUNNERS.items():
        yield from _match_names(tables.get(f"tool.{table}", ()), command)
    for table, scripts in tables.items():
        if hatch := _HATCH.fullmatch(table):
            prefix = "hatch run " if hatch[1] == "default" else f"hatch run {hatch[1]}:"
            yield from (Check(each.kind, prefix + each.command.strip()) for each in _match_names(scripts, ""))
    yield from (Check(*meaning) for name, meaning in _PYTHON.items() if name in tools)
    if "build-system" in tables:
        uv = ["uv"] if "uv.lock" in reader.names else []
        builders = (*uv, *(name for name in ("poetry", "pdm", "hatch") if name in tools))
        yield from (Check("build", f"{builder} build") for builder in builders[:1])


def _environment(reader: _Reader) -> Iterator[Check]:
    """Yield pytest where a Python project's own environment has it: few projects name it in their files."""
    if reader.names & {"pyproject.toml", "setup.py", "setup.cfg"} and _find_own_programs(
        reader.folder, reader.names, "pytest"
    ):
        yield Check("test", "pytest")


def _cargo(reader: _Reader) -> Iterator[Check]:
    if "Cargo.toml" in reader.names:
        yield from (Check("test", "cargo test"), Check("lint", "cargo clippy"), Check("build", "cargo build"))


def _go(reader: _Reader) -> Iterator[Check]:
    if "go.mod" in reader.names:
        yield from (Check("test", "go test ./..."), Check("lint", "go vet ./..."), Check("build", "go build ./..."))


def _markers(reader: _Reader) -> Iterator[Check]:
    for name, meaning in _MARKERS.items():
        if name in reader.names:
            yield Check(*meaning)


_SOURCES: tuple[Callable[[_Reader], Iterator[Check]], ...] = (
    _make,
    _no_checks,
    _package_json,
    _python,
    _environment,
    _cargo,
    _go,
    _markers,
)


def _locate(check: Check, folder: Path, names: frozenset[str], path: str | None) -> str:
    """Return a command with its program's location: the project's own environment, the PATH, or marked as missing."""
    program = check.command.partition(" ")[0]
    own = _find_own_programs(folder, names, program)
    if own:
        return f"{own}/{check.command}"
    if not find_program(program, path, in_project=True):
        return f"{check.command} (not installed)"
    missing = next((each for each in check.runs if not find_program(each, path, in_project=True)), None)
    if missing:
        return f"{check.command} (needs {missing} on the PATH)"
    return f"{check.command} ({', '.join(check.shown)})" if check.shown else check.command


def _find_own_programs(folder: Path, names: frozenset[str], program: str) -> str | None:
    """Return the folder of the project's own programs that has this one."""
    for own in PROJECT_PROGRAM_FOLDERS:
        if own.partition("/")[0] in names and os.access(folder / own / program, os.X_OK):
            return own
    return None
