"""Background commands of a project, by id. None outlives its project.
`Shells` in `shells.py` starts them.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from codeloop.workspace.process.running_command import RunningCommand
from codeloop.workspace.sandbox.protected_files import MovedFile

if TYPE_CHECKING:
    from codeloop.workspace.sandbox.network.published_ports import PublishedPort

# The model may still read the output of ended jobs;
# of more than this many the oldest are forgotten.
_MAX_ENDED_JOBS = 64

# The end of a command's output that a user is shown.
_END_BYTES = 32 * 1024

JobStatus = Literal["running", "exited", "killed"]


class JobOutput(Struct, frozen=True):
    """The output of a job since the last read, for a model (`output`) and for a screen
    (`screen_text`), and its state.

    `is_cut`: the middle of `output` is left out. `code`: the exit code, negative for a signal, None
    while it runs and if it was killed. `notes`: as of `RunningCommand.take_notes`; `moved_files`:
    files that appeared meanwhile and were moved away; `warnings`: for the user and the model.
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
    """One background command. `id` names it to the model; `session` is the one that started it.

    `call_id`: of the call that started it. `is_overdue`: it began in the foreground and did not end
    within its timeout. `start_time`, `overdue_since`, `end_time`: as of `time.monotonic`;
    `end_time` is None while it runs.
    """

    def __init__(
        self,
        job_id: str,
        session: str,
        command: str,
        running: RunningCommand,
        start_time: float | None = None,
    ) -> None:
        self.id = job_id
        self.session = session
        self.command = command
        self.call_id = ""
        self.status: JobStatus = "running"
        self.code: int | None = None
        self.is_overdue = start_time is not None
        self.overdue_since = time.monotonic()
        self.start_time = time.monotonic() if start_time is None else start_time
        self.end_time: float | None = None
        self.is_end_known = False
        """Whether the model has read how it ended, or ended it."""
        self.running = running
        self.addresses: dict[int, str] = {}
        """By the port that it listens on in its sandbox,
        the address by which the user reaches it.
        """
        self.on_end: Callable[[Job], None] = lambda _job: None
        self._has_output = asyncio.Event()
        running.on_output = self._has_output.set
        self._task = asyncio.create_task(self._watch(), name=job_id)

    async def read(self, wait: float = 0) -> JobOutput:
        """Return the new output. If there is none,
        wait at most `wait` seconds for output or the end.
        """
        if wait and self.status == "running" and not self._has_output.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._has_output.wait()
        return self.take_output()

    def take_output(self) -> JobOutput:
        """Return the output since the last read."""
        self._has_output.clear()
        output = self.running.buffer.take()
        self.is_end_known = self.status != "running"
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

    def read_end(self) -> str:
        """Return the end of all that it has printed, whoever has read it."""
        buffer = self.running.buffer
        if buffer.path is None:
            return buffer.read_recent()
        try:
            with buffer.path.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
                return file.read().decode("utf-8", "replace").replace("\0", "\ufffd")
        except OSError:
            return buffer.read_recent()

    async def kill(self, *, is_by_user: bool = False) -> bool:
        """End it with all its processes. Returns False if it had already ended.

        `is_by_user`: the model does not know of it yet.
        """
        self.is_end_known = not is_by_user
        if self.status != "running":
            return False
        self.status, self.end_time = "killed", time.monotonic()
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
            self.status, self.end_time = "exited", time.monotonic()
        self._has_output.set()
        self.on_end(self)

    async def wait_for_end(self) -> None:
        """Wait until it has ended."""
        await asyncio.wait([self._task])


class Jobs:
    """The background commands of one project, by id."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._count = 0
        self.on_first: Callable[[Jobs], None] = lambda _jobs: None
        """Called before the first job is added."""
        self.on_end: Callable[[Job], None] = lambda _job: None
        """Called when a job has ended."""
        self.on_start: Callable[[Job], None] = lambda _job: None
        """Called when a command has begun to run in the background."""
        self.on_listen: Callable[[Job, PublishedPort], None] = lambda _job, _port: None
        """Called when the user can reach a port of a job."""

    def add(
        self,
        session: str,
        command: str,
        running: RunningCommand,
        *,
        start_time: float | None = None,
    ) -> Job:
        """Add a started command. The oldest ended jobs are forgotten.
        `start_time`: of a command that is overdue.
        """
        if not self._count:
            self.on_first(self)
        self._count += 1
        job = Job(f"bash_{self._count}", session, command, running, start_time)
        job.on_end = lambda job: self.on_end(job)
        self._jobs[job.id] = job
        running.on_background()
        self.on_start(job)
        ended_ids = [each.id for each in self._jobs.values() if each.status != "running"]
        for job_id in ended_ids[:-_MAX_ENDED_JOBS]:
            del self._jobs[job_id]
        return job

    @property
    def is_empty(self) -> bool:
        """Whether no command was ever started in the background."""
        return not self._jobs

    def find_job(self, job_id: str) -> Job | None:
        """Return the job of that id; None: there is none, or it was forgotten."""
        return self._jobs.get(job_id)

    def list_untold(self, session: str) -> tuple[Job, ...]:
        """Return the jobs of a session that have ended without the model knowing it."""
        return tuple(
            job
            for job in self._jobs.values()
            if job.session == session and job.status != "running" and not job.is_end_known
        )

    def list_overdue(self, session: str) -> tuple[Job, ...]:
        """Return the jobs of a session that run on since they did not end within their timeout."""
        return tuple(
            job
            for job in self._jobs.values()
            if job.is_overdue and job.session == session and job.status == "running"
        )

    def list_jobs(self) -> tuple[Job, ...]:
        """Return all jobs, the oldest first."""
        return tuple(self._jobs.values())

    def count_running(self) -> int:
        """Return the number of jobs that still run."""
        return sum(job.status == "running" for job in self._jobs.values())

    def change_ports(self, new: "Iterable[PublishedPort]", gone: "Iterable[PublishedPort]") -> None:
        """Add ports to the job that was started last, and remove others."""
        running_jobs = [job for job in self._jobs.values() if job.status == "running"]
        for port in new if running_jobs else ():
            running_jobs[-1].addresses[port.port] = port.address
            self.on_listen(running_jobs[-1], port)
        for port in gone:
            for job in self._jobs.values():
                if job.addresses.pop(port.port, None) is not None and job.status == "running":
                    self.on_start(job)

    async def close(self) -> None:
        """End all jobs."""
        await asyncio.gather(*(job.kill() for job in self._jobs.values()))
