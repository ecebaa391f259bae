"""Runs each task of a benchmark with each agent and model, in a separate copy, and checks the result."""

import asyncio
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from codeloop.automation.benchmark.agents import CODELOOP, NOTHING, SOLUTION, BenchAgent, ReportedUsage
from codeloop.automation.benchmark.tasks import NamedTask
from codeloop.automation.command_lines import git_command
from codeloop.kit.processes import make_safe_environment
from codeloop.kit.small_files import remove_tree
from codeloop.schema.bounds.automation import BENCH_CHECK, BENCH_CLONE, BENCH_KEPT_CHARACTERS

TIMEOUT = -1
"""The exit code of a program that took too long."""


class BenchRun(Struct, frozen=True, kw_only=True):
    """One run of an agent on a task. `seconds`: how long the agent ran. `used`: the usage that it reported.

    `check`: the end of the check's output; `diff`: the start of the agent's changes.
    """

    task: str
    agent: str
    model: str
    attempt: int
    passed: bool
    seconds: float
    exit_code: int
    used: ReportedUsage
    check: str = ""
    diff: str = ""
    error: str = ""
    has_session: bool = False
    """Whether the session was exported as a page."""


class BenchPlan(Struct, frozen=True):
    """The runs of a benchmark: each task by each agent with each model (None: its default), `times` times.

    `seconds`: the time limit of tasks that set none. `jobs`: how many runs at once. `sessions`: the folder for pages of
    codeloop's sessions.
    """

    tasks: list[NamedTask]
    agents: list[BenchAgent]
    models: list[str | None]
    times: int
    seconds: float
    jobs: int
    sessions: Path


class FinishedProgram(NamedTuple):
    """The exit code of a program (TIMEOUT if it took too long), and its output."""

    code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        """The end of stdout followed by stderr, BENCH_KEPT_CHARACTERS characters at most."""
        return f"{self.stdout}{self.stderr}"[-BENCH_KEPT_CHARACTERS.value :]


async def run_plan(plan: BenchPlan, report: Callable[[BenchRun], object]) -> list[BenchRun]:
    """Make all runs of a plan, and return them in order. `report` is called with each run as it ends."""
    gate = asyncio.Semaphore(plan.jobs)

    async def run(task: NamedTask, agent: BenchAgent, model: str | None, attempt: int) -> BenchRun:
        async with gate:
            with tempfile.TemporaryDirectory(prefix="codeloop-bench-", ignore_cleanup_errors=True) as folder:
                bench_run = await _run(plan, Path(folder), task, agent, model, attempt)
                # Removed first: the cleanup of a temporary directory fails on very deep folders.
                await asyncio.to_thread(remove_tree, Path(folder) / task.name)
            report(bench_run)
            return bench_run

    rows = [
        (task, agent, model, attempt)
        for attempt in range(1, plan.times + 1)
        for task in plan.tasks
        for agent in plan.agents
        for model in ([None] if agent.name in {NOTHING, SOLUTION} else plan.models)
    ]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(*row)) for row in rows]
    return [task.result() for task in tasks]


