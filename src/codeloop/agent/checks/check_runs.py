"""The checks that a turn has run (tests, linters, types, builds): which passed, and whether files changed later. Pure.

Read from the commands of the turn and their outputs; `check_commands.py` decides which commands are checks.
"""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct, structs

from codeloop.agent.checks.changed_tests import pick_failure_lines
from codeloop.agent.checks.check_commands import (
    CheckCommand,
    find_checks,
    find_functions,
    hides_exit_code,
    inverts_check,
    is_outside,
    join_folder,
    runs_check,
    split_line,
)
from codeloop.agent.checks.runner_summaries import read_test_counts
from codeloop.schema.part import CHECK_KEY, SHELL_NOTES_SEPARATOR, Part, PatchPart, ToolPart, ToolStateCompleted
from codeloop.schema.wire import Wire, replace
from codeloop.tool.tool import EDIT_TOOLS

# Suffixes of files that checks ignore: a line in a changelog leaves the last check valid.
_PROSE_SUFFIXES = (".md", ".rst", ".adoc")
# A line by which a known program says that something failed, or by which it is known that it didn't start.
_FAILURE_LINE = re.compile(
    # pytest and unittest
    r"^=+ .*\b[1-9]\d* (?:failed|errors?)\b.* =+$|^[1-9]\d* failed\b|^(?:FAILED|ERROR) \S+\.py"
    r"|^(?:\d+ \w+, )*[1-9]\d* errors? in [\d.]+s|\bInterrupted: \d+ error|^ERROR: .*not found|^E {3,}\S"
    r"|^(?:=+ )?no tests ran|^NO TESTS RAN|^FAILED \("
    # jest, vitest, mocha, ava, node (TAP, spec, dot), bun, deno, playwright
    r"|^ *Tests:? +(?:.*\b)?[1-9]\d* failed|^ *Test (?:Suites:|Files) +[1-9]\d* failed"
    r"|^No tests? (?:files )?found\b"
    r"|^ +[1-9]\d* failing\b|^ +[1-9]\d* (?:tests? )?failed$|^ +[1-9]\d* uncaught exceptions?"
    r"|^[#\u2139] (?:fail|cancelled) [1-9]|^\u2716 failing tests:|^Failed tests:|^# Error \["
    r"|^ *not ok\b(?!.*# (?:TODO|SKIP))|^ *[1-9]\d* fail$|^FAILED \|"
    # rspec, jasmine, mix, minitest, bats, phpunit, swift, ctest
    r"|^(?:\d+ \w+, )+[1-9]\d* (?:failures?|errors?)\b|\b[1-9]\d* errors? occurred outside of examples"
    r"|^Tests: \d+, .*(?:Failures|Errors): [1-9]|^(?:FAILURES|ERRORS)!|^[ \t]*Executed \d+ tests?, with [1-9]"
    r"|\b[1-9]\d* tests? failed out of \d"
    # go, cargo, dotnet, gradle, maven, make, npm
    r"|^FAIL(?:\s|$)|^ *--- FAIL|^\S+\.go:\d+:\d+: |^test result: FAILED|^error(?:\[E\d+\])?: "
    r"|^ *Summary .*\b[1-9]\d* failed"
    r"|^Failed! +-|^Test Run Failed|: error [A-Z]+\d+: |\bBUILD FAIL(?:URE|ED)\b|^Build FAILED"
    r"|^ *\[ERROR\] (?:Tests run:|Failed|COMPIL|Found)"
    r"|^make(?:\[\d+\])?: \*\*\* |^npm (?:ERR!|error)|\bELIFECYCLE\b|^error Command failed|^\[!\] "
    # linters and types
    r"|\berror TS\d+:|^Found [1-9]\d* (?:errors?|problems?)\b|^[1-9]\d* errors?,|\b\d+ problems? \([1-9]"
    r"|^\S+:\d+(?::\d+)?: (?:fatal )?error: |^\S+\.py:\d+:\d+: [A-Z]+\d+\b|^[1-9]\d* issues:"
    # it didn't start
    r"|^\S*sh: .*(?:not found|No such file or directory)|^\S*python[\d.]*(?:\.exe)?: No module named ",
    re.MULTILINE,
)
# A line that says what failed, not only that or how often.
_ERROR_LINE = re.compile(
    r"^E {3,}\S|^(?:FAILED|ERROR|FAIL:|ERROR:) \S|^\s*(?:[\w.]+\.)?\w*(?:Error|Exception)\b(?: \[\w+\])?: \S"
    r"|^error(?:\[E\d+\])?: |\b(?:fatal )?error: |: error |\berror [A-Z]+\d+: |^\S+\.\w+:\d+:\d+: \S"
    r"|^ *--- FAIL: |^ *not ok\b|^\s*[\u2716\u2717\u00d7\u25cf] \S|^npm (?:ERR!|error) \S|\bpanicked at\b"
    r"|^make(?:\[\d+\])?: \*\*\* ",
    re.MULTILINE,
)
# The last line of a traceback. Tests that pass may print one, too.
_CRASH_LINE = re.compile(r"^(?:\w+\.)*(?:\w+(?:Error|Exception)|Error(?: \[\w+\])?)(?:: |$)", re.MULTILINE)
# A line by which a known program says that all passed.
_PASS_LINE = re.compile(
    r"^(?:=+ )?(?:\d+ \w+, )*[1-9]\d* passed\b.* in [\d.]+s|^OK(?: \(.*\))?$"
    r"|^ *Tests:? .*\b[1-9]\d* passed|^ +[1-9]\d* passing\b|^ +[1-9]\d* tests? passed|^ +[1-9]\d* passed \("
    r"|^[#\u2139] fail 0$|^ *0 fail$|^ok \| [1-9]\d* passed"
    r"|^[1-9]\d* (?:examples?|specs?|tests?|runs|doctests?|properties)\b.*, 0 failures\b"
    r"|^[ \t]*Executed [1-9]\d* tests?, with 0 failures|^100% tests passed"
    r"|^ok\s+\S+\s+(?:[\d.]+s|\(cached\))|^PASS$|^test result: ok\.|^ +Finished .*\Z"
    r"|^ *Summary .*\b[1-9]\d* passed"
    r"|^Passed! +-|^Test Run Successful|^Build succeeded|\bBUILD SUCCESS(?:FUL)?\b"
    r"|^All checks passed!|^Success: no issues found|^0 errors, |^Found 0 errors|^Checked [1-9]\d* files?\b"
    r"|^0 issues\."
    r"|\brated at 10\.00/10|\[OK\] No errors",
    re.MULTILINE,
)
# A line by which it is known that a check didn't start: the next one is another try at the same.
_NOT_STARTED_LINE = re.compile(
    r"^\S*sh: .*(?:not found|No such file or directory)|^\S*python[\d.]*(?:\.exe)?: No module named |: not found$"
    r"|^ERROR: (?:file or directory )?not found:"
    r"|Missing script:|No rule to make target|could not determine executable|unrecognized (?:arguments|option)"
    r"|No such option|[Uu]nknown (?:option|command)|no such (?:command|subcommand)|does not contain recipe",
    re.MULTILINE,
)
# Characters kept of the line that says what failed.
_MAX_ERROR_CHARS = 200
_COLOUR_ESCAPE = re.compile(r"\x1b\[[\d;]*m")

