"""Runs the tasks of `codeloop bench`: each with each agent and model,
in a fresh copy of its repository.
"""

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from codeloop.kit.child_process import Launch
from codeloop.kit.program import run_program
from codeloop.kit.programs import make_safe_environment
from codeloop.kit.remove_tree import remove_tree, temporary_folder
from codeloop.schema.errors import CodeloopError
from codeloop_automation.benchmark.agents import (
    IDLE_AGENT,
    RUN_COMMAND,
    SOLUTION_AGENT,
    BenchAgent,
    ReportedUsage,
)
from codeloop_automation.benchmark.tasks import BenchTask, NamedTask
from codeloop_automation.bounds import BENCH_CHECK, BENCH_CLONE, BENCH_KEPT_CHARACTERS
from codeloop_automation.command_lines import CODELOOP_COMMAND, open_git_call

# A program that ends by itself has an exit code from 0 to 255.
TIMEOUT_EXIT_CODE = -1
_MAX_OUTPUT_BYTES = 256 * 1024 * 1024


class BenchRun(Struct, frozen=True, kw_only=True):
    """One run of an agent on a task. `results.json` has these fields.

    `seconds`: how long the agent ran. `used`: the usage that it reported.
    `check`: the end of the check's output.
    `diff`: the start of the agent's changes. `has_session`: the session was exported as a page.
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


class BenchPlan(Struct, frozen=True):
    """The runs of a benchmark: each task by each agent with each model (None: its default),
    `repetitions` times.

    `timeout_seconds`: the limit of an agent, for tasks that set none.
    `sessions_folder`: for exported pages.
    """

    tasks: list[NamedTask]
    agents: list[BenchAgent]
    models: list[str | None]
    repetitions: int
    timeout_seconds: float
    max_parallel_runs: int
    sessions_folder: Path


class FinishedProgram(NamedTuple):
    """A program that has ended: its exit code (TIMEOUT_EXIT_CODE if it took too long),
    and its output.
    """

    code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        """The end of stdout followed by stderr, BENCH_KEPT_CHARACTERS characters at most."""
        return f"{self.stdout}{self.stderr}"[-BENCH_KEPT_CHARACTERS.value :]


async def run_plan(plan: BenchPlan, on_run_end: Callable[[BenchRun], object]) -> list[BenchRun]:
    """Make all runs of a plan, and return them in order.
    `on_run_end` is called with each run as it ends.
    """
    semaphore = asyncio.Semaphore(plan.max_parallel_runs)

    async def run(task: NamedTask, agent: BenchAgent, model: str | None, attempt: int) -> BenchRun:
        async with semaphore:
            with temporary_folder("codeloop-bench-") as folder:
                bench_run = await _run_task(plan, folder, task, agent, model, attempt)
                # In a thread, since an agent may have left very much.
                await asyncio.to_thread(remove_tree, folder / task.name)
            on_run_end(bench_run)
            return bench_run

    combinations = [
        (task, agent, model, attempt)
        for attempt in range(1, plan.repetitions + 1)
        for task in plan.tasks
        for agent in plan.agents
        # The two pseudo-agents ask no model, so one run of them stands for all models.
        for model in ([None] if agent.name in {IDLE_AGENT, SOLUTION_AGENT} else plan.models)
    ]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(*combination)) for combination in combinations]
    return [task.result() for task in tasks]


async def _run_task(
    plan: BenchPlan,
    folder: Path,
    named_task: NamedTask,
    agent: BenchAgent,
    model: str | None,
    attempt: int,
) -> BenchRun:
    """Make a copy of the task's repository in `folder`, run the agent there,
    and check the result.
    """
    task, work = named_task.task, folder / named_task.name
    unchecked_run = BenchRun(
        task=named_task.name,
        agent=agent.name,
        model=model or "",
        attempt=attempt,
        passed=False,
        seconds=0.0,
        exit_code=0,
        used=ReportedUsage(),
    )
    if problem := await _prepare_copy(named_task, work):
        return msgspec.structs.replace(unchecked_run, error=problem)
    start = time.monotonic()
    timeout = task.timeout or plan.timeout_seconds
    result = await _run_program(_make_agent_command(agent, task, model), work, timeout)
    seconds = time.monotonic() - start
    # Files that the agent created are in a diff only after they were added.
    await _run_git("add", "-A", tree=work, seconds=BENCH_CHECK.seconds)
    diff = await _run_git(
        "diff", "--no-ext-diff", "--cached", "HEAD", tree=work, seconds=BENCH_CHECK.seconds
    )
    # The hidden files come after the diff, which shows the agent's changes only.
    if task.files:
        await asyncio.to_thread(_copy_hidden_files, named_task.folder / task.files, work)
    check = await _run_program(["/bin/sh", "-c", task.check], work, BENCH_CHECK.seconds)
    used = agent.parse_usage(result.stdout)
    has_session = False
    # Claude Code and OpenCode report ids of sessions, too, but codeloop can't export those.
    if used.session_id and agent.command[: len(RUN_COMMAND)] == RUN_COMMAND:
        has_session = await _export_session(used.session_id, work, plan.sessions_folder)
    error = used.error
    if result.code == TIMEOUT_EXIT_CODE:
        error = f"It took longer than {timeout:g} s."
    elif result.code and not error:
        error = f"It ended with exit code {result.code}: {result.stderr[-400:]}"
    return msgspec.structs.replace(
        unchecked_run,
        passed=check.code == 0,
        seconds=round(seconds, 2),
        exit_code=result.code,
        used=used,
        check=check.output,
        diff=diff.stdout[: BENCH_KEPT_CHARACTERS.value],
        error=error,
        has_session=has_session,
    )


def _make_agent_command(agent: BenchAgent, task: BenchTask, model: str | None) -> list[str]:
    """Return the command line of an agent, also of the two pseudo-agents, for a task."""
    if agent.name == IDLE_AGENT:
        return ["true"]
    if agent.name == SOLUTION_AGENT:
        return ["/bin/sh", "-c", task.solution or "echo 'The task names no solution.' >&2; exit 1"]
    return agent.make_command(task.prompt, model)


async def _export_session(session_id: str, work: Path, sessions_folder: Path) -> bool:
    """Write the page of one of codeloop's sessions; return whether that worked."""
    page = sessions_folder / f"{session_id}.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    command = [*CODELOOP_COMMAND, "export", session_id, "--format", "html", "--output", str(page)]
    return (await _run_program(command, work, BENCH_CHECK.seconds)).code == 0


