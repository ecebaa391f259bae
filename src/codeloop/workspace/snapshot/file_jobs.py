"""Runs the file jobs of snapshots on threads that a stuck disk may block, one scan at a time, bounded in time."""

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

T = TypeVar("T")
# A work tree of at most so many files may be scanned without a thread.
_MAX_FILES_WITHOUT_THREAD = 5_000


class ScanRefused(Exception):
    """The work tree is too large to scan; the message is a clause for the user."""


class JobFailure(msgspec.Struct, frozen=True):
    """The result of a file job that failed; `reason` is a clause for the user."""

    reason: str


class FileJobs:
    """Runs the jobs of one work tree. `count_files` returns the number of its files that are known so far."""

    def __init__(self, count_files: Callable[[], int]) -> None:
        self._count_files = count_files
        self._lock = asyncio.Lock()
        self._running_scan: asyncio.Future[None] | None = None
        # Whether the last scan was so quick that the next one is not worth a thread.
        self._is_quick = False

    @property
    def is_busy(self) -> bool:
        """Whether a scan is running."""
        return self._running_scan is not None and not self._running_scan.done()

    async def run_scan(self, job: Callable[[], T]) -> T | JobFailure:
        """Run a job that scans the work tree, after the one before; JobFailure when it fails.

        It runs on a thread, unless the last scan was quick. A job longer than SNAPSHOT_TIME continues in the
        background; the next one waits SNAPSHOT_RETRY_TIME for it.
        """
        async with self._lock:
            deadline = time.monotonic() + SNAPSHOT_TIME.seconds
            if self._running_scan is not None and self.is_busy:
                await asyncio.wait([self._running_scan], timeout=SNAPSHOT_RETRY_TIME.seconds)
                if self.is_busy:
                    return JobFailure(f"the work tree is still being scanned ({self._count_files():,} files so far)")
            # Empty until the job has ended.
            result: list[T | JobFailure] = []
            start = time.monotonic()
            if self._is_quick:
                _run(job, result)
            else:
                self._running_scan = _start_thread(job, result)
                await asyncio.wait([self._running_scan], timeout=max(deadline - start, 0))
            self._is_quick = (
                self._count_files() <= _MAX_FILES_WITHOUT_THREAD
                and time.monotonic() - start < SNAPSHOT_QUICK_SCAN.seconds
            )
            if not result:
                return JobFailure(f"scanning the work tree takes longer than {SNAPSHOT_TIME.seconds:g} s")
            return result[0]

    async def run_job(self, job: Callable[[], T], limit: Limit | None = None) -> T | JobFailure:
        """Run a job on the store and on single files, which need not wait for a scan. `limit`: None: SNAPSHOT_TIME."""
        max_seconds = (limit or SNAPSHOT_TIME).seconds
        result: list[T | JobFailure] = []
        if self._is_quick:
            _run(job, result)
        else:
            await asyncio.wait([_start_thread(job, result)], timeout=max_seconds)
        return result[0] if result else JobFailure(f"it takes longer than {max_seconds:g} s")

    async def wait_idle(self) -> None:
        """Wait until a scan in the background has ended, at most SNAPSHOT_SCAN."""
        if self._running_scan is not None:
            await asyncio.wait([self._running_scan], timeout=SNAPSHOT_SCAN.seconds)


def _start_thread(job: Callable[[], T], result: list[T | JobFailure]) -> asyncio.Future[None]:
    """Run a blocking job on a thread of its own; return a future that is done when the job has ended."""
    loop = asyncio.get_running_loop()
    finished: asyncio.Future[None] = loop.create_future()

    def set_finished() -> None:
        if not finished.done():
            finished.set_result(None)

    def run_and_report() -> None:
        try:
            _run(job, result)
        finally:
            with suppress(RuntimeError):  # the loop is closed: nobody is waiting
                loop.call_soon_threadsafe(set_finished)

    # A daemon, not `asyncio.to_thread`: a stuck disk may block the thread for ever, and the program still ends.
    threading.Thread(target=run_and_report, daemon=True, name="snapshot").start()
    return finished


def _run(job: Callable[[], T], result: list[T | JobFailure]) -> None:
    try:
        result.append(job())
    except (ScanRefused, Unreadable) as error:
        result.append(JobFailure(str(error)))
    except MissingObject as error:
        result.append(JobFailure(f"the contents {error} are no longer kept"))
    except OSError as error:
        result.append(JobFailure(f"a file of the snapshot failed: {error}"))
