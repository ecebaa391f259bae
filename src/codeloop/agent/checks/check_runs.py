"""The checks that a turn has run (tests, linters, types, builds): which passed,
and whether files changed later. Pure.

They are read from the turn's commands and their outputs: `check_commands.py` decides which commands
are checks, and `check_outcome.py` whether a check passed.
"""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from codeloop.agent.checks.check_outcome import (
    CheckOutcome,
    count_messages,
    judge_outcome,
    list_named_files,
    pick_failure_lines,
)
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
from codeloop.shell.check_commands import (
    find_checks,
    is_outside,
    join_folder,
)
from codeloop.shell.check_scope import CheckCommand
from codeloop.shell.line_steps import find_functions, split_line
from codeloop.tool.tool import EDIT_TOOLS

# Suffixes of files that checks ignore: a line in a changelog leaves the last check valid.
_PROSE_SUFFIXES = (".md", ".rst", ".adoc")
# The note by which the tool `bash` says that a command has changed the directory
# of the session's shell.
_FOLDER_NOTE = r"(?m)^The working directory is now (.+)\.$"

# Matches the part of a task's name by which it is meant to fail: `check-bad`, `test:xfail`.
_MEANT_TO_FAIL = (
    r"(?i)(?:.*[-_:.])?(?:bad|broken|fail|fails|failing|failures?|invalid|negative|xfail)"
)
# Words after `git stash` with which it brings back what it has put away.
_STASH_RETURNS = frozenset(("pop", "apply", "branch"))
_STASH_OTHERS = frozenset(("list", "show", "drop", "clear", "store", "create"))


