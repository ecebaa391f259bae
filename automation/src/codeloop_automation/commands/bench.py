"""`codeloop bench`: runs the user's own tasks with several agents and models,
and compares the results.
"""

import asyncio
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import Struct

from codeloop.cli import exit_codes
from codeloop.cli.bootstrap import cancel_on_signals
from codeloop.cli.options import DIRECTORY_TYPE, JSON_OPTION, TRUST_OPTION
from codeloop.cli.output.columns import align_columns
from codeloop.cli.output.print_json import print_json
from codeloop.kit.new_file import write_new_file
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.errors import CodeloopError
from codeloop_automation.benchmark.agents import find_agent
from codeloop_automation.benchmark.report import BenchSum, format_known_cost, render_page, sum_runs
from codeloop_automation.benchmark.runner import BenchPlan, BenchRun, run_plan
from codeloop_automation.benchmark.tasks import read_tasks
from codeloop_automation.bounds import BENCH_GRACE, BENCH_STEPS, BENCH_TIME

# Dollars that a run of codeloop may cost, unless --max-cost is given.
DEFAULT_MAX_COST = 5.0


@click.command()
@click.argument(
    "folder", metavar="TASKS", type=click.Path(path_type=Path, exists=True, file_okay=False)
)
@click.option(
    "--task", "task_names", metavar="NAME", multiple=True, help="Only this task; repeatable."
)
@click.option(
    "-m", "--model", "models", metavar="PROVIDER/MODEL", multiple=True, help="A model; repeatable."
)
@click.option(
    "--agent",
    "agents",
    metavar="AGENT",
    multiple=True,
    default=("codeloop",),
    help="An agent; repeatable.",
)
@click.option("--times", type=click.IntRange(1, 100), default=1, help="Do each task so often.")
@click.option("--jobs", type=click.IntRange(1, 64), default=1, help="Run so many at a time.")
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0),
    default=DEFAULT_MAX_COST,
    show_default=True,
    help="Of codeloop.",
)
@click.option(
    "--max-steps", type=click.IntRange(min=1), default=BENCH_STEPS.value, show_default=True
)
@click.option(
    "--timeout", type=click.FloatRange(min=1), default=BENCH_TIME.seconds, show_default=True
)
@TRUST_OPTION
@click.option(
    "-o", "--output", type=DIRECTORY_TYPE, help="Folder of the results. [default: bench-DATE]"
)
@JSON_OPTION
def bench(**flags: Any) -> None:
    """Do the tasks of a folder with several agents and models, and compare them.

    Each run has a copy of the task's repository. Writes results.json and index.html.

    Agents are codeloop, codeloop:AGENT, opencode, claude, codex, gemini, `NAME=COMMAND` with
    {prompt} and {model} in it, and to try the tasks: nothing, solution.
    """
    bench_flags = BenchFlags(**flags)
    tasks = read_tasks(bench_flags.folder, bench_flags.task_names)
    codeloop_flags = (
        *("--max-cost", f"{bench_flags.max_cost:g}"),
        *("--max-steps", str(bench_flags.max_steps)),
        *("--timeout", f"{bench_flags.timeout:g}"),
        *(["--trust"] if bench_flags.trust else []),
    )
    agents = [find_agent(name, codeloop_flags) for name in bench_flags.agents]
    # None: each agent's own default.
    models: list[str | None] = [*bench_flags.models] or [None]
    target = bench_flags.output or Path(f"bench-{datetime.now(UTC).astimezone():%Y-%m-%d-%H%M%S}")
    # codeloop ends by itself at the timeout. An agent that does not is killed after the grace time.
    plan = BenchPlan(
        tasks=tasks,
        agents=agents,
        models=models,
        repetitions=bench_flags.times,
        timeout_seconds=bench_flags.timeout + BENCH_GRACE.seconds,
        max_parallel_runs=bench_flags.jobs,
        sessions_folder=target.absolute() / "sessions",
    )
    runs: list[BenchRun] = []

    def add_run(run: BenchRun) -> None:
        runs.append(run)
        # Written after each run, so that an interrupt loses nothing.
        _write_results(target, runs, bench_flags.folder.resolve().name)
        click.echo(_format_run(run), err=True)

    asyncio.run(_run_until_signal(plan, add_run))
    sums = sum_runs(runs)
    if bench_flags.as_json:
        print_json(sums)
    else:
        header = ["agent", "model", "passed", "rate", "cost", "seconds a run"]
        click.echo(align_columns([header, *map(_format_sum, sums)], right=frozenset((2, 3, 4, 5))))
    click.echo(f"\nThe page to compare them: {target / 'index.html'}", err=True)


async def _run_until_signal(plan: BenchPlan, on_run: Callable[[BenchRun], None]) -> None:
    """Run the plan; a signal ends it with all that it started.
    `on_run`: called with each finished run.
    """
    cancel_on_signals()
    try:
        await run_plan(plan, on_run)
    except asyncio.CancelledError:
        click.echo("Interrupted. What was done so far is in the results.", err=True)
        sys.exit(exit_codes.INTERRUPTED)


class BenchFlags(Struct, frozen=True, kw_only=True):
    """The options of `bench`."""

    folder: Path
    task_names: tuple[str, ...]
    models: tuple[str, ...]
    agents: tuple[str, ...]
    times: int
    jobs: int
    max_cost: float
    max_steps: int
    timeout: float
    trust: bool
    output: Path | None
    as_json: bool


def _format_sum(row: BenchSum) -> list[str]:
    counts = [f"{row.passed} of {row.runs}", f"{row.rate:.0%}"]
    return [row.agent, row.model or "-", *counts, format_known_cost(row.cost), f"{row.seconds:.1f}"]


def _write_results(target: Path, runs: list[BenchRun], title: str) -> None:
    """Write `results.json` and `index.html` into the folder `target`. Raises CodeloopError."""
    rows = sorted(runs, key=lambda run: (run.task, run.agent, run.model, run.attempt))
    try:
        results = {"summary": sum_runs(rows), "runs": rows}
        document = msgspec.json.format(msgspec.json.encode(results), indent=2) + b"\n"
        page = render_page(f"codeloop bench: {title}", rows).encode()
        # The folders of a relative path are of the current one, which may be anybody's project.
        base = target if target.is_absolute() else Path()
        base.mkdir(parents=True, exist_ok=True)
        for name, data in (("results.json", document), ("index.html", page)):
            write_new_file(target / name, data, base=base)
    except OSError as error:
        raise CodeloopError(f"The results can't be written to {target}: {error}.") from None


def _format_run(run: BenchRun) -> str:
    model = f" {run.model}" if run.model else ""
    state = "passed" if run.passed else "failed"
    error = f" ({one_line(run.error, 200)})" if run.error else ""
    return f"{state}  {run.task}  {run.agent}{model}  {run.seconds:.1f} s  {format_known_cost(run.used.cost)}{error}"
