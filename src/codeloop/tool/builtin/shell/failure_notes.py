"""Explains failed commands to the model, if their output says why: names the missing thing,
and similar ones.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from codeloop.kit.programs import PROJECT_PROGRAM_FOLDERS
from codeloop.kit.text.suggest import find_similar, format_suggestion
from codeloop.kit.text.undecodable import replace_undecodable
from codeloop.tool.builtin.files.outline import list_file_blocks
from codeloop.tool.files.file_access import format_path
from codeloop.tool.files.similar_paths import find_similar_paths
from codeloop.tool.tool import ToolContext
from codeloop.workspace.missing_modules import (
    describe_missing_test_packages,
    explain_missing_module,
)
from codeloop.workspace.process.command_result import CommandResult

# POSIX: the shell did not find the command.
_EXIT_CODE_NOT_FOUND = 127
# The possessive `++` keeps the search linear in long lines of such characters.
_UNKNOWN_PROGRAM_ERROR = r"(?<![\w.+-])([\w.+-]++): (?:command )?not found"
_CD_ERROR = (
    r"(?m)\bcd: (?:(?P<bash>.+): (?:No such file or directory|Not a directory)|can't cd to (?P<dash>.+)"
    r"|no such file or directory: (?P<zsh>.+))$"
)
# Matches `cd` at the start of a command, with its argument in either quotes or none.
_CD_COMMAND = r"(?:^|[;&|(\n])\s*cd\s+(?:\"([^\"]+)\"|'([^']+)'|([^\s;&|)]+))"
# Matches what a check was to look at and is not there, as pytest, node, python, mocha, eslint,
# rspec, phpunit, tsc, mypy, ruff, bats, go, black, pyright and sh name it.
_TARGET_NOT_FOUND_ERROR = (
    r"(?m)^ERROR: (?:file or directory )?not found: (\S+)|^Could not find '([^'\n]+)'$|can't open file '([^'\n]+)'"
    r"|Cannot find module '(/[^'\n]+)'(?=[\s\S]{0,800}requireStack: \[\])|No test files found: \"([^\"\n]+)\""
    r"|^No files matching the pattern ['\"]([^'\"\n]+)['\"]|cannot load such file -- (/\S+)"
    r"|^Cannot open file \"([^\"\n]+)\"|^Test file \"([^\"\n]+)\" not found|path does not exist: '([^'\n]+)'"
    r"|can't read file '([^'\n]+)'|^(\S+?):\d+:\d+: E902 |^bats: (\S+) does not exist"
    r"|^stat (\S+): directory not found|Path '([^'\n]+)' does not exist"
    r"|^File or directory \"([^\"\n]+)\" does not exist|^\S*sh: \d+: cannot open (\S+?):"
)
# Matches the words for a project that is not in this folder -> the file that makes a folder one.
_PROJECT_FILES = {
    r"no makefile found|No rule to make target (?!.*needed by)": "Makefile",
    r"Could not read package\.json|ERR_PNPM_NO_IMPORTER_MANIFEST|Couldn't find a package\.json": "package.json",
    r"could not find `Cargo\.toml`": "Cargo.toml",
    r"go\.mod file not found|cannot find main module": "go.mod",
    r"there is no POM in this directory": "pom.xml",
    r"Could not find a Mix\.Project": "mix.exs",
    r"Could not find Package\.swift": "Package.swift",
    r"No Rakefile found": "Rakefile",
    r"could not find a composer\.json": "composer.json",
}
_TEST_COMMAND = (
    r"\b(?:pytest|py\.test|tox|nox|unittest|jest|vitest|mocha|(?:make|just|poe|npm"
    r"|pnpm|yarn|bun|hatch)\b.*\btests?)\b"
)
# The entry in a work tree's set of notes that are given once.
_MISSING_PACKAGES_KEY = "missing test packages"
_MAX_NAMED_FOLDERS = 12


async def explain_failure(
    command: str, outcome: CommandResult, folder: Path, ctx: ToolContext
) -> tuple[str, bool]:
    """Return a note on why a command failed in a folder ("" if the output does not say),
    and whether users see it.
    """
    output = outcome.output
    if outcome.code == _EXIT_CODE_NOT_FOUND and (
        match := re.search(_UNKNOWN_PROGRAM_ERROR, output)
    ):
        return _suggest_program(match[1], ctx), True
    if (match := re.search(_CD_ERROR, output)) and re.search(_CD_COMMAND, command):
        missing = (match["bash"] or match["dash"] or match["zsh"]).strip("'\"")
        return _suggest_folder(missing, _find_folder_of_cd(command, missing, folder), ctx), False
    if match := re.search(_TARGET_NOT_FOUND_ERROR, output):
        return await _suggest_target(next(filter(None, match.groups())), folder, ctx), False
    for pattern, name in _PROJECT_FILES.items():
        if re.search(pattern, output) and (places := _find_project_folders(name, folder, ctx)):
            return f"There is a {name} in {_join_some(places)}.", False
    missing_module = explain_missing_module(output, folder, ctx.workspace.root)
    return missing_module or _describe_missing_packages(command, folder, ctx), False


def _suggest_program(name: str, ctx: ToolContext) -> str:
    """Return a note that a program is not installed, with programs that may have been meant."""
    directory, path = ctx.workspace.directory, ctx.workspace.environment.get("PATH", "")
    in_project = [
        f"{folder}/{name}"
        for folder in (*PROJECT_PROGRAM_FOLDERS, "bin")
        if os.access(directory / folder / name, os.X_OK)
    ]
    installed = {name for folder in path.split(":") for name in _list_names(folder)}
    # `python` may only be installed as `python3`.
    versions = sorted(
        each for each in installed if re.fullmatch(re.escape(name) + r"[-\d.]+", each)
    )
    suggestions = in_project or versions[:1] or find_similar(name, installed, most_edits=1)
    return f"{name} is not installed.{format_suggestion(suggestions)}"


def _list_names(folder: str) -> list[str]:
    """Return the names in a folder; none if it is missing, or closed to the user,
    as one of root on the PATH is.
    """
    try:
        return [each.name for each in Path(folder).iterdir()] if folder else []
    except OSError:
        return []


def _find_folder_of_cd(command: str, missing: str, folder: Path) -> Path:
    """Return the folder in which the failing `cd` ran: that of the command,
    changed by the `cd`s before.
    """
    for match in re.finditer(_CD_COMMAND, command):
        name = match[1] or match[2] or match[3]
        if name == missing or not (folder / name).is_dir():
            break
        folder = folder / name
    return folder


def _suggest_folder(missing: str, start: Path, ctx: ToolContext) -> str:
    """Return a note on the folders next to the missing one;
    "" if it exists, or is outside the project.
    """
    parent = Path(os.path.normpath(start / missing))
    if parent.is_dir():
        return ""
    while not parent.parent.is_dir():
        parent = parent.parent
    name, parent = parent.name, parent.parent
    if not ctx.workspace.contains(Path(os.path.realpath(parent))):
        return ""
    where = format_path(ctx.workspace, parent)
    names = sorted(
        replace_undecodable(each.name)
        for each in parent.iterdir()
        if each.is_dir() and each.name[:1] != "."
    )
    shown = _join_some([*find_similar(name, names), *names])
    location = "the project folder" if where in {"", "."} else where
    present = f"the folders there are {shown}" if names else "it has no folders"
    return f"There is no folder {replace_undecodable(name)} in {location}; {present}."


def _find_project_folders(name: str, folder: Path, ctx: ToolContext) -> list[str]:
    """Return the folders near `folder` that have a file, those above it first;
    empty if it is there itself.
    """
    if (folder / name).exists():
        return []
    root = ctx.workspace.root
    above = [each for each in folder.parents if each == root or root in each.parents]
    below = sorted(each.parent for start in {folder, root} for each in start.glob(f"*/{name}"))
    found = [
        each
        for each in (*above, *below)
        if (each / name).is_file() and ctx.workspace.contains(each)
    ]
    return [format_path(ctx.workspace, each) or "." for each in found]


def _join_some(names: Iterable[str]) -> str:
    """Return the first names, each once, and how many more there are."""
    distinct = list(dict.fromkeys(names))
    more = (
        f" and {len(distinct) - _MAX_NAMED_FOLDERS} more"
        if len(distinct) > _MAX_NAMED_FOLDERS
        else ""
    )
    return ", ".join(distinct[:_MAX_NAMED_FOLDERS]) + more


async def _suggest_target(target: str, folder: Path, ctx: ToolContext) -> str:
    """Return a note on files, or tests of a file, that resemble a target which pytest did not find;
    "" for none.
    """
    name, _, test = target.partition("::")
    path = Path(os.path.normpath(folder / name))
    if not ctx.workspace.contains(Path(os.path.realpath(path))):
        return ""
    if path.is_file() and test:
        # `est` is in `test_total`, `Test_total` and `TestTotal`.
        tests = [
            each.name.replace(".", "::") for each in list_file_blocks(path) if "est" in each.name
        ]
        if not tests:
            return ""
        similar_tests = find_similar(test.partition("[")[0], tests)
        name = format_path(ctx.workspace, path)
        return f"{name} has no {replace_undecodable(test)}.{format_suggestion(similar_tests)}"
    similar_paths = [] if path.exists() else await find_similar_paths(ctx.workspace, path)
    return (
        f"Similar paths: {', '.join(map(replace_undecodable, similar_paths))}."
        if similar_paths
        else ""
    )


def _describe_missing_packages(command: str, folder: Path, ctx: ToolContext) -> str:
    """Return a note on missing packages that tests need,
    at the first failing test run in a work tree, else "".
    """
    shown_notes = ctx.workspace.shells.warned
    if not re.search(_TEST_COMMAND, command) or _MISSING_PACKAGES_KEY in shown_notes:
        return ""
    shown_notes.add(_MISSING_PACKAGES_KEY)
    return describe_missing_test_packages(folder, ctx.workspace.root, ctx.workspace.environment)