async def _run(
    plan: BenchPlan, folder: Path, named_task: NamedTask, agent: BenchAgent, model: str | None, attempt: int
) -> BenchRun:
    """Make a copy of the task's repository in `folder`, run the agent there, and check the result."""
    task, work = named_task.task, folder / named_task.name
    base = BenchRun(
        task=named_task.name,
        agent=agent.name,
        model=model or "",
        attempt=attempt,
        passed=False,
        seconds=0.0,
        exit_code=0,
        used=ReportedUsage(),
    )
    if problem := await _prepare(named_task, work):
        return msgspec.structs.replace(base, error=problem)
    start = time.monotonic()
    if agent.name == SOLUTION:
        line = ["/bin/sh", "-c", task.solution or "echo 'The task names no solution.' >&2; exit 1"]
    else:
        line = agent.make_command(task.prompt, model) if agent.name != NOTHING else ["true"]
    result = await _run_program(line, work, task.timeout or plan.seconds)
    seconds = time.monotonic() - start
    await _run_program(git_command("add", "-A"), work, BENCH_CHECK.seconds)
    diff = await _run_program(git_command("diff", "--no-ext-diff", "--cached", "HEAD"), work, BENCH_CHECK.seconds)
    if task.files:
        await asyncio.to_thread(_copy_over, named_task.folder / task.files, work)
    check = await _run_program(["/bin/sh", "-c", task.check], work, BENCH_CHECK.seconds)
    used = agent.read(result.stdout)
    if used.session_id and agent.command[:1] == CODELOOP[:1]:
        page = plan.sessions / f"{used.session_id}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        export = [*CODELOOP[:4], "export", used.session_id, "--format", "html", "--output", str(page)]
        export_result = await _run_program(export, work, BENCH_CHECK.seconds)
        base = msgspec.structs.replace(base, has_session=export_result.code == 0)
    if result.code == TIMEOUT:
        error = f"It took longer than {task.timeout or plan.seconds:g} s."
    else:
        error = used.error or (f"It ended with exit code {result.code}: {result.stderr[-400:]}" if result.code else "")
    return msgspec.structs.replace(
        base,
        passed=check.code == 0,
        seconds=round(seconds, 2),
        exit_code=result.code,
        used=used,
        check=check.output,
        diff=diff.stdout[: BENCH_KEPT_CHARACTERS.value],
        error=error,
    )


def _copy_over(files: Path, work: Path) -> None:
    """Copy the contents of a folder into the task's copy.

    Existing entries of these names are removed first: through a link of the agent, a file would land elsewhere.
    """
    for top, folders, names in os.walk(files):
        target = work / Path(top).relative_to(files)
        for name in (*folders, *names):
            path = target / name
            if name in folders and path.is_dir() and not path.is_symlink():
                continue
            if path.is_dir() and not path.is_symlink():
                remove_tree(path)
            else:
                path.unlink(missing_ok=True)
    shutil.copytree(files, work, dirs_exist_ok=True)


async def _prepare(named_task: NamedTask, work: Path) -> str:
    """Make the copy of a task's repository, and run its setup; return an error message, "" without an error."""
    task = named_task.task
    address = str((named_task.folder / task.repository).resolve()) if named_task.is_local else task.repository
    if named_task.is_local and not task.revision:
        await asyncio.to_thread(shutil.copytree, address, work, symlinks=True)
        steps: list[Sequence[str]] = [] if (work / ".git").exists() else [git_command("init", "-q")]
    else:
        clone_result = await _run_program(
            git_command("clone", "-q", address, str(work)), work.parent, BENCH_CLONE.seconds
        )
        if clone_result.code:
            return f"{address} can't be cloned: {clone_result.output.strip()}"
        steps = [git_command("checkout", "-q", task.revision)] if task.revision else []
    steps += [("/bin/sh", "-c", task.setup)] if task.setup else []
    who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    steps += [git_command("add", "-A"), git_command(*who, "commit", "-q", "--allow-empty", "-m", "The task")]
    for step in steps:
        result = await _run_program(step, work, BENCH_CLONE.seconds)
        if result.code:
            return f"`{' '.join(step)}` failed: {result.output.strip()[-400:]}"
    return ""


async def _run_program(line: Sequence[str], folder: Path, seconds: float) -> FinishedProgram:
    """Run a program to its end, or kill it with all its processes after `seconds`."""
    try:
        process = await asyncio.create_subprocess_exec(
            *line,
            cwd=folder,
            env=make_safe_environment(os.environ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return FinishedProgram(127, "", str(error))
    try:
        stdout, stderr = await asyncio.wait_for(process.communicate(), seconds)
    except TimeoutError:
        return FinishedProgram(TIMEOUT, "", "")
    else:
        return FinishedProgram(
            process.returncode or 0, stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace")
        )
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
