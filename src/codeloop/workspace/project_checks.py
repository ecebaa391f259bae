"""Finds the commands with which a project tests, lints, type-checks and builds itself,
from its files. None is run.
"""

import os
import re
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.programs import find_program
from codeloop.workspace.project_check_sources import (
    CHECK_KINDS,
    CHECK_SOURCES,
    Check,
    ProjectReader,
    find_own_programs,
)

# The most entries of a folder that are read.
_MAX_LISTED_ENTRIES = 2_000
# The command for all tests -> how one test is run; `{}` is the command for all.
_SINGLE_TEST_COMMANDS = {
    "pytest": "{} PATH::NAME",
    "cargo test": "cargo test NAME",
    "go test": "go test ./PKG -run NAME",
    "vitest": "npx vitest run PATH -t NAME",
    "jest": "npx jest PATH -t NAME",
    "mocha": "npx mocha PATH -g NAME",
}


class _CommandText(NamedTuple):
    """A check's command as it is shown. `is_usable`: its program, and those of its recipe,
    are there.
    """

    text: str
    is_usable: bool = True


def describe_project_checks(
    folder: Path, root: Path, names: Iterable[str], path: str | None
) -> str:
    """Describe a project's check commands in one line, by kind; "" when its files name none.

    `names`: the entries of `folder`; a link is read only if it leads inside `root`. `path`: the
    PATH. A command whose program is neither on it nor in the project's own environment is left out,
    or marked if all of its kind are so.
    """
    checks = _collect_commands(folder, root, names, path)
    chosen = {kind: _choose_usable(kind, commands) for kind, commands in checks.items()}
    clauses = [f"{kind}: {', '.join(texts)}" for kind, texts in chosen.items() if texts]
    usable_tests = (command.text for command in checks["test"] if command.is_usable)
    single_tests = [text for text in map(_format_single_test, usable_tests) if text]
    if single_tests:
        clauses.append(f"one test: {single_tests[0]}")
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
) -> dict[str, dict[_CommandText, None]]:
    """Return the check commands that a project's files name, by kind,
    in order (a dict is used as an ordered set).
    """
    entries = frozenset(names)
    reader = ProjectReader(folder, root, entries)
    checks: dict[str, dict[_CommandText, None]] = {kind: {} for kind in CHECK_KINDS}
    for check in chain.from_iterable(read_checks(reader) for read_checks in CHECK_SOURCES):
        checks[check.kind].setdefault(_format_command(check, folder, entries, path))
    return checks


def _choose_usable(kind: str, commands: Iterable[_CommandText]) -> list[str]:
    """Return the texts of the commands that can be run.
    Where none can, all tests and linters: they may be installed.

    Nobody misses a type checker or a build tool that a setting or a table implies.
    """
    all_commands = [*commands]
    usable = [each.text for each in all_commands if each.is_usable]
    return usable or [each.text for each in all_commands if kind in {"test", "lint"}]


def _format_single_test(command: str) -> str:
    """Return the command for one test, given the text of the command for all;
    "" where it is unknown.
    """
    # The runner may follow its folder (`.venv/bin/pytest`),
    # or be among a script's programs (`npm test (tsc, jest)`).
    runner = next(
        (
            name
            for name in _SINGLE_TEST_COMMANDS
            if re.search(rf"(?:^|[/(]|, ){name}(?![\w-])", command)
        ),
        None,
    )
    return "" if runner is None else _SINGLE_TEST_COMMANDS[runner].format(command)


def _format_command(
    check: Check, folder: Path, names: frozenset[str], path: str | None
) -> _CommandText:
    """Format a check's command: with the folder of its program if that is the project's own,
    else with a remark.

    The remark in brackets: that its program is `not installed`, which program its recipe `needs`,
    or the programs that its script runs. `names`: the entries of `folder`.
    """
    program = check.command.partition(" ")[0]
    programs_folder = find_own_programs(folder, names, program)
    if programs_folder:
        return _CommandText(f"{programs_folder}/{check.command}")
    if program.startswith("./"):
        return _CommandText(check.command, is_usable=os.access(folder / program, os.X_OK))
    if not find_program(program, path, in_project=True):
        # Where the manager is missing, what its script calls may be there: `bun
        # run test` is `vitest`.
        own_programs = [
            (find_own_programs(folder, names, each), each) for each in check.script_programs
        ]
        found = next((f"{where}/{each}" for where, each in own_programs if where), None)
        return (
            _CommandText(found)
            if found
            else _CommandText(f"{check.command} (not installed)", is_usable=False)
        )
    missing = next(
        (each for each in check.programs if not find_program(each, path, in_project=True)), None
    )
    if missing:
        return _CommandText(f"{check.command} (needs {missing} on the PATH)", is_usable=False)
    return _CommandText(
        f"{check.command} ({', '.join(check.script_programs)})"
        if check.script_programs
        else check.command
    )
