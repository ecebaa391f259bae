"""Finds the checks in command lines (tests, linters, type checkers, builds),
and how much each of them checks. Pure.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise, takewhile
from pathlib import PurePath
from typing import get_args

from msgspec import structs

from codeloop.shell.check_options import (
    CODE_OPTIONS,
    CODE_RUN,
    CODE_WITHOUT_EXIT,
    INFORMATION_OPTIONS,
    JVM_TASK,
    NO_TESTS,
    OTHER_TASK_PART,
    QUOTED_TEXT,
    SCRIPT_NAME,
    TASK_NAME,
    TEST_FILE,
    TEST_FOLDERS,
    TEST_MODULE,
    TEST_PROGRAM,
    TESTING_BUILDS,
    WHOLE_PARTS,
    CheckKind,
)
from codeloop.shell.check_scope import (
    CheckCommand,
    find_program_row,
    make_check,
    make_file_check,
    strip_version,
)
from codeloop.shell.line_steps import split_line
from codeloop.shell.program_table import find_row
from codeloop.shell.unwrappers import COMMAND_UNWRAPPERS

# Models write it for the top of the work tree: `cd $(git rev-parse --show-toplevel) && pytest`.
_TOP_EXPRESSION = "$(git rev-parse --show-toplevel)"
# How deep lines inside of lines (`bash -c "..."`) are followed.
_MAX_NESTING = 3
_ASSIGNMENT = r"[A-Za-z_]\w*\+?="
# Words that may stand before a command.
_KEYWORDS = frozenset(
    (
        *("!", "if", "then", "elif", "else", "do", "while", "until"),
        *("time", "{", "exec", "command", "eval"),
    )
)


def is_check(line: str) -> bool:
    """Return whether a command tests, lints, type-checks or builds,
    and does not only look at such a file.
    """
    return bool(find_checks(line))


def find_checks(line: str, folder: str = "", root: str = "") -> list[CheckCommand]:
    """Return the checks that a command line runs, in order.

    `folder`: where the line begins, as in `CheckCommand`;
    `root`: the session's directory, "" if it is not known.
    """
    return [*_find_checks(line.replace(_TOP_EXPRESSION, root or "."), _MAX_NESTING, folder, root)]


def _find_checks(line: str, depth: int, folder: str, root: str) -> Iterator[CheckCommand]:
    """Yield the checks of a line. `depth`: how deep lines inside of it are still followed."""
    # A subshell begins in the folder of the line around it, to which the line returns after it.
    outer_folders: list[str] = []
    for words, operator in split_line(line):
        if words[:1] in (["cd"], ["pushd"]):
            # `~` stays as it is: a folder of that name is none of the project's.
            folder = join_folder(folder, words[1] if len(words) > 1 else "~", root)
        for check in _read_command(words, depth):
            yield structs.replace(check, folder=join_folder(folder, check.folder, root))
        if operator == "(":
            outer_folders.append(folder)
        elif operator == ")" and outer_folders:
            folder = outer_folders.pop()


def join_folder(folder: str, target: str, root: str) -> str:
    """Return the folder that `cd target` leads to from `folder`; both as in `CheckCommand`."""
    path = os.path.normpath(str(PurePath(root, folder, target)))
    if root and (path == root or path.startswith(f"{root}/")):
        path = path[len(root) :].lstrip("/")
    return "" if path == "." else path


def is_outside(folder: str, root: str) -> bool:
    """Return whether a folder, as in `CheckCommand`,
    is neither below nor above the session's directory.
    """
    return bool(root) and folder.startswith("/") and not root.startswith(f"{folder.rstrip('/')}/")


def runs_check(words: Sequence[str]) -> bool:
    """Return whether a simple command is a check."""
    return any(True for _ in _read_command(words, _MAX_NESTING))


def inverts_check(line: str) -> bool:
    """Return whether a line inverts the exit code of a check (`! pytest`)."""
    for words, _ in split_line(line):
        keywords = takewhile(lambda word: word in _KEYWORDS, words)
        if "!" in keywords and runs_check(words):
            return True
    return False


def hides_exit_code(line: str) -> bool:
    """Return whether a line may exit with 0 although a check in it failed."""
    commands = [
        (words, operator)
        for words, operator in split_line(line)
        if words or operator in {"&", "`", "("}
    ]
    for index, (words, _) in enumerate(commands):
        if not runs_check(words):
            continue
        words_before = commands[index - 1][0] if index else []
        # `echo $(pytest)` is split after the `$`.
        if words_before[-1:] == ["$"] or any(_hides_inside(word) for word in words):
            return True
        if _is_exit_code_lost(commands[index:], has_pipefail="pipefail" in line):
            return True
    return False


def _is_exit_code_lost(commands: Sequence[tuple[list[str], str]], *, has_pipefail: bool) -> bool:
    """Return whether the exit code of the first command may be replaced by that of a later one."""
    for index, (_, operator) in enumerate(commands):
        if operator in {"&", "`"}:
            return True
        next_words = next((words for words, _ in commands[index + 1 :] if words), None)
        if next_words is None:
            return False
        # `pytest || exit 1`
        if (
            operator == "||"
            and next_words[0] in {"exit", "return", "false"}
            and next_words[-1] != "0"
        ):
            continue
        if operator in {"||", ";", "\n"} or (operator == "|" and not has_pipefail):
            return True
    return False


def _hides_inside(word: str) -> bool:
    """Return whether a word is code (`python -c`) or a line (`bash -c`) that runs a
    check and drops its exit code.
    """
    # `sys.exit(pytest.main())` and `raise SystemExit(pytest.main())` pass it on.
    match = re.search(CODE_RUN, word)
    if match is not None and "xit(" not in word and match["runner"] in CODE_WITHOUT_EXIT:
        return True
    return " " in word and hides_exit_code(word)


def _read_command(words: Sequence[str], depth: int) -> Iterator[CheckCommand]:
    """Yield the check of a simple command; several, where it runs lines of its own."""
    start = next(
        (
            n
            for n, word in enumerate(words)
            if word not in _KEYWORDS and not re.match(_ASSIGNMENT, word)
        ),
        len(words),
    )
    assigned_options = [
        word.partition("=")[2] for word in words[:start] if word.startswith("PYTEST_ADDOPTS=")
    ]
    words = words[start:]
    if assigned_options:
        options = [word for text in assigned_options for word in text.split()]
        filters = make_check("pytest", "test", options).filters
        for check in _read_command(words, depth):
            yield structs.replace(check, filters=(*check.filters, *filters))
        return
    if not words or any(word in INFORMATION_OPTIONS for word in words[1:]):
        return
    name = words[0].rpartition("/")[2].removesuffix(".exe")
    if (check := _read_program(name, words) or _read_task(name, words[1:])) is not None:
        yield check
        return
    inner_words = _list_inner_words(name, words)
    # The wrapper's own options come first, and it is not known which have values: each
    # word is tried as the start.
    for index, word in enumerate(inner_words):
        if " " in word and depth:
            yield from _find_checks(word, depth - 1, folder="", root="")
        elif inner_checks := [*_read_command(inner_words[index:], depth=0)]:
            # The targets of `xargs` come from standard input, so it may check any part.
            input_filter = ("xargs",) if name == "xargs" else ()
            for check in inner_checks:
                yield structs.replace(check, filters=(*check.filters, *input_filter))
            return


def _list_inner_words(name: str, words: Sequence[str]) -> Sequence[str]:
    """Return the words among which a wrapper's command begins;
    empty: the program is not a wrapper.
    """
    row = find_program_row(name)
    # Some package managers run programs by their names, beside their subcommands.
    runs_any = "*" in row.runs_after.split("; ")
    is_wrapper = row.wraps is not None or row.runs_words == "command" or runs_any
    if is_wrapper or row.unwrap in COMMAND_UNWRAPPERS:
        return words[1:]
    # git runs commands by subcommands, too, but does not end as they do.
    subcommands = {
        each.split()[-1] for each in row.runs_after.split(";") if each and row.unwrap is None
    }
    for index, word in enumerate(words):
        if word in subcommands:
            return words[index + 1 :]
    return []


@cache
def _parse_kinds(text: str) -> dict[str, CheckKind]:
    """Return the kinds of `ProgramRow.checks` by subcommand; "": of the program without one."""
    kinds: dict[str, CheckKind] = {}
    for part in filter(None, " ".join(text.split()).split("; ")):
        kind_text, _, subcommands = part.partition(": ")
        kind: CheckKind = next(kind for kind in get_args(CheckKind) if kind == kind_text)
        kinds |= dict.fromkeys(subcommands.split(", "), kind)
    return kinds


def _read_program(name: str, words: Sequence[str]) -> CheckCommand | None:
    """Return the check of a known program, or of a script with a check's name;
    None: it is not a check.
    """
    unversioned_name = strip_version(name)
    row = find_program_row(name)
    # `cargo +nightly test`: the toolchain stands before the subcommand.
    rest = [word for word in words[1:] if not word.startswith("+")]
    if name == "sbt":
        # `sbt "testOnly Foo"`, `sbt core/test`
        pieces = [word.rpartition("/") for word in " ".join(rest).split()]
        rest = [*(word for *_, word in pieces), *(module for module, *_ in pieces if module)]
    elif name == "nx":
        # `nx run-many --target=test`
        rest = " ".join(rest).replace("=", " ").split()
    for subcommand, kind in _parse_kinds(row.checks).items():
        if not subcommand:
            # `nox -s lint`: its task tells what it checks.
            if row.tasks is not None and (task := _read_task(unversioned_name, words[1:])):
                return task
            return make_check(unversioned_name, kind, rest)
        needed_words = subcommand.split()
        if _has_subcommand(rest, needed_words[0]) and all(word in rest for word in needed_words):
            index = rest.index(needed_words[-1])
            # `npm --prefix web test`: of what comes before, only where it works counts.
            places = {*row.enters.split(), *row.picks.split()}
            options = [
                word
                for option, value in pairwise(rest[:index])
                if option in places
                for word in (option, value)
            ]
            arguments = [*options, *rest[index + 1 :]]
            return make_check(f"{unversioned_name} {subcommand}", kind, arguments)
    if row.tasks == "jvm":
        return _read_jvm(unversioned_name.removesuffix("w"), words[1:])
    if unversioned_name == "rake" and len(words) == 1:
        return CheckCommand("rake", "all", is_task=True)
    # `bun run test`: a script of package.json, not the file of that name.
    is_task = row.tasks is not None and words[1:2] != [] and words[1] in row.tasks.split()
    if is_task and not any(mark in words[-1] for mark in "./"):
        return None
    if not row.is_interpreter:
        return _read_script(words[0], is_run_by_name=True)
    if not CODE_OPTIONS.isdisjoint(words) and (match := re.search(CODE_RUN, " ".join(words))):
        kind: CheckKind = next(kind for kind in ("test", "all", "lint") if match[kind])
        arguments = tuple(re.findall(QUOTED_TEXT, match["arguments"]))
        return make_check(match["runner"].removesuffix(".main"), kind, arguments)
    script = next((word for word in words[1:] if not word.startswith("-") and word != "run"), "")
    # `python manage.py test`: the script itself has a row.
    script_name = script.rpartition("/")[2]
    if find_row(script_name).checks:
        return _read_program(script_name, words[words.index(script, 1) :])
    return _read_script(script, is_run_by_name=False)


def _has_subcommand(words: Sequence[str], wanted: str) -> bool:
    """Return whether a program's first plain word, after options and their values,
    is the wanted one.
    """
    if wanted.startswith("-"):
        return wanted in words
    may_be_value = False
    for word in words:
        if word == wanted:
            return True
        # `yarn workspace web test`: like an option, `workspace` has a value.
        is_option = word.startswith("-") or word == "workspace"
        if not is_option and not may_be_value:
            return False
        may_be_value = is_option
    return False


def _read_jvm(name: str, words: Sequence[str]) -> CheckCommand | None:
    """Return the check of Maven or Gradle. Tasks of one module are its targets,
    options that pick tests its filters.
    """
    matches = [
        match
        for word in words
        if not word.startswith("-") and (match := re.fullmatch(JVM_TASK, word))
    ]
    if not matches:
        return None
    kinds = {match.lastgroup for match in matches}
    kind: CheckKind = "build"
    if "test" in kinds:
        kind = "test"
    elif "all" in kinds:
        kind = "all"
    elif kinds == {"lint"}:
        kind = "lint"
    runs_all = any(match[0].rpartition(":")[2] in TESTING_BUILDS for match in matches)
    modules = tuple(match[0].rpartition(":")[0] for match in matches if ":" in match[0].lstrip(":"))
    omissions = re.findall(NO_TESTS, " ".join(words))
    filters = (
        word.replace("=", " ", 1)
        for word in words
        if word.startswith(("-Dtest", "--tests", "-pl", "--projects"))
    )
    return CheckCommand(
        program=f"{name} {kind}",
        kind=kind,
        targets=modules,
        filters=(*filters, *omissions),
        is_task=True,
        runs_all=runs_all and not omissions,
        language="jvm",
    )


def _read_script(path: str, *, is_run_by_name: bool) -> CheckCommand | None:
    """Return the check of a script with a check's name, or in a folder of tests;
    None: it is neither.
    """
    folder, _, name = path.removeprefix("./").rpartition("/")
    if (is_run_by_name and "/" not in path) or re.search(OTHER_TASK_PART, name):
        return None
    match = re.fullmatch(SCRIPT_NAME, name)
    if match is not None and not re.fullmatch(TEST_MODULE, name):
        kind: CheckKind = next(kind for kind in ("test", "lint", "all") if match[kind])
        return CheckCommand(path.removeprefix("./"), kind, is_task=True)
    if is_run_by_name and re.fullmatch(TEST_PROGRAM, name):
        return CheckCommand(path.removeprefix("./"), "test", (path.removeprefix("./"),))
    if re.fullmatch(TEST_FILE, name) is None:
        return None
    is_in_test_folder = not TEST_FOLDERS.isdisjoint(folder.split("/"))
    if is_in_test_folder or name.startswith("test_") or re.search(r"[_.-](?:test|spec)\.", name):
        return make_file_check(path)
    return None


def _read_task(name: str, words: Sequence[str]) -> CheckCommand | None:
    """Return the check that a task runner is asked for, by the task's name;
    None: no task runner, or no check.
    """
    row = find_row(name)
    if row.tasks is None:
        return None
    task_words = row.tasks.split()
    values = {
        value
        for option, value in pairwise(words)
        if option in (*row.enters.split(), *row.picks.split())
    }
    tasks = [
        word
        for word in words
        if word not in values
        and not word.startswith(("-", "+"))
        and not re.match(_ASSIGNMENT, word)
    ]
    # `npm run test`: one task, after the word. `make lint test`: any number of tasks.
    if task_words != ["*"]:
        index = next((index for index, word in enumerate(tasks) if word in task_words), None)
        if index is None and "?" not in task_words:
            return None
        start = 0 if index is None else index + 1
        tasks = tasks[start : start + 1]
    for task in tasks:
        match = re.fullmatch(TASK_NAME, task)
        if match is None or re.search(OTHER_TASK_PART, task):
            continue
        kind: CheckKind = next(kind for kind in get_args(CheckKind) if match[kind])
        family = "npm" if name in {"pnpm", "yarn", "bun"} else name
        # Further words are those of its program (`npm run test -- a.test.js`), or more tasks.
        options = [
            *words[: words.index(task)],
            *(words[words.index(task) + 1 :] if task_words != ["*"] else ()),
        ]
        check = make_check(name, kind, [word for word in options if word not in task_words])
        # `npm run test:unit` checks a part of `npm run test`, and `test:ci` all of it.
        part = match["rest"].lstrip(":._/-")
        targets = check.targets if not part or part in WHOLE_PARTS else (part,)
        return structs.replace(
            check, program=f"{family} {kind}", targets=targets, is_task=True, runs_all=False
        )
    return None
