"""Makes the runs of schedules, one after the other, each as a process `codeloop run`."""

import asyncio
import os
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.client.notification import show_notification
from codeloop.kit.child_process import Launch
from codeloop.kit.program import run_program
from codeloop.kit.programs import exclude_project_folders, make_safe_environment
from codeloop.kit.small_files import lock
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import DECODE_ERRORS
from codeloop_automation.bounds import SCHEDULE_GRACE, SCHEDULE_TEXT
from codeloop_automation.command_lines import CODELOOP_COMMAND
from codeloop_automation.schedule.cron import get_local_time
from codeloop_automation.schedule.schedule_store import Schedule, ScheduledRun, ScheduleStore


class _RunResult(Struct):
    """The last output line of `codeloop run --output-format json`, as far as it is stored."""

    is_error: bool
    session_id: str = ""
    result: str = ""
    errors: list[str] = []
    total_cost_usd: float = 0.0
    num_turns: int = 0


def run_due_schedules(store: ScheduleStore) -> list[tuple[Schedule, ScheduledRun]]:
    """Run the schedules that are due, one after the other; return each with its run.

    Return at once when another process makes runs: it will also make those that are due now.
    """
    # The outer loop looks again after the lock is released: a timer that fired just before has
    # left its run to this process.
    ended_runs: list[tuple[Schedule, ScheduledRun]] = []
    while any(each.find_latest_due_time(get_local_time()) is not None for each in store.list_all()):
        try:
            with lock(store.run_lock, 0):
                while (schedule := store.begin_run(get_local_time())) is not None:
                    ended_runs.append((schedule, _run(store, schedule)))
        except TimeoutError:
            return ended_runs
    return ended_runs


def run_schedule(store: ScheduleStore, schedule_id: str) -> ScheduledRun:
    """Run a schedule now, due or not; its next due time does not change.
    Raises CodeloopError during another run.
    """
    # Raises UsageProblem for an unknown id.
    store.find(schedule_id)
    try:
        with lock(store.run_lock, 0):
            schedule = store.begin_run(get_local_time(), schedule_id)
            if schedule is None:
                raise CodeloopError(f"{schedule_id} was removed.")
            return _run(store, schedule)
    except TimeoutError:
        raise CodeloopError(
            "A scheduled run is going on, and one runs at a time. Try again later."
        ) from None


def _run(store: ScheduleStore, schedule: Schedule) -> ScheduledRun:
    """Make the run that `ScheduleStore.begin_run` has stored, store its result,
    and notify the user.
    """
    scheduled_run, start = schedule.runs[-1], time.monotonic()
    result = _run_program(schedule)
    ended_run = msgspec.structs.replace(
        scheduled_run,
        state="failed" if result.is_error else "done",
        session_id=result.session_id,
        text=(result.result or "\n".join(result.errors))[: SCHEDULE_TEXT.value],
        cost=result.total_cost_usd,
        steps=result.num_turns,
        duration_ms=int((time.monotonic() - start) * 1000),
    )
    store.end_run(schedule.id, ended_run)
    show_notification(
        f"codeloop: {schedule.id} {'failed' if result.is_error else 'is done'}",
        one_line(ended_run.text, 200),
        schedule.environment,
    )
    return ended_run


def _run_program(schedule: Schedule) -> _RunResult:
    """Start `codeloop run` and return its result.
    It is ended if it runs on after its own --timeout.
    """
    exclude_project_folders(Path(schedule.directory))
    if not Path(schedule.directory).is_dir():
        return _RunResult(is_error=True, errors=[f"The directory {schedule.directory} is gone."])
    limits = [
        "--timeout",
        f"{schedule.timeout:g}",
        "--dir",
        schedule.directory,
        "--title",
        f"Scheduled: {schedule.id}",
    ]
    command = [
        *CODELOOP_COMMAND,
        "run",
        "--output-format",
        "json",
        *limits,
        *schedule.flags,
        "--",
        schedule.prompt,
    ]
    environment = make_safe_environment({**os.environ, **schedule.environment})
    launch = Launch(
        command,
        "/",
        environment,
        seconds=schedule.timeout + SCHEDULE_GRACE.seconds,
        # After SIGTERM it stores its session as interrupted, and says what it has cost.
        grace_seconds=SCHEDULE_GRACE.seconds,
    )
    ended = asyncio.run(run_program(launch))
    result = _read_result(ended.stdout)
    if ended.stop_reason:
        problem = f"It went on for longer than {schedule.timeout:g} s and was ended."
        return msgspec.structs.replace(
            result or _RunResult(is_error=True), is_error=True, result="", errors=[problem]
        )
    problem = f"It ended without a result (exit code {ended.code})."
    return result or _RunResult(is_error=True, errors=[problem])


def _read_result(output: bytes) -> _RunResult | None:
    """Return the result in the last line of a run's output; None: it has none."""
    try:
        return msgspec.json.decode(output.splitlines()[-1], type=_RunResult)
    except (IndexError, *DECODE_ERRORS):
        return None
