"""Runs the file jobs of snapshots on threads that a stuck disk may block, one scan at a time.

However long a scan takes, it is waited for: what a command changes could not be undone without it.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import msgspec

from codeloop.schema.limits import SNAPSHOT_QUICK_SCAN, SNAPSHOT_STALLED, Limit
from codeloop.workspace.snapshot.blob import Unreadable
from codeloop.workspace.snapshot.object_store import MissingObject

T = TypeVar("T")
# A work tree of at most so many files may be scanned without a thread.
_MAX_FILES_WITHOUT_THREAD = 5_000
_POLL_SECONDS = 1.0


class ScanRefused(Exception):
    """The work tree is too large to scan; the message is a clause for the user."""


class ScanStopped(Exception):
    """The scan was stopped, since the process ends. What it has read is kept."""


class JobFailure(msgspec.Struct, frozen=True):
    """The result of a file job that failed; `reason` is a clause for the user."""

    reason: str


class FileJobs:
    """Runs the jobs of one work tree.

    `count_files` returns the number of its files that are known so far,
    `read_progress` a number that a scan raises.
    """

    def __init__(self, count_files: Callable[[], int], read_progress: Callable[[], int]) -> None:
        self._count_files = count_files
        self._read_progress = read_progress
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

        It runs on a thread, unless the last scan was quick,
        and continues there if the caller is cancelled.
        """
        async with self._lock:
            if self._running_scan is not None and not await self._wait_for_scan(self._running_scan):
                return JobFailure(
                    f"the disk gives no answer ({self._count_files():,} files were read so far)"
                )
            # Empty until the job has ended.
            result: list[T | JobFailure] = []
            start = time.monotonic()
            if self._is_quick:
                _run(job, result)
            else:
                self._running_scan = _start_thread(job, result)
                await self._wait_for_scan(self._running_scan)
            self._is_quick = (
                self._count_files() <= _MAX_FILES_WITHOUT_THREAD
                and time.monotonic() - start < SNAPSHOT_QUICK_SCAN.seconds
            )
            if not result:
                return JobFailure(
                    f"the disk gives no answer ({self._count_files():,} files were read so far)"
                )
            return result[0]

    async def run_job(self, job: Callable[[], T], limit: Limit | None = None) -> T | JobFailure:
        """Run a job on the store and on single files, which need not wait for a scan.

        `limit`: of the time, for what may be missing; None: the job is waited for.
        """
        result: list[T | JobFailure] = []
        if self._is_quick:
            _run(job, result)
        else:
            await asyncio.wait(
                [_start_thread(job, result)], timeout=limit.seconds if limit is not None else None
            )
        return (
            result[0]
            if result
            else JobFailure(f"it takes longer than {limit.seconds if limit else 0:g} s")
        )

    async def wait_idle(self) -> None:
        """Wait until the running scan has ended."""
        if self._running_scan is not None:
            await self._wait_for_scan(self._running_scan)

    async def _wait_for_scan(self, scan: asyncio.Future[None]) -> bool:
        """Wait for a scan; return False if it is stuck: it has read nothing in
        SNAPSHOT_STALLED looks in a row.
        """
        stalled, progress = 0, self._read_progress()
        while not scan.done():
            # Looks are counted instead of time, so that a program that was suspended
            # does not count as stuck.
            await asyncio.wait([scan], timeout=_POLL_SECONDS)
            before, progress = progress, self._read_progress()
            stalled = stalled + 1 if progress == before else 0
            if stalled >= SNAPSHOT_STALLED.value and not scan.done():
                return False
        return True


def _start_thread(job: Callable[[], T], result: list[T | JobFailure]) -> asyncio.Future[None]:
    """Run a blocking job on a thread of its own;
    return a future that is done when the job has ended.
    """
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

    # A daemon, not `asyncio.to_thread`: a stuck disk may block the thread for ever,
    # and the program still ends.
    threading.Thread(target=run_and_report, daemon=True, name="snapshot").start()
    return finished


def _run(job: Callable[[], T], result: list[T | JobFailure]) -> None:
    try:
        result.append(job())
    except (ScanRefused, Unreadable) as error:
        result.append(JobFailure(str(error)))
    except ScanStopped:
        result.append(JobFailure("the program ends"))
    except MissingObject as error:
        result.append(JobFailure(f"the contents {error} are no longer kept"))
    except OSError as error:
        place = f" ({os.fsdecode(error.filename)})" if error.filename else ""
        result.append(
            JobFailure(f"a file of the snapshot failed: {error.strerror or error}{place}")
        )