_FOLDER_NOTE = re.compile(r"^The working directory is now (.+)\.$", re.MULTILINE)

# Problems, as reminders to the model name them.
UNPROVEN_CHECK_PROBLEM = "nothing shows that the last check passed"
EARLIER_FAILURE_PROBLEM = "a check failed and has not passed since"
LATE_CHANGES_PROBLEM = "files changed after the last check"


class CheckRun(Wire):
    """A check: its command, its exit code (None: it was ended, or still runs), and whether no file was edited after it.

    A line that ends with another command (`pytest | tail`) exits with 0 whatever the check found: there its own closing
    line counts. Without one that is known, it neither `failed` nor `passed`; nor did tests of which none ran.

    `error`: the last line of its output that says what failed; empty where it passed.
    `started`: false where its output says that the program or the task is not there, or was called wrongly.
    `folder`: where it ran, relative to the session's directory (""). `own_script`: it is a script that the turn wrote.
    """

    command: str
    exit_code: int | None
    after_last_edit: bool
    failed: bool
    passed: bool
    started: bool = True
    folder: str = ""
    own_script: bool = False
    error: str = ""


class _CheckRow(Struct):
    """A check run, the message of its step, its output, and the id of its background command ("": none)."""

    run: CheckRun
    message_id: str
    output: str
    background_id: str = ""


def is_goal_check(part: ToolPart) -> bool:
    """Return whether a call is a check of a goal that codeloop ran itself."""
    return isinstance(part.state, ToolStateCompleted) and bool(part.state.metadata.get(CHECK_KEY))


def list_checks(parts: Iterable[Part], root: str = "") -> list[CheckRun]:
    """Return the checks among the calls of a turn, oldest first. `root`: the session's directory, if it is known."""
    return [row.run for row in _list_rows(parts, root)]


