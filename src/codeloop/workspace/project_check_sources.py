"""The sources of a project's checks: the files that name them (Makefile, package.json, ...).
None is run.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

import msgspec

from codeloop.workspace.project_reader import (
    Check,
    ProjectReader,
    find_own_programs,
    match_names,
    read_indented,
)

if TYPE_CHECKING:
    from codeloop.workspace.check_scripts import WrittenCommand

# A longer script of a manifest is not looked through.
_MAX_SCRIPT_CHARS = 1_000
# `test filter="":`, but not an assignment such as `name := "x"`.
_JUST_RECIPE = r"(?am)^@?([A-Za-z][\w-]*+)[^:=\n]*+:(?!=)"
# `  test:`, and `task :spec do` or `RSpec::Core::RakeTask.new(:spec)`.
_TASKFILE_TASK = r"(?am)^  ([A-Za-z][\w.-]*+(?::[\w.-]++)*+):[ \t]*$"
_RAKE_TASK = r"(?am)^[ \t]*(?:task[ (]|\S*Task\.new\()[ \t]*:?['\"]?([A-Za-z]\w*+)"
_TOX_ENVIRONMENT = r"(?am)^\[testenv:([\w.-]{1,30})\]"
_NOX_SESSION = r"(?ams)^@nox\.session.{0,400}?^def ([A-Za-z]\w*)"
_JVM_BUILDS = {"gradle": "build", "mvn": "package"}
_TASK_FILES = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "npm": ("package.json",),
    "composer": ("composer.json",),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "nox": ("noxfile.py",),
    "tox": ("tox.ini", "pyproject.toml"),
    "rake": ("Rakefile",),
}
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
    "ruff.format": ("format", "ruff format --check"),
    "black": ("format", "black --check ."),
    "mypy": ("types", "mypy"),
    "pyright": ("types", "pyright"),
    "basedpyright": ("types", "basedpyright"),
    "tox": ("test", "tox"),
}
# A file, or an ending of files -> the checks that its presence implies.
_CHECKS_BY_FILE: dict[str, tuple[tuple[str, str], ...]] = {
    "pytest.ini": (("test", "pytest"),),
    "tox.ini": (("test", "tox"),),
    "noxfile.py": (("test", "nox"),),
    "ruff.toml": (("lint", "ruff check"),),
    ".ruff.toml": (("lint", "ruff check"),),
    ".flake8": (("lint", "flake8"),),
    "mypy.ini": (("types", "mypy"),),
    "pyrightconfig.json": (("types", "pyright"),),
    "tsconfig.json": (("types", "tsc --noEmit"),),
    ".golangci.yml": (("lint", "golangci-lint run"),),
    ".golangci.yaml": (("lint", "golangci-lint run"),),
    "mix.exs": (("test", "mix test"), ("build", "mix compile")),
    ".formatter.exs": (("format", "mix format --check-formatted"),),
    ".credo.exs": (("lint", "mix credo"),),
    "stack.yaml": (("test", "stack test"), ("build", "stack build")),
    ".cabal": (("test", "cabal test"), ("build", "cabal build")),
    "Package.swift": (("test", "swift test"), ("build", "swift build")),
    "build.zig": (("test", "zig build test"), ("build", "zig build")),
    "dune-project": (("test", "dune test"), ("build", "dune build")),
    "deno.json": (("test", "deno test"), ("lint", "deno lint")),
    "deno.jsonc": (("test", "deno test"), ("lint", "deno lint")),
    ".sln": (("test", "dotnet test"), ("build", "dotnet build")),
    ".csproj": (("test", "dotnet test"), ("build", "dotnet build")),
    "build.sbt": (("test", "sbt test"), ("build", "sbt compile")),
    "rebar.config": (("test", "rebar3 eunit"), ("build", "rebar3 compile")),
    "gleam.toml": (("test", "gleam test"), ("build", "gleam build")),
    "shard.yml": (("test", "crystal spec"),),
    "pubspec.yaml": (("test", "dart test"), ("lint", "dart analyze")),
    ".rspec": (("test", "rspec"),),
    ".rubocop.yml": (("lint", "rubocop"),),
    "phpunit.xml": (("test", "phpunit"),),
    "phpunit.xml.dist": (("test", "phpunit"),),
    "phpstan.neon": (("types", "phpstan analyse"),),
    "phpstan.neon.dist": (("types", "phpstan analyse"),),
    ".php-cs-fixer.dist.php": (("format", "php-cs-fixer check"),),
}
# A hook of pre-commit that changes files, as nearly all sets of hooks have one.
_CHANGING_HOOKS = r"-fixer|trailing-whitespace|format\b|prettier|black|isort|--fix"


class _Package(msgspec.Struct):
    """The fields of a package.json that name checks and the manager that runs them."""

    scripts: dict[str, msgspec.Raw] = {}
    package_manager: object = msgspec.field(default=None, name="packageManager")


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
        yield Check("test", "make check", ("automake",))
        yield Check("build", "make")
        return
    recipes = read_recipes(text)
    for check in match_names(recipes, "make"):
        yield check._replace(programs=list_recipe_programs(check.script))


def _read_justfile(reader: ProjectReader) -> Iterator[Check]:
    for name in ("justfile", "Justfile", ".justfile"):
        if text := reader.read_text(name):
            return match_names(read_indented(text, _JUST_RECIPE), "just")
    return iter(())


def _read_package_json(reader: ProjectReader) -> Iterator[Check]:
    try:
        package = msgspec.json.decode(reader.read_text("package.json") or "{}", type=_Package)
    except (msgspec.DecodeError, RecursionError):
        return iter(())
    manager = next(
        (tool for lock, tool in _MANAGERS_BY_LOCK.items() if lock in reader.names),
        str(package.package_manager).partition("@")[0],
    )
    if manager not in _MANAGERS_BY_LOCK.values():
        manager = "npm"
    return match_names(_decode_scripts(package), f"{manager} run")


def _decode_scripts(package: _Package) -> dict[str, list[str]]:
    """Return the scripts of a manifest, each as its lines; one that is no text has none."""
    scripts: dict[str, list[str]] = {}
    for name, raw in package.scripts.items():
        try:
            value = msgspec.json.decode(raw, type=str | list[str])
        except msgspec.DecodeError:
            value = ""
        lines = [value] if isinstance(value, str) else value
        scripts[name] = [line[:_MAX_SCRIPT_CHARS] for line in lines]
    return scripts


def _read_pyproject(reader: ProjectReader) -> Iterator[Check]:
    tables = reader.read_toml("pyproject.toml")
    tools = {name.removeprefix("tool.") for name in tables if name.startswith("tool.")}
    tools |= {name.partition(".")[0] for name in tools}
    for table, command in _TASK_RUNNERS.items():
        yield from match_names(_wrap_values(tables.get(f"tool.{table}", {})), command)
    for table, scripts in tables.items():
        if hatch := re.fullmatch(_HATCH_SCRIPTS, table):
            prefix = "hatch run " if hatch[1] == "default" else f"hatch run {hatch[1]}:"
            yield from (
                each._replace(command=prefix + each.command.strip())
                for each in match_names(_wrap_values(scripts), "")
            )
    yield from _list_tox_environments(
        {
            name.rpartition(".env.")[2]: [*table.values()]
            for name, table in tables.items()
            if ".env." in name
        }
    )
    yield from (
        Check(kind, command) for name, (kind, command) in _CHECKS_BY_TOOL.items() if name in tools
    )
    if "build-system" in tables:
        builders = ["uv"] if "uv.lock" in reader.names else []
        builders += [name for name in ("poetry", "pdm", "hatch") if name in tools]
        if builders:
            yield Check("build", f"{builders[0]} build")


def _wrap_values(scripts: Mapping[str, str]) -> dict[str, list[str]]:
    return {name: [value] for name, value in scripts.items()}


def _list_tox_environments(scripts: Mapping[str, Sequence[str]]) -> Iterator[Check]:
    """Yield the environments that are named after a kind; those for tests are what `tox` runs."""
    checks = match_names(scripts, "tox -e")
    return (check for check in checks if check.kind != "test")


def _read_tox(reader: ProjectReader) -> Iterator[Check]:
    sections = re.split(_TOX_ENVIRONMENT, reader.read_text("tox.ini"))[1:]
    return _list_tox_environments(
        {
            name: text.partition("\n[")[0].splitlines()
            for name, text in zip(sections[::2], sections[1::2], strict=False)
        }
    )


def _read_nox(reader: ProjectReader) -> Iterator[Check]:
    scripts = read_indented(reader.read_text("noxfile.py"), _NOX_SESSION)
    return match_names({name: lines[1:] for name, lines in scripts.items()}, "nox -s")


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
            Check("format", "cargo fmt --check"),
            Check("build", "cargo build"),
        )


def _read_go_module(reader: ProjectReader) -> Iterator[Check]:
    if "go.mod" in reader.names:
        yield from (
            Check("test", "go test ./..."),
            Check("lint", "go vet ./..."),
            Check("format", "gofmt -l ."),
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
    if "CMakeLists.txt" in reader.names:
        is_configured = (reader.folder / "build" / "CMakeCache.txt").exists()
        build = "cmake --build build"
        yield Check("build", build if is_configured else f"cmake -B build && {build}")
        yield Check("test", "ctest --test-dir build")


def _read_taskfile(reader: ProjectReader) -> Iterator[Check]:
    for name in ("Taskfile.yml", "Taskfile.yaml"):
        if text := reader.read_text(name):
            tasks = read_indented(f"\n{text}".partition("\ntasks:")[2], _TASKFILE_TASK)
            return match_names(tasks, "task")
    return iter(())


def _read_rakefile(reader: ProjectReader) -> Iterator[Check]:
    names = re.findall(_RAKE_TASK, reader.read_text("Rakefile"))
    runner = "bundle exec rake" if "Gemfile" in reader.names else "rake"
    return match_names(dict.fromkeys(names, ()), runner)


def _read_composer(reader: ProjectReader) -> Iterator[Check]:
    try:
        package = msgspec.json.decode(reader.read_text("composer.json") or "{}", type=_Package)
    except (msgspec.DecodeError, RecursionError):
        return iter(())
    return match_names(_decode_scripts(package), "composer")


def _find_marker_files(reader: ProjectReader) -> Iterator[Check]:
    endings = {PurePath(name).suffix for name in reader.names}
    for name, checks in _CHECKS_BY_FILE.items():
        if name in reader.names or name in endings:
            is_bundled = "Gemfile" in reader.names and name in {".rspec", ".rubocop.yml"}
            prefix = "bundle exec " if is_bundled else ""
            yield from (Check(kind, prefix + command) for kind, command in checks)
    hooks = reader.read_text(".pre-commit-config.yaml")
    if ".pre-commit-config.yaml" in reader.names and not re.search(_CHANGING_HOOKS, hooks):
        yield Check("lint", "pre-commit run")


def _is_known_task(command: "WrittenCommand", reader: ProjectReader) -> bool:
    """Return whether CI runs a task that a file of the project defines, by which it is judged."""
    runner = command.program.partition(" ")[0]
    # `pipx run nox -s lint`, `yarn lint`; `bundle exec rake` names none.
    names = f"{command.text} ".rpartition(f"{runner} ")[2].split()
    texts = [reader.read_text(name) for name in _TASK_FILES.get(runner, ())]
    return any(re.search(rf"\b{re.escape(name)}\b", text) for text in texts for name in names)


def _read_written(reader: ProjectReader) -> Iterator[Check]:
    """Yield the checks that CI and instructions run.
    A part that is picked by a name, and targets that are not there, are examples.
    """
    # Imported here: few files are read, and the table of all programs only for their lines.
    from codeloop.workspace.written_lines import read_written_lines

    for lines in read_written_lines(reader):
        from codeloop.workspace.check_scripts import (
            list_script_checks,
            list_written_commands,
            only_checks,
        )

        for command in list_written_commands(lines):
            is_part = command.is_part or not all(map(reader.may_exist, command.targets))
            # A script of the project's may do more than its name says.
            path = command.text.partition(" ")[0].removeprefix("./")
            script = tuple(reader.read_text(path).splitlines())
            if is_part or _is_known_task(command, reader) or not only_checks(["", *script]):
                continue
            kinds = {each.kind for each in list_script_checks(script)}
            # What `make ci` has only the project knows.
            whole = "lint" if kinds and "test" not in kinds else "test"
            kind = whole if command.kind == "all" else command.kind
            yield Check(kind, command.text, script, origin="task" if script else "written")


CHECK_SOURCES: tuple[Callable[[ProjectReader], Iterator[Check]], ...] = (
    _read_makefile,
    _read_justfile,
    _read_package_json,
    _read_pyproject,
    _find_installed_pytest,
    _read_cargo,
    _read_go_module,
    _read_jvm_build,
    _read_taskfile,
    _read_rakefile,
    _read_composer,
    _read_tox,
    _read_nox,
    _find_marker_files,
    _read_cmake,
    _read_written,
)
