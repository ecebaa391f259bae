"""`codeloop schedule`: has the system's own timers (systemd or cron) run prompts at set times."""

import os
import re
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import click

from codeloop.cli.group import CommandGroup
from codeloop.cli.options import (
    AGENT_OPTION,
    AUTO_OPTION,
    DIR_OPTION,
    JSON_OPTION,
    MODEL_OPTION,
    PROFILE_OPTION,
    TRUST_OPTION,
    format_flags,
)
from codeloop.cli.output.columns import align_columns
from codeloop.cli.output.print_json import print_json
from codeloop.client.formatting import format_cost, format_duration
from codeloop.config.paths import find_paths
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.ids import now_ms
from codeloop_automation.bounds import SCHEDULE_STEPS, SCHEDULE_TIME
from codeloop_automation.schedule.cron import get_local_time, parse_cron, to_local_time
from codeloop_automation.schedule.runner import run_due_schedules, run_schedule
from codeloop_automation.schedule.schedule_store import (
    RUNNING_STATE,
    Schedule,
    ScheduledRun,
    ScheduleStore,
)
from codeloop_automation.schedule.timers import (
    choose_timer_kind,
    make_timers,
    select_timer_environment,
)

# Dollars that a scheduled run may cost, unless --max-cost is given.
DEFAULT_MAX_COST = 1.0
# The id becomes part of the names of timers and files.
ID_PATTERN = r"[a-z0-9][a-z0-9-]{0,39}"
NOTHING_SCHEDULED = (
    'Nothing is scheduled. `codeloop schedule add "0 7 * * 1-5" PROMPT` schedules a prompt.'
)


@click.group(cls=CommandGroup)
def schedule() -> None:
    """Run prompts at set times, by the system's own timers."""


@schedule.command()
@click.argument("when")
@click.argument("prompt", nargs=-1, required=True)
@click.option("--name", metavar="NAME", help="What to call it. [default: derived from PROMPT]")
@DIR_OPTION
@MODEL_OPTION
@AGENT_OPTION
@PROFILE_OPTION
@AUTO_OPTION
@TRUST_OPTION
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0),
    default=DEFAULT_MAX_COST,
    show_default=True,
    help="Dollars of a run.",
)
@click.option(
    "--max-steps", type=click.IntRange(min=1), default=SCHEDULE_STEPS.value, show_default=True
)
@click.option(
    "--timeout", type=click.FloatRange(min=1), default=SCHEDULE_TIME.seconds, show_default=True
)
def add(
    when: str, prompt: tuple[str, ...], name: str | None, directory: Path | None, **flags: object
) -> None:
    """Run PROMPT at the times of WHEN.

    WHEN is written as for cron: "0 7 * * 1-5". PROMPT runs in this directory.
    """
    text = " ".join(prompt).strip()
    times = parse_cron(when)
    folder = (directory or Path.cwd()).resolve()
    if not text:
        raise UsageProblem("The prompt is empty. Say what is to be done.")
    if not folder.is_dir():
        raise UsageProblem(f"{folder} is not a directory.")
    store = _open_store()
    timeout = float(str(flags.pop("timeout")))
    schedule = Schedule(
        id=_choose_id(name, text, {row.id for row in store.list_all()}),
        when=times.text,
        prompt=text,
        directory=str(folder),
        flags=format_flags(flags),
        timeout=timeout,
        timer=choose_timer_kind(),
        # Timers start programs with an environment of their own.
        environment=select_timer_environment(),
        # Times before now are not due.
        last_due=now_ms(),
    )
    # Stored first: a timer without a schedule would fail at its first run.
    store.add(schedule)
    try:
        make_timers(schedule.timer).install(schedule)
    except CodeloopError:
        # A part of the timer may have been installed.
        with suppress(CodeloopError):
            make_timers(schedule.timer).remove(schedule.id)
        store.remove(schedule.id)
        raise
    next_time = _format_datetime(schedule.find_next_due_time(get_local_time()))
    click.echo(f"{schedule.id} runs next at {next_time}, by {schedule.timer}.")
    # systemd stops a user's timers at the last logout, unless this file exists.
    linger = Path("/var/lib/systemd/linger") / (os.environ.get("USER") or "")
    if schedule.timer == "systemd" and not linger.is_file():
        click.echo(
            "It waits while you are logged out; `loginctl enable-linger` lets it run then, too.",
            err=True,
        )


@schedule.command("list")
@JSON_OPTION
def list_schedules(*, as_json: bool) -> None:
    """List what is scheduled.

    With when it runs next, and how its last run ended.
    """
    store = _open_store()
    schedules = store.list_all()
    if as_json:
        print_json(schedules)
        return
    if not schedules:
        click.echo(NOTHING_SCHEDULED, err=True)
        return
    is_running = store.is_running()
    rows = [["id", "when", "next", "last", "cost", "prompt"]]
    for schedule in schedules:
        last_run, cost = "", ""
        if schedule.runs:
            run = schedule.runs[-1]
            last_run = (
                f"{_format_timestamp(run.started)} {_describe_state(run, is_running=is_running)}"
            )
            cost = format_cost(run.cost)
        next_time = _format_datetime(schedule.find_next_due_time(get_local_time()))
        rows.append(
            [schedule.id, schedule.when, next_time, last_run, cost, one_line(schedule.prompt, 50)]
        )
    click.echo(align_columns(rows))


