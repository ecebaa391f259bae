"""Finds the commands with which a project tests, lints, type-checks and builds itself, from its files. None is run."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import NamedTuple

import msgspec

from codeloop.kit.programs import PROJECT_PROGRAM_FOLDERS, find_program
from codeloop.kit.small_files import read_start
from codeloop.kit.text.patterns import compile_once

CHECK_KINDS = ("test", "lint", "types", "build")
# The most entries of a folder that are read.
_MAX_LISTED_ENTRIES = 2_000
# A larger file is not read.
_MAX_FILE_BYTES = 128 * 1024
# The most commands of one kind that are taken from one file, and the most programs that are named for one script.
_MAX_PER_SOURCE = 2
# The first word of a script's name -> the kind of its check. Other names are ignored.
_KINDS_BY_WORD = {
    **dict.fromkeys(("test", "tests", "unittest", "spec"), "test"),
    **dict.fromkeys(("lint", "check", "style"), "lint"),
    **dict.fromkeys(("types", "type", "typecheck", "typing", "mypy", "pyright", "tsc", "dts"), "types"),
    **dict.fromkeys(("build", "compile", "dist", "package"), "build"),
}
# Names of scripts, targets and tables, so that nothing else of a project's files reaches the model.
_SCRIPT_NAME = r"(?a)[A-Za-z][\w:.-]{0,29}"
# `test: build`, but not an assignment such as `TEST := 1`.
_MAKE_TARGET = r"(?am)^([A-Za-z][\w.-]*+)[ \t]*+:(?![=:])"
# `test filter="":`, but not an assignment such as `name := "x"`.
_JUST_RECIPE = r"(?am)^@?([A-Za-z][\w-]*+)[^:=\n]*+:(?!=)"
_TOML_TABLE = r"(?a)\[\[?([\w.\"-]{1,100})\]"
_TOML_KEY = r"(?a)\"?([A-Za-z][\w:.-]*)\"?[ \t]*="
_MANAGERS_BY_LOCK = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
}
_TASK_RUNNERS = {"poe.tasks": "poe", "taskipy.tasks": "task", "pdm.scripts": "pdm run", "rye.scripts": "rye run"}
_HATCH_SCRIPTS = r"(?a)tool\.hatch\.envs\.([A-Za-z][\w-]{0,29})\.scripts"
# A table of pyproject.toml below `tool` -> the check that it implies.
_CHECKS_BY_TOOL = {
    "pytest": ("test", "pytest"),
    "ruff": ("lint", "ruff check"),
    "mypy": ("types", "mypy"),
    "pyright": ("types", "pyright"),
    "basedpyright": ("types", "basedpyright"),
    "tox": ("test", "tox"),
}
# A file -> the check that its presence implies.
_CHECKS_BY_FILE = {
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
# A line of a recipe that begins with a program's plain name, perhaps after variables: `\t@CI=1 pytest -q`.
_RECIPE_PROGRAM = r"(?a)\t[ \t@+-]{0,9}(?:[A-Za-z_]\w*=\S*[ \t]){0,5}([A-Za-z][\w.+-]{0,29})(?=[ \t;]|$)"
_SHELL_BUILTINS = frozenset(
    (
        *("case", "cd", "command", "echo", "eval", "exec", "exit", "export", "false", "for", "if", "printf", "pwd"),
        *("read", "set", "source", "test", "time", "trap", "true", "type", "umask", "unset", "until", "wait", "while"),
    )
)
_MAX_RECIPE_LINES = 20
# Bytes of a script of package.json that are looked through.
_MAX_SCRIPT_BYTES = 400
# Programs recognised in a script of package.json; its other words are ignored.
_SCRIPT_PROGRAMS = (
    r"(?<![\w./@-])(vitest|jest|mocha|ava|jasmine|playwright|cypress|tap|tsc|vue-tsc|eslint|biome|prettier|oxlint|xo"
    r"|standard|rollup|vite|webpack|esbuild|tsup|turbo|nx|lerna)(?![\w./-])"
)
# The command for all tests -> how one test is run; `{}` is the command for all.
_SINGLE_TEST_COMMANDS = {
    "pytest": "{} PATH::NAME",
    "cargo test": "cargo test NAME",
    "go test": "go test ./PKG -run NAME",
    "vitest": "npx vitest run PATH -t NAME",
    "jest": "npx jest PATH -t NAME",
    "mocha": "npx mocha PATH -g NAME",
}


class Check(NamedTuple):
    """A command of a project with its kind (test, lint, types, build).

    `programs`: the programs that a Makefile's recipe runs by name; `script_programs`: those that a script of
    package.json runs.
    """

    kind: str
    command: str
    programs: tuple[str, ...] = ()
    script_programs: tuple[str, ...] = ()


class _CommandText(NamedTuple):
    """A check's command as it is shown. `is_usable`: its program, and those of its recipe, are there."""

    text: str
    is_usable: bool = True