def read_failures(parts: Iterable[Part]) -> str | None:
    """Return the lines about failures that the failed checks of a turn printed; None: no check failed."""
    outputs = [pick_failure_lines(_COLOUR_ESCAPE.sub("", row.output)) for row in _list_rows(parts) if row.run.failed]
    return "\n".join(outputs) if outputs else None


def _list_rows(parts: Iterable[Part], root: str = "") -> list[_CheckRow]:
    reader = _CheckReader(root)
    for part in parts:
        reader.add_part(part)
    return reader.rows


class _CheckReader:
    """Collects the checks from the parts of a turn, oldest first."""

    def __init__(self, root: str) -> None:
        self.rows: list[_CheckRow] = []
        self._root = root
        self._folders: dict[str, str] = {}
        """By session: where its shell is."""
        self._functions: set[str] = set()
        self._written: set[str] = set()

    def add_part(self, part: Part) -> None:
        """Add the next part of the turn."""
        if isinstance(part, PatchPart) and not all(file.lower().endswith(_PROSE_SUFFIXES) for file in part.files):
            # A command may have changed them. Within a step it is not known whether that was before the check.
            self._mark_outdated(part.message_id)
            self._written |= {self._shorten(file) for file in part.files}
        if not isinstance(part, ToolPart) or not isinstance(part.state, ToolStateCompleted):
            return
        file = str(part.state.input.get("filePath"))
        if part.tool in EDIT_TOOLS:
            self._written.add(self._shorten(file))
            if not file.lower().endswith(_PROSE_SUFFIXES):
                self._mark_outdated("")
        elif part.tool == "bash_output":
            self._add_output(part.state)
        elif part.tool == "bash" and not part.state.input.get("unchanged"):  # else it says nothing about the files
            self._add_command(part, part.state)

    def _mark_outdated(self, but_message: str) -> None:
        for row in self.rows:
            if row.message_id != but_message:
                row.run = replace(row.run, after_last_edit=False)

    def _shorten(self, file: str) -> str:
        return file.removeprefix(f"{self._root}/") if self._root else file

    def _add_command(self, part: ToolPart, state: ToolStateCompleted) -> None:
        command = str(state.input.get("command"))
        folder = self._folders.get(part.session_id, "")
        if state.input.get("workdir"):
            folder = join_folder(folder, str(state.input["workdir"]), self._root)
        if match := _FOLDER_NOTE.search(state.output):
            self._folders[part.session_id] = join_folder("", match[1], self._root)
        self._functions |= find_functions(command)
        checks = find_checks(command, folder, self._root)
        if not is_goal_check(part) and (not checks or all(is_outside(each.folder, self._root) for each in checks)):
            return
        background_id = str(state.metadata.get("id") or "")
        run = _read_run(command, state.metadata.get("exit"), state.output)
        if background_id or not self._functions.isdisjoint(each.program.partition(" ")[0] for each in checks):
            # It still runs, or the name is a shell function, whose result says nothing about the program.
            run = replace(run, failed=False, passed=False)
        own_script = bool(checks) and all(each.is_task and each.program in self._written for each in checks)
        run = replace(run, folder=folder, own_script=own_script)
        self.rows.append(_CheckRow(run, part.message_id, "" if background_id else state.output, background_id))

    def _add_output(self, state: ToolStateCompleted) -> None:
        """Take what a check in the background has printed and how it ended."""
        row = next(
            (each for each in self.rows if each.background_id and each.background_id == state.metadata.get("id")), None
        )
        if row is None:
            return
        row.output += state.output
        if state.metadata.get("status") == "exited":
            run = _read_run(row.run.command, state.metadata.get("exit"), row.output)
            names = ("failed", "passed", "exit_code", "started")
            row.run = replace(row.run, **{name: getattr(run, name) for name in names})
            row.background_id = ""


def find_failure(check_runs: Sequence[CheckRun], root: str = "") -> CheckRun | None:
    """Return the newest check that failed, unless a later one that covers it passed; None: there is none.

    A part of it that passes (`pytest tests/test_a.py` after `pytest`) does not hide that the whole failed. Of a line of
    several checks it is not known which one failed: it counts as passed when its tests are.
    """
    failures: list[tuple[CheckRun, list[CheckCommand]]] = []
    for run in check_runs:
        commands = find_checks(run.command, run.folder, root) or [
            CheckCommand(run.command, "all", filters=(run.command,))
        ]
        # A script that the turn wrote shows nothing about the checks of the project.
        if run.own_script:
            commands = [structs.replace(each, is_task=False) for each in commands]
        # A failure counts no longer where a later run with a known result covers it.
        if run.passed or run.failed:
            earlier_failures = [(earlier, left, _list_uncovered(left, commands)) for earlier, left in failures]
            failures = [
                (earlier, remaining) for earlier, left, remaining in earlier_failures if _still_counts(remaining, left)
            ]
        if run.failed and run.started:
            failures.append((run, commands))
    return failures[-1][0] if failures else None


