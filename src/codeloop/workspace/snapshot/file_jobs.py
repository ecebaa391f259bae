"""File jobs of snapshots: run on threads that a stuck disk may block, one scan at a time, bounded in time."""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import msgspec

from codeloop.schema.limits import SNAPSHOT_QUICK_SCAN, SNAPSHOT_RETRY_TIME, SNAPSHOT_SCAN, SNAPSHOT_TIME, Limit
from codeloop.workspace.snapshot.blob import Unreadable
from codeloop.workspace.snapshot.object_store import MissingObject
from codeloop.workspace.snapshot.scanner import ScanRefused

T = TypeVar("T")
SMALL = 5_000
"""Files; a work tree of at most so many may be looked at without a thread."""


class Failed(msgspec.Struct, frozen=True):
    """A file job failed; `reason` is a clause for the user."""

    reason: str


class FileJobs:
    """Runs the jobs of one work tree. `count` returns how many of its files are known so far."""

    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count
        self._lock = asyncio.Lock()
        self._busy: asyncio.Future[None] | None = None
        self._is_quick = False
        """Whether the last scan was so quick that the next one is not worth a thread."""

    @property
    def is_busy(self) -> bool:
        """Whether a scan is running."""
        return self._busy is not None and not self._busy.done()

    async def work(self, job: Callable[[], T]) -> T | Failed:
        """Run a job on a thread, after what still runs there; returns Failed when it fails.

        A job longer than SNAPSHOT_TIME continues in the background; the next one waits SNAPSHOT_RETRY_TIME for it.
        """
        async with self._lock:
            deadline = time.monotonic() + SNAPSHOT_TIME.seconds
            if self._busy is not None and self.is_busy:
                await asyncio.wait([self._busy], timeout=SNAPSHOT_RETRY_TIME.seconds)
                if self.is_busy:
                    return Failed(f"the work tree is still being scanned ({self._count():,} files so far)")
            result: list[T | Failed] = []
            start = time.monotonic()
            if self._is_quick:
                _do(job, result)
            else:
                self._busy = _start_thread(job, result)
                await asyncio.wait([self._busy], timeout=max(deadline - start, 0))
            self._is_quick = self._count() <= SMALL and time.monotonic() - start < SNAPSHOT_QUICK_SCAN.seconds
            if not result:
                return Failed(f"scanning the work tree takes longer than {SNAPSHOT_TIME.seconds:g} s")
            return result[0]

    async def run_in_background(self, job: Callable[[], T], limit: Limit = SNAPSHOT_TIME) -> T | Failed:
        """Run a job on the store and single files, which need not wait for a scan."""
        result: list[T | Failed] = []
        if self._is_quick:
            _do(job, result)
        else:
            await asyncio.wait([_start_thread(job, result)], timeout=limit.seconds)
        return result[0] if result else Failed(f"it takes longer than {limit.seconds:g} s")

    async def wait_idle(self) -> None:
        """Wait until a scan in the background has ended, at most SNAPSHOT_SCAN."""
        if self._busy is not None:
            await asyncio.wait([self._busy], timeout=SNAPSHOT_SCAN.seconds)


def _start_thread(job: Callable[[], T], result: list[T | Failed]) -> asyncio.Future[None]:
    """Run a blocking job on a thread that a stuck disk may block for ever without blocking the program."""
    loop = asyncio.get_running_loop()
    finished: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not finished.done():
            finished.set_result(None)

    def body() -> None:
        try:
            _do(job, result)
        finally:
            with suppress(RuntimeError):  # the loop is closed: nobody is waiting
                loop.call_soon_threadsafe(settle)

    threading.Thread(target=body, daemon=True, name="snapshot").start()
    return finished


def _do(job: Callable[[], T], result: list[T | Failed]) -> None:
    try:
        result.append(job())
    except (ScanRefused, Unreadable) as error:
        result.append(Failed(str(error)))
    except MissingObject as error:
        result.append(Failed(f"the contents {error} are no longer kept"))
    except OSError as error:
        result.append(Failed(f"a file of the snapshot failed: {error}"))
