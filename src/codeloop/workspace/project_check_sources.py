"""The sources of a project's checks: the files that name them (Makefile, package.json, ...).
None is run.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from codeloop.kit.programs import PROJECT_PROGRAM_FOLDERS
from codeloop.kit.small_files import read_start

CHECK_KINDS = ("test", "lint", "types", "build")
# A larger file is not read.
_MAX_FILE_BYTES = 128 * 1024
# The most commands of one kind that are taken from one file,
# and the most programs that are named for one script.
_MAX_PER_SOURCE = 2
# The first word of a script's name -> the kind of its check. Other names are ignored.
_KINDS_BY_WORD = {
    # What `check` has only the project knows; where tests have no task of their own, it has them.
    **dict.fromkeys(("test", "tests", "unittest", "unit", "spec", "check"), "test"),
    **dict.fromkeys(("lint", "style"), "lint"),
    **dict.fromkeys(
        ("types", "type", "typecheck", "typing", "mypy", "pyright", "tsc", "dts"), "types"
    ),
    **dict.fromkeys(("build", "compile"), "build"),
}
# Parts of names of scripts that change files, make releases,
# never end or belong to other targets: no checks.
_OTHER_PARTS = frozenset(
    (
        *(
            "fix",
            "write",
            "format",
            "watch",
            "dev",
            "serve",
            "start",
            "update",
            "sync",
            "version",
            "release",
            "publish",
        ),
        *(
            "am",
            "dist",
            "clean",
            "deps",
            "install",
            "setup",
            "image",
            "docker",
            "docs",
            "validation",
            "debug",
            "bad",
        ),
    )
)
# The last part of a script's name that tells its kind better than the first: `test:types`.
_TYPES_PARTS = frozenset(("types", "type", "typescript", "tsd", "tsc", "typecheck", "dts"))
# Names of scripts, targets and tables, so that nothing else of a project's files reaches the model.
_SCRIPT_NAME = r"(?a)[A-Za-z][\w:.-]{0,29}"
# `test filter="":`, but not an assignment such as `name := "x"`.
_JUST_RECIPE = r"(?am)^@?([A-Za-z][\w-]*+)[^:=\n]*+:(?!=)"
# `  test:`, and `task :spec do` or `RSpec::Core::RakeTask.new(:spec)`.
_TASKFILE_TASK = r"(?am)^  ([A-Za-z][\w.-]*+(?::[\w.-]++)*+):[ \t]*$"
_RAKE_TASK = r"(?am)^[ \t]*(?:task[ (]|\S*Task\.new\()[ \t]*:?['\"]?([A-Za-z]\w*+)"
_JVM_BUILDS = {"gradle": "build", "mvn": "package"}
_TOML_TABLE = r"(?a)\[\[?([\w.\"-]{1,100})\]"
_TOML_KEY = r"(?a)\"?([A-Za-z][\w:.-]*)\"?[ \t]*="
_MANAGERS_BY_LOCK = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
}
_TASK_RUNNERS = {
    "poe.tasks": "poe",
    "taskipy.tasks": "task",
    "pdm.scripts": "pdm run",
    "rye.scripts": "rye run",
}
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
    "mix.exs": ("test", "mix test"),
    "stack.yaml": ("test", "stack test"),
    "Package.swift": ("test", "swift test"),
    "build.zig": ("test", "zig build test"),
    "dune-project": ("test", "dune test"),
    "deno.json": ("test", "deno test"),
    ".rspec": ("test", "rspec"),
    "phpunit.xml": ("test", "phpunit"),
    "phpunit.xml.dist": ("test", "phpunit"),
}
# Bytes of a script of package.json that are looked through.
_MAX_SCRIPT_BYTES = 400
# Programs recognised in a script of package.json; its other words are ignored.
_SCRIPT_PROGRAMS = (
    r"(?<![\w./@-])(vitest|jest|mocha|ava|jasmine|playwright|cypress|tap|tsc|vue-tsc|eslint|biome|prettier|oxlint|xo"
    r"|standard|rollup|vite|webpack|esbuild|tsup|turbo|nx|lerna)(?![\w./-])"
)


class Check(NamedTuple):
    """A command of a project with its kind (test, lint, types, build).

    `programs`: the programs that a Makefile's recipe runs by name; `script_programs`: those that a
    script of package.json runs.
    """

    kind: str
    command: str
    programs: tuple[str, ...] = ()
    script_programs: tuple[str, ...] = ()


class _Package(msgspec.Struct):
    """The field of a package.json that names checks."""

    scripts: dict[str, msgspec.Raw] = {}


class ProjectReader(NamedTuple):
    """Reads the files of a project's folder. `names`: its entries."""

    folder: Path
    root: Path
    names: frozenset[str]

    def read_text(self, name: str) -> str:
        """Return a small file of the folder; empty when it is missing, too large,
        or leads outside the project.
        """
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
    """Yield a check for each script or target that is named after a kind,
    the shortest names first.
    """
    valid_names = sorted(
        {name for name in names if re.fullmatch(_SCRIPT_NAME, name)},
        key=lambda name: (len(name), name),
    )
    for kind in CHECK_KINDS:
        names_of_kind = (name for name in valid_names if _find_kind(name) == kind)
        yield from (
            Check(kind, f"{command} {name}") for name in islice(names_of_kind, _MAX_PER_SOURCE)
        )


