"""Background commands of a project, by id. None outlives its project. `Shells` in `shells.py` starts them."""

import asyncio
import time
from contextlib import suppress
from typing import Literal

from msgspec import Struct

from codeloop.workspace.process.running_command import RunningCommand
from codeloop.workspace.sandbox.protected_files import MovedFile

# The model may still read the output of ended jobs; of more than this many the oldest are forgotten.
_MAX_ENDED_JOBS = 64

JobStatus = Literal["running", "exited", "killed"]


class JobOutput(Struct, frozen=True):
    """The output of a job since the last read, for a model (`output`) and for a screen (`screen_text`), and its state.

    `is_cut`: the middle of `output` is left out. `code`: the exit code, negative for a signal, None while it runs and
    if it was killed. `notes`: as of `RunningCommand.take_notes`; `moved_files`: files that appeared meanwhile and were
    moved away; `warnings`: for the user and the model.
    """

    output: str
    screen_text: str
    is_cut: bool
    status: JobStatus
    code: int | None
    notes: tuple[str, ...] = ()
    moved_files: tuple[MovedFile, ...] = ()
    warnings: tuple[str, ...] = ()


class Job:
    """One background command. `id` names it to the model; `session` is the one that started it."""

    def __init__(self, job_id: str, session: str, command: str, running: RunningCommand) -> None:
        self.id = job_id
        self.session = session
        self.command = command
        self.status: JobStatus = "running"
        self.code: int | None = None
        self.start_time = time.monotonic()
        self.running = running
        self._has_output = asyncio.Event()
        running.on_output = self._has_output.set
        self._task = asyncio.create_task(self._watch(), name=job_id)

    async def read(self, wait: float = 0) -> JobOutput:
        """Return the new output. If there is none, wait at most `wait` seconds for output or the end."""
        if wait and self.status == "running" and not self._has_output.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._has_output.wait()
        self._has_output.clear()
        output = self.running.buffer.take()
        return JobOutput(
            output=output.text,
            screen_text=output.screen_text,
            is_cut=output.is_cut,
            status=self.status,
            code=self.code,
            notes=self.running.take_notes(output.text, self.code),
            moved_files=self.running.take_moved_files(),
            warnings=self.running.take_warnings(),
        )

    async def kill(self) -> bool:
        """End it with all its processes. Returns False if it had already ended."""
        if self.status != "running":
            return False
        self.status = "killed"
        self._task.cancel()
        await asyncio.wait([self._task])
        # The task itself does not stop the command when it was cancelled before it had begun.
        await self.running.stop()
        return True

    async def _watch(self) -> None:
        try:
            self.code, _ = await self.running.finish()
        except asyncio.CancelledError:
            await self.running.stop()
        else:
            self.status = "exited"
        self._has_output.set()


class Jobs:
    """The background commands of one project, by id."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._count = 0

    def add(self, session: str, command: str, running: RunningCommand) -> Job:
        """Add a started command. The oldest ended jobs are forgotten."""
        self._count += 1
        job = Job(f"bash_{self._count}", session, command, running)
        self._jobs[job.id] = job
        ended_ids = [each.id for each in self._jobs.values() if each.status != "running"]
        for job_id in ended_ids[:-_MAX_ENDED_JOBS]:
            del self._jobs[job_id]
        return job

    def list_jobs(self) -> tuple[Job, ...]:
        """Return all jobs, the oldest first."""
        return tuple(self._jobs.values())

    def count_running(self) -> int:
        """Return the number of jobs that still run."""
        return sum(job.status == "running" for job in self._jobs.values())

    async def close(self) -> None:
        """End all jobs."""
        await asyncio.gather(*(job.kill() for job in self._jobs.values()))
