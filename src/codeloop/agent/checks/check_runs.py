"""The checks that a turn has run (tests, linters, types, builds): which passed, and whether files changed later. Pure.

They are read from the turn's commands and their outputs: `check_commands.py` decides which commands are checks, and
`check_outcome.py` whether a check passed.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct, structs

from codeloop.agent.checks.check_commands import CheckCommand, find_checks, find_functions, is_outside, join_folder
from codeloop.agent.checks.check_outcome import CheckOutcome, judge_outcome, pick_failure_lines
from codeloop.schema.part import (
    CHECK_KEY,
    LATER_OUTPUT_KEY,
    Part,
    PatchPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
)
from codeloop.schema.wire import Wire, replace
from codeloop.tool.tool import EDIT_TOOLS

# Suffixes of files that checks ignore: a line in a changelog leaves the last check valid.
_PROSE_SUFFIXES = (".md", ".rst", ".adoc")
# The note by which the tool `bash` says that a command has changed the directory of the session's shell.
_FOLDER_NOTE = r"(?m)^The working directory is now (.+)\.$"

# Problems, as reminders to the model name them.
UNENDED_CHECK_PROBLEM = "the last check did not end"
UNPROVEN_CHECK_PROBLEM = "nothing shows that the last check passed"
EARLIER_FAILURE_PROBLEM = "a check failed and has not passed since"
LATE_CHANGES_PROBLEM = "files changed after the last check"


class CheckRun(Wire):
    """A check: its command, its exit code (None: it was ended, or still runs), and whether no file was edited after it.

    `ended`: false where it still runs, or was ended at its timeout: it neither failed nor passed.

    A line that ends with another command (`pytest | tail`) exits with 0 whatever the check found: there its own closing
    line counts. Without one that is known, it neither `failed` nor `passed`; nor did tests of which none ran.

    `error`: the last line of its output that says what failed; empty where it passed.
    `started`: false where its output says that the program or the task is not there, or was called wrongly.
    `folder`: where it ran, as in `CheckCommand`. `own_script`: it is a script that the turn wrote.
    """

    command: str
    exit_code: int | None
    after_last_edit: bool
    failed: bool
    passed: bool
    started: bool = True
    ended: bool = True
    folder: str = ""
    own_script: bool = False
    error: str = ""


class CheckProblem(NamedTuple):
    """Why a turn's checks don't show that all is well: a phrase, and the command line that it is about."""

    reason: str
    command: str


class _RecordedRun(Struct):
    """A check run with the message of its step and its output.

    `background_id`: the id of its command in the background while that runs; "": it has ended.
    """

    run: CheckRun
    message_id: str
    output: str
    background_id: str = ""


def is_goal_check(part: ToolPart) -> bool:
    """Return whether a call is a check of a goal that codeloop ran itself."""
    state = part.state
    return isinstance(state, ToolStateCompleted | ToolStateError) and bool((state.metadata or {}).get(CHECK_KEY))


def list_checks(parts: Iterable[Part], root: str = "") -> list[CheckRun]:
    """Return the checks among the calls of a turn, oldest first. `root`: the session's directory, if it is known."""
    return [recorded.run for recorded in _record_runs(parts, root)]


def read_failures(parts: Iterable[Part]) -> str | None:
    """Return the lines about failures that the failed checks of a turn printed; None: no check failed."""
    outputs = [pick_failure_lines(recorded.output) for recorded in _record_runs(parts) if recorded.run.failed]
    return "\n".join(outputs) if outputs else None


def _record_runs(parts: Iterable[Part], root: str = "") -> list[_RecordedRun]:
    recorder = _CheckRecorder(root)
    for part in parts:
        recorder.add_part(part)
    return recorder.recorded_runs


