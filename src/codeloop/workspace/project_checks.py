"""Finds the commands with which a project tests, lints, type-checks, formats and builds itself,
from its files. None is run.
"""

import os
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codeloop.workspace.command_here import CommandHere

# The most entries of a folder that are read.
_MAX_LISTED_ENTRIES = 2_000
# The most commands for tests that are shown, and one more than of other kinds.
_MAX_SHOWN = 3
# By where a command is named: what comes first.
# Of tests, those in CI count only if there is no other.
_ORDER = {"task": 0, "written": 1, "implied": 2}


def describe_project_checks(
    folder: Path, root: Path, names: Iterable[str], path: str | None
) -> str:
    """Describe a project's check commands in one line, by kind; "" when its files name none.

    `names`: the entries of `folder`; a link is read only if it leads inside `root`. `path`: the
    PATH. A command whose program is neither on it nor in the project's own environment is left out;
    where no test can be run, the first is named with what it lacks.
    """
    commands = _collect_commands(folder, root, names, path)
    run_by_tasks = {
        program
        for each in chain.from_iterable(commands.values())
        if each.origin == "task"
        for program in each.script_programs
    }
    # What a file implies is less than what the project does with that program itself.
    commands["types"] = [
        each
        for each in commands.get("types", ())
        if each.origin != "implied" or each.program not in run_by_tasks
    ]
    chosen = {kind: _choose_usable(kind, each) for kind, each in commands.items()}
    clauses = [
        f"{kind}: {', '.join(command.text for command in each)}"
        for kind, each in chosen.items()
        if each
    ]
    single_tests = (each.single_test for each in chosen.get("test", ()) if each.is_usable)
    if single_test := next(filter(None, single_tests), ""):
        clauses.append(f"one test: {single_test}")
    return "; ".join(clauses)


def has_runnable_check(root: Path, directory: Path, environment: Mapping[str, str]) -> bool:
    """Return whether `directory`, or `root` above it, has a check command whose program exists.
    Blocks.

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
            return {
                entry.name: entry.is_dir(follow_symlinks=False)
                for entry in islice(entries, _MAX_LISTED_ENTRIES)
            }
    except OSError:
        return {}


def _collect_commands(
    folder: Path, root: Path, names: Iterable[str], path: str | None
) -> "dict[str, list[CommandHere]]":
    """Return the check commands that a project's files name, by kind, in order."""
    entries = frozenset(names)
    if not entries:
        return {}
    # Imported here, and the table of all programs only for a check: many folders have none.
    from codeloop.workspace.project_check_sources import CHECK_SOURCES
    from codeloop.workspace.project_reader import CHECK_KINDS, ProjectReader

    reader = ProjectReader(folder, root, entries)
    commands: dict[str, list[CommandHere]] = {kind: [] for kind in CHECK_KINDS}
    for check in chain.from_iterable(read_checks(reader) for read_checks in CHECK_SOURCES):
        from codeloop.workspace.command_here import find_command

        command = find_command(check, reader, path)
        # CI runs the project's own tasks, of which more is known by their files.
        is_task_of_ci = command.origin == "written" and any(
            each.origin == "task" and each.program == command.program
            for each in commands[check.kind]
        )
        if not is_task_of_ci:
            commands[check.kind].append(command)
    return commands


def _choose_usable(kind: str, commands: "Iterable[CommandHere]") -> "list[CommandHere]":
    """Return the commands of a kind that can be run, at most two, of tests three;
    of tests the first one, with what it lacks, where none can.

    Nobody misses a linter, a type checker or a build tool that is not installed.
    """
    ordered = sorted(commands, key=lambda each: (each.is_part, _ORDER[each.origin]))
    usable = [each for each in ordered if each.is_usable]
    if not usable:
        return ordered[:1] if kind == "test" else []
    if kind == "test" and any(each.origin != "written" for each in usable):
        usable = [each for each in usable if each.origin != "written"]
    if any(each.origin == "task" and not each.is_part for each in usable[1:]):
        usable = [each for each in usable if not each.is_part]
    chosen: list[CommandHere] = []
    for command in usable:
        is_known = any(
            command.text == each.text or command.program in _list_programs(kind, each)
            for each in chosen
        )
        if not is_known or (command.origin == "task" and command not in chosen):
            chosen.append(command)
    return chosen[: _MAX_SHOWN if kind == "test" else _MAX_SHOWN - 1]


def _list_programs(kind: str, command: "CommandHere") -> set[str]:
    """Return the programs that need not be named beside a command.
    A runner of tests is: with it, one test can be run.
    """
    return {command.program, *(command.script_programs if kind != "test" else ())}
