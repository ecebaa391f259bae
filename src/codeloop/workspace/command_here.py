"""Finds out how a check of a project can be run on this machine: `CommandHere`. Nothing is run."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from codeloop.kit.programs import find_program
from codeloop.shell.check_commands import find_checks
from codeloop.workspace.check_scripts import list_script_checks, list_written_commands
from codeloop.workspace.project_reader import Check, ProjectReader, find_own_programs

# A runner of tests -> how it runs one test; `{}`: its own command, as it is installed here.
SINGLE_TEST_COMMANDS = {
    "pytest": "{} PATH::NAME",
    "unittest": "{} MODULE.CLASS.NAME",
    "cargo test": "cargo test NAME",
    "go test": "go test ./PKG -run NAME",
    "vitest": "npx vitest run PATH -t NAME",
    "jest": "npx jest PATH -t NAME",
    "mocha": "npx mocha PATH -g NAME",
    "ava": "npx ava PATH -m NAME",
    "borp": "npx borp PATH",
    "tap": "npx tap PATH",
    "jasmine": "npx jasmine PATH --filter=NAME",
    "node --test": "node --test --test-name-pattern=NAME PATH",
    "bun test": "bun test PATH -t NAME",
    "deno test": "deno test PATH --filter NAME",
    "rspec": "{} PATH:LINE",
    "rails test": "{} PATH:LINE",
    "phpunit": "{} PATH --filter NAME",
    "pest": "{} PATH --filter NAME",
    "mix test": "mix test PATH:LINE",
    "gradle test": "{} --tests CLASS.NAME",
    "mvn test": "{} -Dtest=CLASS#NAME",
    "ctest": "{} -R NAME",
    "swift test": "swift test --filter NAME",
    "dotnet test": "dotnet test --filter NAME",
    "dart test": "dart test PATH -n NAME",
    "flutter test": "flutter test PATH --name NAME",
    "crystal spec": "crystal spec PATH:LINE",
    "sbt test": 'sbt "testOnly CLASS"',
    "bats": "{} PATH -f NAME",
    "automake": "make check TESTS=NAME",
}
_NODE_MANAGERS = frozenset(("npm", "pnpm", "yarn", "bun"))
_NODE_RUNNERS = _NODE_MANAGERS | {"npx", "bunx"}
# Those that run scripts with the programs that are there; others make environments of their own.
_PLAIN_RUNNERS = _NODE_MANAGERS | {"composer", "just", "task"}
# The most programs that are named for one script.
_MAX_PROGRAMS = 2


class CommandHere(NamedTuple):
    """A check's command as it is shown.

    `is_usable`: its program, and those of its recipe, are there. `program`: what runs it, as the
    table of programs knows it, and `script_programs`: what its script runs in the same way.
    `is_part`: whether it is a task of which the name says that it is a part: `test:unit`.
    `single_test`: the command for one test, "": not known.
    """

    text: str
    origin: str
    program: str
    script_programs: tuple[str, ...] = ()
    is_part: bool = False
    single_test: str = ""
    is_usable: bool = True


def find_command(check: Check, reader: ProjectReader, path: str | None) -> CommandHere:
    """Return a check's command: with the folder of its program if that is the project's own,
    else with a remark.

    The remark in brackets: that its program is `not installed`, which program its recipe `needs`,
    or the programs that its script runs.
    """
    found = find_checks(check.command)
    program = found[0].program if found else check.command
    is_part = bool(found and found[0].is_task and found[0].targets)
    script_programs = tuple(each.program for each in list_script_checks(check.script))
    command = CommandHere(check.command, check.origin, program, script_programs, is_part)
    text = _locate(check.command, reader, path)
    if text is None:
        # Where the runner is missing, what its script calls may be there: `bun
        # run test` is `vitest`.
        text = next(_list_inner_commands(check, reader, path), None)
    if text is None:
        return command._replace(text=f"{check.command} (not installed)", is_usable=False)
    is_module = check.command.startswith(("python -m ", "python3 -m ")) and check.kind != "test"
    if is_module and _locate(program.partition(" ")[0], reader, path) is None:
        return command._replace(text=f"{text} (not installed)", is_usable=False)
    runner = check.command.partition(" ")[0]
    if runner in _NODE_RUNNERS and text == check.command and not reader.has_packages():
        return command._replace(text=f"{text} (its packages are not installed)", is_usable=False)
    # What stands in place of its task needs nothing else.
    programs = check.programs if text == check.command else ()
    missing = next(
        (each for each in programs if not find_program(each, path, in_project=True)), None
    )
    if missing:
        return command._replace(text=f"{text} (needs {missing} on the PATH)", is_usable=False)
    command = command._replace(
        text=text, single_test=_find_single_test(check, command, text, reader, path)
    )
    if text != check.command or runner not in _PLAIN_RUNNERS or ".pnp.cjs" in reader.names:
        return command
    names = [*dict.fromkeys(each.partition(" ")[0] for each in script_programs)]
    if lacking := next((each for each in names if _locate(each, reader, path) is None), None):
        return command._replace(text=f"{text} ({lacking} is not installed)", is_usable=False)
    if names and runner in _NODE_MANAGERS:
        return command._replace(text=f"{text} ({', '.join(names[:_MAX_PROGRAMS])})")
    return command


def _locate(command: str, reader: ProjectReader, path: str | None) -> str | None:
    """Return a command as it can be run; None: its program is not there."""
    program = command.partition(" ")[0]
    if programs_folder := find_own_programs(reader.folder, reader.names, program):
        return f"{programs_folder}/{command}"
    if "/" in program:
        return command if os.access(reader.folder / program, os.X_OK) else None
    is_there = find_program(program, path, in_project=True) or (
        # A package of a workspace uses the programs at the top.
        reader.folder != reader.root
        and os.access(reader.root / "node_modules" / ".bin" / program, os.X_OK)
    )
    return command if is_there else None


def _list_inner_commands(check: Check, reader: ProjectReader, path: str | None) -> Iterator[str]:
    """Yield what a task's script runs, and what a wrapper runs (`uv run pytest`),
    where that is there.
    """
    for command in list_written_commands([*check.script, check.command]):
        words = command.text.split()
        start = next(
            (
                n
                for n, word in enumerate(words)
                if word.rpartition("/")[2] == command.program.split()[0]
            ),
            0,
        )
        if command.kind == check.kind and (text := _locate(" ".join(words[start:]), reader, path)):
            yield text


def _find_single_test(
    check: Check, command: CommandHere, text: str, reader: ProjectReader, path: str | None
) -> str:
    """Return the command for one test; "" where its runner is not known, or not there."""
    if check.kind != "test":
        return ""
    if "automake" in check.script:
        return SINGLE_TEST_COMMANDS["automake"]
    if template := SINGLE_TEST_COMMANDS.get(command.program):
        return _format(template, text, path)
    for program in command.script_programs:
        template = SINGLE_TEST_COMMANDS.get(program)
        runner = _locate(program, reader, path)
        if template and runner:
            return _format(template, runner, path)
    return ""


def _format(template: str, text: str, path: str | None) -> str:
    """Return the command for one test. `text`: the runner's own; it stands in for npx, too."""
    if template.startswith("npx ") and not find_program("npx", path, in_project=True):
        _, _, arguments = template.split(" ", 2)
        return f"{text.partition(' ')[0]} {arguments}"
    return template.format(text)
