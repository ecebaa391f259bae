"""Finds why the checks of a turn do not show that all is well: which failure counts,
and which check is unproven or outdated. Pure.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from codeloop.agent.checks.check_commands import find_checks
from codeloop.agent.checks.check_runs import CheckRun, list_checks
from codeloop.agent.checks.check_scope import CheckCommand
from codeloop.schema.part import Part
from codeloop.schema.turn_facts import CheckState

# Problems, as reminders to the model name them.
LAST_FAILURE_PROBLEM = "the last check failed"
UNENDED_CHECK_PROBLEM = "the last check did not end"
UNPROVEN_CHECK_PROBLEM = "nothing shows that the last check passed"
EARLIER_FAILURE_PROBLEM = "a check failed and has not passed since"
LATE_CHANGES_PROBLEM = "files changed after the last check"


class CheckProblem(NamedTuple):
    """Why a turn's checks don't show that all is well: a phrase,
    and the command line that it is about.
    """

    reason: str
    command: str


def find_failure(check_runs: Sequence[CheckRun], root: str = "") -> CheckRun | None:
    """Return the newest check that failed by the turn's changes, unless a later one settled it;
    None: there is none.

    A later one settles it that covers it, or that passed and ran as many tests. A part of it that
    passes (`pytest tests/test_a.py` after `pytest`) does not hide that the whole failed. In a line
    of several checks it is not known which one failed: the line counts as
    passed once its tests have.
    """
    # Each failed run, with those of its commands that no later run has covered.
    failures: list[tuple[CheckRun, list[CheckCommand]]] = []
    for run in check_runs:
        commands = find_checks(run.command, run.folder, root) or [
            CheckCommand(run.command, "all", filters=(run.command,))
        ]
        # A failure counts no longer where a later run with a known result covers it.
        if run.passed or run.failed:
            remaining_failures: list[tuple[CheckRun, list[CheckCommand]]] = []
            for failed_run, before in failures:
                remaining = [
                    each for each in before if not any(_settles(run, own, each) for own in commands)
                ]
                if _still_counts(remaining, before) and not _has_run_as_many(
                    run, commands, failed_run, before
                ):
                    remaining_failures.append((failed_run, remaining))
            failures = remaining_failures
        if run.failed and not run.known_before:
            failures.append((run, commands))
    return failures[-1][0] if failures else None


def _settles(run: CheckRun, command: CheckCommand, failed: CheckCommand) -> bool:
    """Return whether a run of `command` shows how a check that failed before it stands now."""
    # A script that the turn wrote shows nothing about the checks of the project.
    return command.covers(failed) and not (run.own_script and command.program != failed.program)


def _has_run_as_many(
    run: CheckRun,
    commands: Sequence[CheckCommand],
    failed: CheckRun,
    failed_commands: Sequence[CheckCommand],
) -> bool:
    """Return whether tests passed that are as many as those that had failed,
    in a run that may be of the same ones.
    """
    if not run.passed or run.own_script or not failed.tests or (run.tests or 0) < failed.tests:
        return False
    languages = [
        {each.language for each in some if each.language} for some in (commands, failed_commands)
    ]
    are_tests = all(each.kind in {"test", "all"} for each in (*commands, *failed_commands))
    return are_tests and (not all(languages) or not languages[0].isdisjoint(languages[1]))


def _still_counts(remaining: Sequence[CheckCommand], before: Sequence[CheckCommand]) -> bool:
    """Return whether a failure counts whose commands were `before` a later run,
    which covers all but `remaining`.
    """
    return len(remaining) == len(before) or any(each.kind in {"test", "all"} for each in remaining)


def find_check_problem(check_runs: Sequence[CheckRun], root: str = "") -> CheckProblem | None:
    """Return why a turn's checks don't show that all is well;
    None: they do, or there are none that ran anything.
    """
    runs = [run for run in check_runs if run.started]
    if not runs:
        return None
    last = runs[-1]
    failure = find_failure(runs, root)
    if failure is last:
        return CheckProblem(LAST_FAILURE_PROBLEM, last.command)
    if not (last.passed or last.failed) and not _is_shown_otherwise(last, runs, root):
        return CheckProblem(
            UNPROVEN_CHECK_PROBLEM if last.ended else UNENDED_CHECK_PROBLEM, last.command
        )
    if not last.after_last_edit:
        return CheckProblem(LATE_CHANGES_PROBLEM, last.command)
    return CheckProblem(EARLIER_FAILURE_PROBLEM, failure.command) if failure is not None else None


def describe_state(parts: Iterable[Part], root: str) -> CheckState:
    """Return how the checks of a turn stand at its end; `none`: it ran none."""
    runs = [run for run in list_checks(parts, root) if run.started]
    if not runs:
        return "none"
    problem = find_check_problem(runs, root)
    if problem is None:
        return "passed" if any(run.passed for run in runs) else "unproven"
    return (
        "failed"
        if problem.reason in {LAST_FAILURE_PROBLEM, EARLIER_FAILURE_PROBLEM}
        else "unproven"
    )


def _is_shown_otherwise(unproven: CheckRun, runs: Sequence[CheckRun], root: str) -> bool:
    """Return whether another run, after the last edit,
    passed and covers one whose result is not known.
    """
    commands = find_checks(unproven.command, unproven.folder, root)
    return any(
        own.covers(each)
        for run in runs
        if run.passed and run.after_last_edit
        for own in find_checks(run.command, run.folder, root)
        for each in commands
    )
