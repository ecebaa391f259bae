"""Background commands: started, watched and ended by id; none outlives its project."""

import asyncio
import time
from typing import Literal

from msgspec import Struct

from codeloop.workspace.process.command import RunningCommand
from codeloop.workspace.sandbox.protected_files import MovedFile

_MOST_ENDED = 64

Status = Literal["running", "exited", "killed"]


class JobOutput(Struct, frozen=True):
    """What a job printed since the last read, for a model and for a screen, and its state.

    `code`: negative for a signal, None for none. `notes`: what the sandbox kept it from; `moved_files`: what appeared
    meanwhile and was moved away; `warnings`: what it made and was moved away, for the user, too.
    """

    output: str
    printed: str
    cut: bool
    status: Status
    code: int | None
    notes: tuple[str, ...] = ()
    moved_files: tuple[MovedFile, ...] = ()
    warnings: tuple[str, ...] = ()


class Job:
    """One background command. `id` names it to the model; `session` is the one that started it."""

    def __init__(self, name: str, session: str, command: str, running: RunningCommand) -> None:
        self.id = name
        self.session = session
        self.command = command
        self.status: Status = "running"
        self.code: int | None = None
        self.began = time.monotonic()
        self.running = running
        self._has_news = asyncio.Event()
        running.on_output = self._has_news.set
        self._task = asyncio.create_task(self._watch(), name=name)

    async def read(self, wait: float = 0) -> JobOutput:
        """Return the new output; without any, wait for output or the end for at most `wait` seconds."""
        if wait and self.status == "running" and not self._has_news.is_set():
            try:
                async with asyncio.timeout(wait):
                    await self._has_news.wait()
            except TimeoutError:
                pass
        self._has_news.clear()
        output = self.running.capture.take()
        return JobOutput(
            output=output.text,
            printed=output.printed,
            cut=output.is_cut,
            status=self.status,
            code=self.code,
            notes=self.running.take_notes(output.text, self.code),
            moved_files=self.running.take_moved_files(),
            warnings=self.running.warnings(),
        )

    async def kill(self) -> bool:
        """End it with everything it started. Returns False when it had already ended."""
        if self.status != "running":
            return False
        self.status = "killed"
        self._task.cancel()
        await asyncio.wait([self._task])
        await self.running.stop()  # also when the task was cancelled before it had begun
        return True

    async def _watch(self) -> None:
        try:
            self.code, _ = await self.running.finish()
        except asyncio.CancelledError:
            await self.running.stop()
        else:
            self.status = "exited"
        self._has_news.set()


class Jobs:
    """The background commands of one project, by id."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._count = 0

    def add(self, session: str, command: str, running: RunningCommand) -> Job:
        """Take over a started command. The oldest that have ended are forgotten."""
        self._count += 1
        job = Job(f"bash_{self._count}", session, command, running)
        self._jobs[job.id] = job
        ended_ids = [one.id for one in self._jobs.values() if one.status != "running"]
        for name in ended_ids[:-_MOST_ENDED]:
            del self._jobs[name]
        return job

    def all(self) -> tuple[Job, ...]:
        """Return all jobs, the oldest first."""
        return tuple(self._jobs.values())

    def running(self) -> int:
        """Count those that still run."""
        return sum(job.status == "running" for job in self._jobs.values())

    async def close(self) -> None:
        """End all of them."""
        await asyncio.gather(*(job.kill() for job in self._jobs.values()))