class CheckRun(Wire):
    """A check: its command, its exit code (None: it was ended, or still runs),
    and whether no file was edited after it.

    `ended`: false where it still runs, or was ended at its timeout: it neither failed nor passed.

    A line that ends with another command (`pytest | tail`) exits with 0 whatever the check found:
    there its own closing line counts. Without one that is known, it neither `failed` nor `passed`;
    nor did tests of which none ran.

    `error`: the last line of its output that says what failed; empty where it passed.
    `started`: false where its output says that the program,
    the task or what it was to check is not there.
    `folder`: where it ran, as in `CheckCommand`. `own_script`: it is a script that the turn wrote.
    `tests`: how many tests ran; None: it is not known. `known_before`: it failed only by what fails
    without the turn's changes, too.
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
    tests: int | None = None
    known_before: bool = False


class _RecordedRun(Struct):
    """A check run with the message of its step and its output.

    `background_id`: the id of its command in the background while that runs; "": it has ended.
    """

    run: CheckRun
    message_id: str
    output: str
    checks: Sequence[CheckCommand]
    background_id: str = ""


def is_goal_check(part: ToolPart) -> bool:
    """Return whether a call is a check of a goal that codeloop ran itself."""
    state = part.state
    return isinstance(state, ToolStateCompleted | ToolStateError) and bool(
        (state.metadata or {}).get(CHECK_KEY)
    )


def list_checks(
    parts: Iterable[Part], root: str = "", *, counts_patches: bool = True
) -> list[CheckRun]:
    """Return the checks among the calls of a turn, oldest first.
    `root`: the session's directory, if it is known.

    `counts_patches`: whether a file that a command changed makes the checks before it outdated,
    as an edit does.
    """
    return [recorded.run for recorded in _record_runs(parts, root, counts_patches=counts_patches)]


def read_failures(parts: Iterable[Part]) -> str | None:
    """Return the lines about failures that the failed checks of a turn printed;
    None: no check failed.
    """
    outputs = [
        pick_failure_lines(recorded.output)
        for recorded in _record_runs(parts)
        if recorded.run.failed
    ]
    return "\n".join(outputs) if outputs else None


def _record_runs(
    parts: Iterable[Part], root: str = "", *, counts_patches: bool = True
) -> list[_RecordedRun]:
    recorder = _CheckRecorder(root, counts_patches=counts_patches)
    for part in parts:
        recorder.add_part(part)
    recorder.mark_known_failures()
    return recorder.recorded_runs


class _CheckRecorder:
    """Records the checks among the parts of a turn, which are added oldest first."""

    def __init__(self, root: str, *, counts_patches: bool) -> None:
        self.recorded_runs: list[_RecordedRun] = []
        self._root = root
        self._counts_patches = counts_patches
        self._earlier_states: list[_RecordedRun] = []
        """The checks that ran without the turn's changes."""
        self._is_stashed = False
        """Whether `git stash` has put the turn's changes away."""
        self._folders: dict[str, str] = {}
        """By session: the directory of its shell, as in `CheckRun.folder`."""
        self._functions: set[str] = set()
        """The shell functions and aliases that commands have defined."""
        self._written_files: set[str] = set()

    def add_part(self, part: Part) -> None:
        """Add the next part of the turn."""
        if isinstance(part, PatchPart) and not all(
            file.lower().endswith(_PROSE_SUFFIXES) for file in part.files
        ):
            # A command may have changed them. Within a step it is not known whether
            # that was before the check.
            if self._counts_patches:
                self._mark_outdated(except_message=part.message_id)
            self._written_files |= {self._shorten(file) for file in part.files}
        if not isinstance(part, ToolPart) or not isinstance(part.state, ToolStateCompleted):
            return
        file = str(part.state.input.get("filePath"))
        if part.tool in EDIT_TOOLS:
            self._written_files.add(self._shorten(file))
            # What is checked from here on has a change of the turn again.
            self._is_stashed = False
            if not file.lower().endswith(_PROSE_SUFFIXES):
                self._mark_outdated(except_message="")
        elif part.tool == "bash_output":
            self._add_output(part.state)
        elif part.tool == "bash":
            self._add_command(part, part.state)

    def mark_known_failures(self) -> None:
        """Mark the failures that are not the turn's: those without its changes,
        and a linter's in other files.
        """
        for recorded in self.recorded_runs:
            if recorded.run.failed and (
                self._failed_before(recorded) or self._names_other_files(recorded)
            ):
                recorded.run = replace(recorded.run, known_before=True)

    def _failed_before(self, recorded: _RecordedRun) -> bool:
        """Return whether all that a check reports was reported without the turn's changes, too."""
        messages = count_messages(recorded.output)
        for earlier in self._earlier_states:
            if not any(
                one.program == other.program for one in earlier.checks for other in recorded.checks
            ):
                continue
            if messages <= count_messages(earlier.output) and (
                messages or recorded.run.error == earlier.run.error
            ):
                return True
        return False

    def _names_other_files(self, recorded: _RecordedRun) -> bool:
        """Return whether a linter names files, and none that the turn has written."""
        if not recorded.checks or any(
            each.kind not in {"lint", "format"} for each in recorded.checks
        ):
            return False
        named = {
            self._shorten(file.removeprefix("./")) for file in list_named_files(recorded.output)
        }
        written = {*self._written_files}
        return bool(named) and not any(
            one == other or one.endswith(f"/{other}") for one in written for other in named
        )

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
        was_stashed = self._is_stashed
        is_earlier_state = (
            self._stashes(command) or was_stashed or bool(state.input.get("unchanged"))
        )
        if not is_goal_check(part) and (
            not checks or all(is_outside(each.folder, self._root) for each in checks)
        ):
            return
        background_id = str(state.metadata.get("id") or "")
        exit_code = state.metadata.get("exit")
        printed = state.output
        if LATER_OUTPUT_KEY in state.metadata:
            printed, background_id = str(state.metadata[LATER_OUTPUT_KEY]), ""
        outcome = judge_outcome(command, exit_code, printed, checks)
        has_ended = not background_id and (
            exit_code is not None or not state.metadata.get("timedOut")
        )
        is_function = not self._functions.isdisjoint(
            each.program.partition(" ")[0] for each in checks
        )
        if not has_ended or is_function or (outcome.failed and _is_meant_to_fail(checks)):
            # It still runs, or the name is a shell function,
            # whose result says nothing about the program.
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
            own_script=bool(checks)
            and all(each.is_task and each.program in self._written_files for each in checks),
            error=outcome.error,
            tests=outcome.tests,
        )
        # The output of a command in the background comes later, by the tool `bash_output`.
        output = "" if background_id and not state.metadata.get("timedOut") else printed
        recorded = _RecordedRun(run, part.message_id, output, checks, background_id)
        (self._earlier_states if is_earlier_state else self.recorded_runs).append(recorded)

    def _stashes(self, command: str) -> bool:
        """Return whether a line puts the turn's changes away with `git stash`,
        perhaps for its own time only.
        """
        if "stash" not in command:
            return False
        has_stashed = False
        for words, _ in split_line(command):
            if " ".join(words[:2]) == "git stash" and not _STASH_OTHERS & {*words[2:3]}:
                self._is_stashed = not _STASH_RETURNS & {*words[2:3]}
                has_stashed = has_stashed or self._is_stashed
        return has_stashed

    def _add_output(self, state: ToolStateCompleted) -> None:
        """Add what a check in the background has printed, and how it ended."""
        background_id = str(state.metadata.get("id") or "")
        recorded = next(
            (
                each
                for each in self.recorded_runs
                if each.background_id and each.background_id == background_id
            ),
            None,
        )
        if recorded is None:
            return
        recorded.output += state.output
        if state.metadata.get("status") == "exited":
            exit_code = state.metadata.get("exit")
            outcome = judge_outcome(
                recorded.run.command, exit_code, recorded.output, recorded.checks
            )
            recorded.run = replace(
                recorded.run,
                exit_code=exit_code,
                failed=outcome.failed,
                passed=outcome.passed,
                started=outcome.started,
                ended=True,
                error=outcome.error,
                tests=outcome.tests,
            )
            recorded.background_id = ""


def _is_meant_to_fail(checks: Sequence[CheckCommand]) -> bool:
    """Return whether a line only runs tasks that fail by their names: they show
    an error that has to come.
    """
    return bool(checks) and all(
        each.is_task and any(re.fullmatch(_MEANT_TO_FAIL, target) for target in each.targets)
        for each in checks
    )