def describe_project_checks(folder: Path, root: Path, names: Iterable[str], path: str | None) -> str:
    """Describe a project's check commands in one line, by kind; "" when its files name none.

    `names`: the entries of `folder`; a link is read only if it leads inside `root`. `path`: the PATH. A command whose
    program is neither on it nor in the project's own environment is left out, or marked if all of its kind are so.
    """
    checks = _collect_commands(folder, root, names, path)
    clauses = [f"{kind}: {', '.join(_choose_usable(commands))}" for kind, commands in checks.items() if commands]
    usable_tests = (command.text for command in checks["test"] if command.is_usable)
    single_tests = [text for text in map(_format_single_test, usable_tests) if text]
    if single_tests:
        clauses.append(f"one test: {single_tests[0]}")
    return "; ".join(clauses)


def has_runnable_check(root: Path, directory: Path, environment: Mapping[str, str]) -> bool:
    """Return whether `directory`, or `root` above it, has a check command whose program exists. Blocks.

    `root`: the top of the repository's work tree, if any.
    """
    path = environment.get("PATH")
    return any(
        command.is_usable
        for folder in {directory, root}
        for commands in _collect_commands(folder, root, list_folder(folder), path).values()
        for command in commands
    )


def list_folder(folder: Path) -> dict[str, bool]:
    """Return the names in a folder, each with whether it is a folder itself."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry.is_dir(follow_symlinks=False) for entry in islice(entries, _MAX_LISTED_ENTRIES)}
    except OSError:
        return {}


def _collect_commands(
    folder: Path, root: Path, names: Iterable[str], path: str | None
) -> dict[str, dict[_CommandText, None]]:
    """Return the check commands that a project's files name, by kind, in order (a dict is used as an ordered set)."""
    entries = frozenset(names)
    reader = _ProjectReader(folder, root, entries)
    checks: dict[str, dict[_CommandText, None]] = {kind: {} for kind in CHECK_KINDS}
    for check in chain.from_iterable(read_checks(reader) for read_checks in _CHECK_SOURCES):
        checks[check.kind].setdefault(_format_command(check, folder, entries, path))
    return checks


def _choose_usable(commands: Iterable[_CommandText]) -> list[str]:
    """Return the texts of the commands that can be run; where none can, of all of them."""
    all_commands = [*commands]
    return [each.text for each in all_commands if each.is_usable] or [each.text for each in all_commands]


def _format_single_test(command: str) -> str:
    """Return the command for one test, given the text of the command for all; "" where it is unknown."""
    # The runner may follow its folder (`.venv/bin/pytest`), or be among a script's programs (`npm test (tsc, jest)`).
    runner = next(
        (name for name in _SINGLE_TEST_COMMANDS if re.search(rf"(?:^|[/(]|, ){name}(?![\w-])", command)), None
    )
    return "" if runner is None else _SINGLE_TEST_COMMANDS[runner].format(command)


class _Package(msgspec.Struct):
    """The field of a package.json that names checks."""

    scripts: dict[str, msgspec.Raw] = {}