class _CheckRecorder:
    """Records the checks among the parts of a turn, which are added oldest first."""

    def __init__(self, root: str) -> None:
        self.recorded_runs: list[_RecordedRun] = []
        self._root = root
        self._folders: dict[str, str] = {}
        """By session: the directory of its shell, as in `CheckRun.folder`."""
        self._functions: set[str] = set()
        """The shell functions and aliases that commands have defined."""
        self._written_files: set[str] = set()

    def add_part(self, part: Part) -> None:
        """Add the next part of the turn."""
        if isinstance(part, PatchPart) and not all(file.lower().endswith(_PROSE_SUFFIXES) for file in part.files):
            # A command may have changed them. Within a step it is not known whether that was before the check.
            self._mark_outdated(except_message=part.message_id)
            self._written_files |= {self._shorten(file) for file in part.files}
        if not isinstance(part, ToolPart) or not isinstance(part.state, ToolStateCompleted):
            return
        file = str(part.state.input.get("filePath"))
        if part.tool in EDIT_TOOLS:
            self._written_files.add(self._shorten(file))
            if not file.lower().endswith(_PROSE_SUFFIXES):
                self._mark_outdated(except_message="")
        elif part.tool == "bash_output":
            self._add_output(part.state)
        # With `unchanged`, a command runs on the files of the last commit: that shows nothing about the turn's edits.
        elif part.tool == "bash" and not part.state.input.get("unchanged"):
            self._add_command(part, part.state)

    def _mark_outdated(self, *, except_message: str) -> None:
        """Mark all runs as before an edit, except those of one message ("": mark all)."""
        for recorded in self.recorded_runs:
            if recorded.message_id != except_message:
                recorded.run = replace(recorded.run, after_last_edit=False)

    def _shorten(self, file: str) -> str:
        """Return a file's path relative to the session's directory, if it is below it."""
        return file.removeprefix(f"{self._root}/") if self._root else file

    def _add_command(self, part: ToolPart, state: ToolStateCompleted) -> None:
        command = str(state.input.get("command"))
        folder = self._folders.get(part.session_id, "")
        if state.input.get("workdir"):
            folder = join_folder(folder, str(state.input["workdir"]), self._root)
        if match := re.search(_FOLDER_NOTE, state.output):
            self._folders[part.session_id] = join_folder("", match[1], self._root)
        self._functions |= find_functions(command)
        checks = find_checks(command, folder, self._root)
        if not is_goal_check(part) and (not checks or all(is_outside(each.folder, self._root) for each in checks)):
            return
        background_id = str(state.metadata.get("id") or "")
        exit_code = state.metadata.get("exit")
        printed = state.output
        if LATER_OUTPUT_KEY in state.metadata:
            printed, background_id = str(state.metadata[LATER_OUTPUT_KEY]), ""
        outcome = judge_outcome(command, exit_code, printed)
        has_ended = not background_id and (exit_code is not None or not state.metadata.get("timedOut"))
        if not has_ended or not self._functions.isdisjoint(each.program.partition(" ")[0] for each in checks):
            # It still runs, or the name is a shell function, whose result says nothing about the program.
            outcome = CheckOutcome(failed=False, passed=False, started=outcome.started)
        run = CheckRun(
            command=command,
            exit_code=exit_code,
            after_last_edit=True,
            failed=outcome.failed,
            passed=outcome.passed,
            started=outcome.started,
            ended=has_ended,
            folder=folder,
            own_script=bool(checks) and all(each.is_task and each.program in self._written_files for each in checks),
            error=outcome.error,
        )
        # The output of a command in the background comes later, by the tool `bash_output`.
        output = "" if background_id and not state.metadata.get("timedOut") else printed
        self.recorded_runs.append(_RecordedRun(run, part.message_id, output, background_id))

    def _add_output(self, state: ToolStateCompleted) -> None:
        """Add what a check in the background has printed, and how it ended."""
        background_id = str(state.metadata.get("id") or "")
        recorded = next(
            (each for each in self.recorded_runs if each.background_id and each.background_id == background_id), None
        )
        if recorded is None:
            return
        recorded.output += state.output
        if state.metadata.get("status") == "exited":
            exit_code = state.metadata.get("exit")
            outcome = judge_outcome(recorded.run.command, exit_code, recorded.output)
            recorded.run = replace(
                recorded.run,
                exit_code=exit_code,
                failed=outcome.failed,
                passed=outcome.passed,
                started=outcome.started,
                ended=True,
                error=outcome.error,
            )
            recorded.background_id = ""


def find_failure(check_runs: Sequence[CheckRun], root: str = "") -> CheckRun | None:
    """Return the newest check that failed, unless a later one that covers it passed; None: there is none.

    A part of it that passes (`pytest tests/test_a.py` after `pytest`) does not hide that the whole failed. In a line of
    several checks it is not known which one failed: the line counts as passed once its tests have.
    """
    # Each failed run, with those of its commands that no later run has covered.
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
            remaining_failures: list[tuple[CheckRun, list[CheckCommand]]] = []
            for failed_run, before in failures:
                remaining = [each for each in before if not any(command.covers(each) for command in commands)]
                if _still_counts(remaining, before):
                    remaining_failures.append((failed_run, remaining))
            failures = remaining_failures
        if run.failed and run.started:
            failures.append((run, commands))
    return failures[-1][0] if failures else None


def _still_counts(remaining: Sequence[CheckCommand], before: Sequence[CheckCommand]) -> bool:
    """Return whether a failure counts whose commands were `before` a later run, which covers all but `remaining`."""
    return len(remaining) == len(before) or any(each.kind in {"test", "all"} for each in remaining)


def find_check_problem(check_runs: Sequence[CheckRun], root: str = "") -> CheckProblem | None:
    """Return why a turn's checks don't show that all is well; None: they do, or there are none."""
    if not check_runs:
        return None
    last = check_runs[-1]
    if last.failed:
        return CheckProblem("the last check failed", last.command)
    if not last.ended:
        return CheckProblem(UNENDED_CHECK_PROBLEM, last.command)
    if not last.passed:
        return CheckProblem(UNPROVEN_CHECK_PROBLEM, last.command)
    if not last.after_last_edit:
        return CheckProblem(LATE_CHANGES_PROBLEM, last.command)
    failure = find_failure(check_runs, root)
    return CheckProblem(EARLIER_FAILURE_PROBLEM, failure.command) if failure is not None else None