def _find_kind(name: str) -> str | None:
    """Return the kind of a script by its name, as `test:unit`, `test-all` or `test.unit`;
    None: it is not a check.
    """
    first, *others = re.split(r"[:._-]", name.lower())
    if not _OTHER_PARTS.isdisjoint(others):
        return None
    return "types" if not _TYPES_PARTS.isdisjoint(others) else _KINDS_BY_WORD.get(first)


def _read_makefile(reader: ProjectReader) -> Iterator[Check]:
    for name in ("GNUmakefile", "makefile", "Makefile"):
        if text := reader.read_text(name):
            return _read_targets(text)
    return iter(())


def _read_targets(text: str) -> Iterator[Check]:
    """Yield a Makefile's targets, each with the programs that its recipe runs."""
    # Imported here: many projects have no Makefile.
    from codeloop.workspace.makefile import is_by_automake, list_recipe_programs, read_recipes

    if is_by_automake(text):
        # All of its targets but these two are its own business.
        yield from (Check("test", "make check"), Check("build", "make"))
        return
    recipes = read_recipes(text)
    for check in _match_names(recipes, "make"):
        recipe = recipes[check.command.removeprefix("make ")]
        yield check._replace(programs=list_recipe_programs(recipe))


def _read_justfile(reader: ProjectReader) -> Iterator[Check]:
    for name in ("justfile", "Justfile", ".justfile"):
        if text := reader.read_text(name):
            return _match_names(re.findall(_JUST_RECIPE, text), "just")
    return iter(())


def _read_package_json(reader: ProjectReader) -> Iterator[Check]:
    try:
        package = msgspec.json.decode(reader.read_text("package.json") or "{}", type=_Package)
    except (msgspec.DecodeError, RecursionError):
        return iter(())
    manager = next(
        (tool for lock, tool in _MANAGERS_BY_LOCK.items() if lock in reader.names), "npm"
    )
    return _add_script_programs(_match_names(package.scripts, f"{manager} run"), package.scripts)


def _add_script_programs(
    checks: Iterable[Check], scripts: Mapping[str, msgspec.Raw]
) -> Iterator[Check]:
    """Yield the checks with the known programs that their scripts run."""
    for check in checks:
        script = bytes(scripts[check.command.rpartition(" ")[2]])[:_MAX_SCRIPT_BYTES].decode(
            "utf-8", "replace"
        )
        yield check._replace(
            script_programs=tuple(dict.fromkeys(re.findall(_SCRIPT_PROGRAMS, script)))[
                :_MAX_PER_SOURCE
            ]
        )