@schedule.command()
@click.argument("schedule_id", metavar="ID")
@JSON_OPTION
def show(schedule_id: str, *, as_json: bool) -> None:
    """Show one, with its last answer.

    The sessions of its runs are listed, too.
    """
    store = _open_store()
    schedule = store.find(schedule_id)
    if as_json:
        print_json(schedule)
        return
    rows = [
        ["when", schedule.when],
        ["next", _format_datetime(schedule.find_next_due_time(get_local_time()))],
        ["timer", schedule.timer],
        ["directory", schedule.directory],
        ["limits", " ".join([*schedule.flags, "--timeout", f"{schedule.timeout:g}"])],
        ["prompt", one_line(schedule.prompt, 400)],
    ]
    click.echo(align_columns(rows))
    if not schedule.runs:
        click.echo("\nIt has not run yet.")
        return
    is_running = store.is_running()
    runs = [["run", "due", "state", "cost", "steps", "time", "session"]]
    runs += [_format_run(run, is_running=is_running) for run in reversed(schedule.runs)]
    click.echo(f"\n{align_columns(runs)}")
    last = schedule.runs[-1]
    if last.text:
        click.echo(f"\n{escape_controls(last.text)}")
    if last.session_id:
        click.echo(f"\nAll of it: codeloop session show {last.session_id}")


@schedule.command()
@click.argument("schedule_id", metavar="ID", required=False)
@click.option("--due", is_flag=True, help="Run what is due and was not run yet, as the timers do.")
def run(schedule_id: str | None, *, due: bool) -> None:
    """Run one now, whether it is due or not."""
    store = _open_store()
    if due == (schedule_id is not None):
        raise UsageProblem("Give an ID or --due. `codeloop schedule list` shows the ids.")
    if schedule_id is not None:
        finished_run = run_schedule(store, schedule_id)
        click.echo(escape_controls(finished_run.text))
        click.echo(_format_sums(finished_run), err=True)
        sys.exit(finished_run.state == "failed")
    for schedule, finished_run in run_due_schedules(store):
        click.echo(f"{schedule.id}: {finished_run.state} · {_format_sums(finished_run)}")


@schedule.command()
@click.argument("schedule_id", metavar="ID")
def remove(schedule_id: str) -> None:
    """Remove one, its timer and its results. Its sessions stay."""
    store = _open_store()
    schedule = store.find(schedule_id)
    # The timer goes first: without its schedule, it would fail at each of its times.
    make_timers(schedule.timer).remove(schedule.id)
    store.remove(schedule.id)
    click.echo(f"{schedule.id} is removed.")


def _open_store() -> ScheduleStore:
    return ScheduleStore(find_paths(os.environ).data)


def _choose_id(name: str | None, prompt: str, used_ids: set[str]) -> str:
    """Return the name as the id, else one made of the prompt that is not used yet.
    Raises UsageProblem.
    """
    if name is not None:
        if not re.fullmatch(ID_PATTERN, name):
            raise UsageProblem(
                f"{name!r} is not a name: use small letters, digits and dashes, at most 40."
            )
        return name
    # The first words of the prompt, with a number if there is such an id already.
    words = re.findall(r"[a-z0-9]+", prompt.lower())
    base = "-".join(words)[:24].strip("-") or "prompt"
    candidates = (base, *(f"{base}-{count}" for count in range(2, 10_000)))
    return next(candidate for candidate in candidates if candidate not in used_ids)


def _format_datetime(when: datetime) -> str:
    return when.strftime("%a %Y-%m-%d %H:%M")


def _format_timestamp(ms: int) -> str:
    return _format_datetime(to_local_time(ms))


def _describe_state(run: ScheduledRun, *, is_running: bool) -> str:
    # A process that was killed could not store that its run ended.
    return "interrupted" if run.state == RUNNING_STATE and not is_running else run.state


def _format_run(run: ScheduledRun, *, is_running: bool) -> list[str]:
    return [
        _format_timestamp(run.started),
        _format_timestamp(run.due),
        _describe_state(run, is_running=is_running),
        format_cost(run.cost),
        str(run.steps),
        format_duration(run.duration_ms),
        run.session_id,
    ]


def _format_sums(run: ScheduledRun) -> str:
    steps = "1 step" if run.steps == 1 else f"{run.steps} steps"
    return " · ".join(
        [steps, format_cost(run.cost), format_duration(run.duration_ms), run.session_id]
    )