def _copy_hidden_files(files: Path, work: Path) -> None:
    """Copy the contents of a folder into the copy of the repository,
    over the entries of the same names there.
    """
    # The agent may have left a link in place of a file or folder;
    # a copy would be written through it.
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


async def _prepare_copy(named_task: NamedTask, work: Path) -> str:
    """Copy or clone a task's repository to `work`, run its setup, and commit all;
    return an error message or "".
    """
    task = named_task.task
    source = (
        str((named_task.folder / task.repository).resolve())
        if named_task.is_local
        else task.repository
    )
    # Unlike a clone, a copy also has the folder's uncommitted files.
    if named_task.is_local and not task.revision:
        await asyncio.to_thread(shutil.copytree, source, work, symlinks=True)
        if not (work / ".git").exists():
            await _run_git("init", "-q", str(work), seconds=BENCH_CLONE.seconds)
    else:
        clone_result = await _run_git("clone", "-q", source, str(work), seconds=BENCH_CLONE.seconds)
        if clone_result.code:
            return f"{source} can't be cloned: {clone_result.output.strip()}"
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    git = partial(_run_git, tree=work, seconds=BENCH_CLONE.seconds)
    setup = partial(_run_program, ("/bin/sh", "-c", task.setup), work, BENCH_CLONE.seconds)
    steps = [
        ("The checkout", partial(git, "checkout", "-q", task.revision) if task.revision else None),
        (f"`{task.setup}`", setup if task.setup else None),
        # The commit is what the diff of the agent's changes is made against.
        ("The commit", partial(git, "add", "-A")),
        ("The commit", partial(git, *identity, "commit", "-q", "--allow-empty", "-m", "The task")),
    ]
    for name, run_step in steps:
        result = await run_step() if run_step is not None else None
        if result is not None and result.code:
            return f"{name} failed: {result.output.strip()[-400:]}"
    return ""


async def _run_git(*arguments: str, seconds: float, tree: Path | None = None) -> FinishedProgram:
    """Run git, in a tree without reading what is configured there."""
    try:
        with open_git_call(
            *arguments, environment=make_safe_environment(os.environ), tree=tree
        ) as call:
            return await _run_program(call.command, tree or Path("/"), seconds, call.environment)
    except CodeloopError as error:
        return FinishedProgram(1, "", str(error))


async def _run_program(
    command: Sequence[str],
    folder: Path,
    timeout_seconds: float,
    variables: Mapping[str, str] | None = None,
) -> FinishedProgram:
    """Run a program in `folder`, and kill it with all its processes after `timeout_seconds`."""
    environment = variables or make_safe_environment(os.environ)
    try:
        launch = Launch(
            command,
            folder,
            environment,
            seconds=timeout_seconds,
            max_bytes=_MAX_OUTPUT_BYTES,
            max_error_bytes=_MAX_OUTPUT_BYTES,
        )
        result = await run_program(launch)
    except OSError as error:
        # 127 is the exit code of a shell for a command that is not found.
        return FinishedProgram(127, "", str(error))
    if result.stop_reason == "time":
        return FinishedProgram(TIMEOUT_EXIT_CODE, "", "")
    return FinishedProgram(result.code, result.stdout.decode("utf-8", "replace"), result.error_text)