def _read_pyproject(reader: ProjectReader) -> Iterator[Check]:
    tables = reader.read_toml("pyproject.toml")
    tools = {name.split(".")[1] for name in tables if name.startswith("tool.")}
    for table, command in _TASK_RUNNERS.items():
        yield from _match_names(tables.get(f"tool.{table}", ()), command)
    for table, scripts in tables.items():
        if hatch := re.fullmatch(_HATCH_SCRIPTS, table):
            prefix = "hatch run " if hatch[1] == "default" else f"hatch run {hatch[1]}:"
            yield from (
                Check(each.kind, prefix + each.command.strip())
                for each in _match_names(scripts, "")
            )
    yield from (
        Check(kind, command) for name, (kind, command) in _CHECKS_BY_TOOL.items() if name in tools
    )
    if "build-system" in tables:
        builders = ["uv"] if "uv.lock" in reader.names else []
        builders += [name for name in ("poetry", "pdm", "hatch") if name in tools]
        if builders:
            yield Check("build", f"{builders[0]} build")


def _find_installed_pytest(reader: ProjectReader) -> Iterator[Check]:
    """Yield pytest where a Python project's own environment has it: few projects
    name it in their files.
    """
    if reader.names & {"pyproject.toml", "setup.py", "setup.cfg"} and find_own_programs(
        reader.folder, reader.names, "pytest"
    ):
        yield Check("test", "pytest")


def _read_cargo(reader: ProjectReader) -> Iterator[Check]:
    if "Cargo.toml" in reader.names:
        yield from (
            Check("test", "cargo test"),
            Check("lint", "cargo clippy"),
            Check("build", "cargo build"),
        )


def _read_go_module(reader: ProjectReader) -> Iterator[Check]:
    if "go.mod" in reader.names:
        yield from (
            Check("test", "go test ./..."),
            Check("lint", "go vet ./..."),
            Check("build", "go build ./..."),
        )


def _read_jvm_build(reader: ProjectReader) -> Iterator[Check]:
    for file, wrapper, program in (
        ("build.gradle", "gradlew", "gradle"),
        ("build.gradle.kts", "gradlew", "gradle"),
        ("pom.xml", "mvnw", "mvn"),
    ):
        if file in reader.names:
            command = f"./{wrapper}" if wrapper in reader.names else program
            yield from (
                Check("test", f"{command} test"),
                Check("build", f"{command} {_JVM_BUILDS[program]}"),
            )


def _read_cmake(reader: ProjectReader) -> Iterator[Check]:
    # Only what was configured can be built.
    if "CMakeLists.txt" in reader.names and (reader.folder / "build" / "CMakeCache.txt").exists():
        yield from (Check("test", "ctest --test-dir build"), Check("build", "cmake --build build"))


def _read_taskfile(reader: ProjectReader) -> Iterator[Check]:
    for name in ("Taskfile.yml", "Taskfile.yaml"):
        if text := reader.read_text(name):
            return _match_names(re.findall(_TASKFILE_TASK, text.partition("\ntasks:")[2]), "task")
    return iter(())


def _read_rakefile(reader: ProjectReader) -> Iterator[Check]:
    return _match_names(re.findall(_RAKE_TASK, reader.read_text("Rakefile")), "rake")


def _read_composer(reader: ProjectReader) -> Iterator[Check]:
    try:
        package = msgspec.json.decode(reader.read_text("composer.json") or "{}", type=_Package)
    except (msgspec.DecodeError, RecursionError):
        return iter(())
    return _match_names(package.scripts, "composer")


def _find_marker_files(reader: ProjectReader) -> Iterator[Check]:
    for name, (kind, command) in _CHECKS_BY_FILE.items():
        if name in reader.names:
            yield Check(kind, command)


CHECK_SOURCES: tuple[Callable[[ProjectReader], Iterator[Check]], ...] = (
    _read_makefile,
    _read_justfile,
    _read_package_json,
    _read_pyproject,
    _find_installed_pytest,
    _read_cargo,
    _read_go_module,
    _read_jvm_build,
    _read_cmake,
    _read_taskfile,
    _read_rakefile,
    _read_composer,
    _find_marker_files,
)


def find_own_programs(folder: Path, names: frozenset[str], program: str) -> str | None:
    """Return the folder of the project's own programs (relative) that has this one;
    None: it is in none of them.
    """
    for programs_folder in PROJECT_PROGRAM_FOLDERS:
        # Most projects lack most of these folders, which their entries show
        # without a look at the disk.
        if programs_folder.partition("/")[0] in names and os.access(
            folder / programs_folder / program, os.X_OK
        ):
            return programs_folder
    return None