class _ProjectReader(NamedTuple):
    """Reads the files of a project's folder. `names`: its entries."""

    folder: Path
    root: Path
    names: frozenset[str]

    def read_text(self, name: str) -> str:
        """Return a small file of the folder; empty when it is missing, too large, or leads outside the project."""
        if name not in self.names:
            return ""
        file = self.folder / name
        try:
            if file.is_symlink() and not file.resolve().is_relative_to(self.root):
                return ""
            data = read_start(file, _MAX_FILE_BYTES + 1)
        except (OSError, RuntimeError, ValueError):  # RuntimeError: links in a circle
            return ""
        return data.decode("utf-8", "replace") if len(data) <= _MAX_FILE_BYTES else ""

    def read_toml(self, name: str) -> dict[str, list[str]]:
        """Return the tables of a TOML file, each with the keys that are on lines of their own."""
        tables: dict[str, list[str]] = {}
        keys: list[str] = []
        for line in self.read_text(name).splitlines():
            if header := re.match(_TOML_TABLE, line):
                keys = tables.setdefault(header[1].replace('"', ""), [])
            elif key := re.match(_TOML_KEY, line):
                keys.append(key[1])
        return tables


def _match_names(names: Iterable[str], command: str) -> Iterator[Check]:
    """Yield a check for each script or target that is named after a kind, the shortest names first."""
    valid_names = sorted(
        {name for name in names if re.fullmatch(_SCRIPT_NAME, name)}, key=lambda name: (len(name), name)
    )
    for kind in CHECK_KINDS:
        # The first word of `test:unit`, `test-all` or `test.unit`.
        names_of_kind = (
            name for name in valid_names if _KINDS_BY_WORD.get(re.split(r"[:._-]", name, maxsplit=1)[0].lower()) == kind
        )
        yield from (Check(kind, f"{command} {name}") for name in islice(names_of_kind, _MAX_PER_SOURCE))


def _read_makefile(reader: _ProjectReader) -> Iterator[Check]:
    for name in ("GNUmakefile", "makefile", "Makefile"):
        if text := reader.read_text(name):
            return _read_targets(text)
    return iter(())


def _read_targets(text: str) -> Iterator[Check]:
    """Yield a Makefile's targets, each with the programs that its recipe runs."""
    lines = text.splitlines()
    recipes: dict[str, list[str]] = {}
    for number, line in enumerate(lines, 1):
        if target := re.match(_MAKE_TARGET, line):
            below = takewhile(lambda each: each.startswith("\t") or not each.strip(), lines[number:])
            recipes[target[1]] = list(islice(below, _MAX_RECIPE_LINES))
    for check in _match_names(recipes, "make"):
        matches = filter(None, map(compile_once(_RECIPE_PROGRAM).match, recipes[check.command.removeprefix("make ")]))
        yield check._replace(programs=tuple(command[1] for command in matches if command[1] not in _SHELL_BUILTINS))


def _read_justfile(reader: _ProjectReader) -> Iterator[Check]:
    for name in ("justfile", "Justfile", ".justfile"):
        if text := reader.read_text(name):
            return _match_names(re.findall(_JUST_RECIPE, text), "just")
    return iter(())


def _read_package_json(reader: _ProjectReader) -> Iterator[Check]:
    try:
        package = msgspec.json.decode(reader.read_text("package.json") or "{}", type=_Package)
    except (msgspec.DecodeError, RecursionError):
        return iter(())
    manager = next((tool for lock, tool in _MANAGERS_BY_LOCK.items() if lock in reader.names), "npm")
    return _add_script_programs(_match_names(package.scripts, f"{manager} run"), package.scripts)


def _add_script_programs(checks: Iterable[Check], scripts: Mapping[str, msgspec.Raw]) -> Iterator[Check]:
    """Yield the checks with the known programs that their scripts run."""
    for check in checks:
        script = bytes(scripts[check.command.rpartition(" ")[2]])[:_MAX_SCRIPT_BYTES].decode("utf-8", "replace")
        yield check._replace(
            script_programs=tuple(dict.fromkeys(re.findall(_SCRIPT_PROGRAMS, script)))[:_MAX_PER_SOURCE]
        )