def _list_uncovered(commands: Sequence[CheckCommand], by: Sequence[CheckCommand]) -> list[CheckCommand]:
    return [each for each in commands if not any(mine.covers(each) for mine in by)]


def _still_counts(remaining: Sequence[CheckCommand], before: Sequence[CheckCommand]) -> bool:
    return len(remaining) == len(before) or any(each.kind in {"test", "all"} for each in remaining)


def describe_problem(check_runs: Sequence[CheckRun], root: str = "") -> tuple[str, str] | None:
    """Return why a turn's checks don't show that all is well, as a phrase and a detail; None: they do."""
    if not check_runs:
        return None
    last = check_runs[-1]
    if last.failed:
        return "the last check failed", last.command
    if not last.passed:
        return UNPROVEN_CHECK_PROBLEM, last.command
    if not last.after_last_edit:
        return LATE_CHANGES_PROBLEM, last.command
    if (failure := find_failure(check_runs, root)) is not None:
        return EARLIER_FAILURE_PROBLEM, failure.command
    return None


def _read_run(command: str, code: int | None, output: str) -> CheckRun:
    failed, passed = _judge_outcome(command, code, output)
    started = not failed or (code not in {126, 127} and not _NOT_STARTED_LINE.search(output))
    return CheckRun(
        command=command,
        exit_code=code,
        after_last_edit=True,
        failed=failed,
        passed=passed,
        started=started,
        error=_find_error_line(output) if failed else "",
    )


def _find_error_line(output: str) -> str:
    """Return the last line that says what failed, else the last one that says that something did, else the last."""
    text = _COLOUR_ESCAPE.sub("", output.partition(SHELL_NOTES_SEPARATOR)[0]).strip().removeprefix("(no output)")
    for pattern in (_ERROR_LINE, _FAILURE_LINE):
        if matches := [*pattern.finditer(text)]:
            start = text.rfind("\n", 0, matches[-1].start() + 1) + 1
            return text[start:].partition("\n")[0].strip()[:_MAX_ERROR_CHARS]
    return text.rpartition("\n")[2].strip()[:_MAX_ERROR_CHARS]


def _judge_outcome(command: str, code: int | None, output: str) -> tuple[bool, bool]:
    """Return whether a check failed, and whether it passed; neither where nothing tells."""
    text = _COLOUR_ESCAPE.sub("", output).rstrip()
    results = read_test_counts(text)
    if "!" in command and inverts_check(command):
        return False, False
    if code != 0 or not hides_exit_code(command):
        # `cargo build && cargo test` has built, even where there is no test yet.
        has_run = results is None or results.ran > 0 or any(each.kind != "test" for each in find_checks(command))
        return code != 0, code == 0 and has_run
    has_pass = _PASS_LINE.search(text) is not None
    failed = _FAILURE_LINE.search(text) is not None or (not has_pass and _CRASH_LINE.search(text) is not None)
    return failed, has_pass and not failed and not _may_print_pass(command)


def _may_print_pass(command: str) -> bool:
    """Return whether a line may print that all passed although its checks did not: by itself, or by filtering."""
    has_check = False
    operator = ""
    for words, end in split_line(command):
        is_filter = has_check and operator == "|" and bool(words)
        texts = [word.replace("\\n", "\n") for word in (*words[1:], " ".join(words[1:]))]
        prints_pass = any(_PASS_LINE.search(text) for text in texts)
        if runs_check(words):
            has_check = True
        elif prints_pass or (is_filter and not _passes_failures_on(words)):
            return True
        operator = end
    return False


def _passes_failures_on(words: Sequence[str]) -> bool:
    """Return whether a command after a pipe lets lines about failures through."""
    program = words[0].rpartition("/")[2]
    if program in {"grep", "egrep", "rg"}:
        options = "".join(word for word in words[1:] if word.startswith("-") and not word.startswith("--"))
        shows_lines = not {"o", "v", "c", "q"} & set(options) and not {"--only-matching", "--count"} & set(words)
        return shows_lines and any(re.search("fail|error", word, re.IGNORECASE) for word in words[1:])
    return program in {"tail", "tee", "cat", "less", "more", "ts", "sort", "uniq"}