def _read_pyproject(reader: _ProjectReader) -> Iterator[Check]:
    tables = reader.read_toml("pyproject.toml")
    tools = {name.split(".")[1] for name in tables if name.startswith("tool.")}
    for table, command in _TASK_RUNNERS.items():
        yield from _match_names(tables.get(f"tool.{table}", ()), command)
    for table, scripts in tables.items():
        if hatch := re.fullmatch(_HATCH_SCRIPTS, table):
            prefix = "hatch run " if hatch[1] == "default" else f"hatch run {hatch[1]}:"
            yield from (Check(each.kind, prefix + each.command.strip()) for each in _match_names(scripts, ""))
    yield from (Check(kind, command) for name, (kind, command) in _CHECKS_BY_TOOL.items() if name in tools)
    if "build-system" in tables:
        builders = ["uv"] if "uv.lock" in reader.names else []
        builders += [name for name in ("poetry", "pdm", "hatch") if name in tools]
        if builders:
            yield Check("build", f"{builders[0]} build")


def _find_installed_pytest(reader: _ProjectReader) -> Iterator[Check]:
    """Yield pytest where a Python project's own environment has it: few projects name it in their files."""
    if reader.names & {"pyproject.toml", "setup.py", "setup.cfg"} and _find_own_programs(
        reader.folder, reader.names, "pytest"
    ):
        yield Check("test", "pytest")


def _read_cargo(reader: _ProjectReader) -> Iterator[Check]:
    if "Cargo.toml" in reader.names:
        yield from (Check("test", "cargo test"), Check("lint", "cargo clippy"), Check("build", "cargo build"))


def _read_go_module(reader: _ProjectReader) -> Iterator[Check]:
    if "go.mod" in reader.names:
        yield from (Check("test", "go test ./..."), Check("lint", "go vet ./..."), Check("build", "go build ./..."))


def _find_marker_files(reader: _ProjectReader) -> Iterator[Check]:
    for name, (kind, command) in _CHECKS_BY_FILE.items():
        if name in reader.names:
            yield Check(kind, command)


_CHECK_SOURCES: tuple[Callable[[_ProjectReader], Iterator[Check]], ...] = (
    _read_makefile,
    _read_justfile,
    _read_package_json,
    _read_pyproject,
    _find_installed_pytest,
    _read_cargo,
    _read_go_module,
    _find_marker_files,
)


def _format_command(check: Check, folder: Path, names: frozenset[str], path: str | None) -> _CommandText:
    """Format a check's command: with the folder of its program if that is the project's own, else with a remark.

    The remark in brackets: that its program is `not installed`, which program its recipe `needs`, or the programs that
    its script runs. `names`: the entries of `folder`.
    """
    program = check.command.partition(" ")[0]
    programs_folder = _find_own_programs(folder, names, program)
    if programs_folder:
        return _CommandText(f"{programs_folder}/{check.command}")
    if not find_program(program, path, in_project=True):
        return _CommandText(f"{check.command} (not installed)", is_usable=False)
    missing = next((each for each in check.programs if not find_program(each, path, in_project=True)), None)
    if missing:
        return _CommandText(f"{check.command} (needs {missing} on the PATH)", is_usable=False)
    return _CommandText(
        f"{check.command} ({', '.join(check.script_programs)})" if check.script_programs else check.command
    )


def _find_own_programs(folder: Path, names: frozenset[str], program: str) -> str | None:
    """Return the folder of the project's own programs (relative) that has this one; None: it is in none of them."""
    for programs_folder in PROJECT_PROGRAM_FOLDERS:
        # Most projects lack most of these folders, which their entries show without a look at the disk.
        if programs_folder.partition("/")[0] in names and os.access(folder / programs_folder / program, os.X_OK):
            return programs_folder
    return None
