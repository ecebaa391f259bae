"""What ends or holds up a whole fleet: its budget, its deadline, and outages to wait for."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from codeloop_automation.bounds import (
    FLEET_DISK,
    FLEET_OUTAGE,
    FLEET_OUTAGE_FAILURES,
    FLEET_OUTAGE_PAUSE,
    FLEET_OUTAGE_PAUSE_MOST,
    FLEET_SPENDING,
)
from codeloop_automation.fleet.driver import OUTPUT_NAME, read_spending


class FleetLimits(Struct, frozen=True):
    """The limits of one run of a fleet. `budget`: dollars of all attempts since the fleet began;
    `seconds`: of this run. None: no limit.
    """

    budget: float | None = None
    seconds: float | None = None


class LimitWatch:
    """Tells when a limit of a fleet is reached. `sum_cost`: returns the dollars of the attempts
    that have ended; the outputs of those that run are below `attempts`.
    """

    def __init__(self, limits: FleetLimits, sum_cost: Callable[[], float], attempts: Path) -> None:
        self._limits = limits
        self._sum_cost = sum_cost
        self._attempts = attempts
        self._began = time.monotonic()
        self._next_look = 0.0

    def find_reached(self) -> str:
        """Return which limit is reached, as a clause for the user; "": none."""
        now, limits = time.monotonic(), self._limits
        if limits.seconds is not None and now - self._began >= limits.seconds:
            return f"the deadline of {limits.seconds:g} s has passed"
        if limits.budget is not None and now >= self._next_look:
            self._next_look = now + FLEET_SPENDING.seconds
            outputs = self._attempts.glob(f"*/{OUTPUT_NAME}")
            spent = self._sum_cost() + sum(read_spending(output).cost for output in outputs)
            if spent >= limits.budget:
                return f"the budget of ${limits.budget:g} is spent (${spent:.4f})"
        return ""


class Outage:
    """An outage that a fleet waits for: of the models' service, or of room on the disk.

    `notify` shows a line to the user. Its methods are called from many threads at once; a count
    that is off by one does no harm.
    """

    def __init__(self, folder: Path, notify: Callable[[str], object]) -> None:
        self._folder = folder
        self._notify = notify
        self._failures = 0
        self._began = 0.0
        self._pauses = 0
        self._paused_until = 0.0

    @property
    def is_going_on(self) -> bool:
        """Whether so many jobs in a row have failed at the service that it seems to be down."""
        return self._failures >= FLEET_OUTAGE_FAILURES.value

    def record_success(self) -> None:
        """Record that a job was answered."""
        self._failures = self._pauses = 0

    def record_failure(self, message: str) -> bool:
        """Record that a job failed at the service; return whether it is to wait for the end of the
        outage, instead of having failed.
        """
        self._failures += 1
        if not self.is_going_on:
            return False
        if self._failures == FLEET_OUTAGE_FAILURES.value:
            self._began = time.monotonic()
        if time.monotonic() - self._began < FLEET_OUTAGE.seconds:
            self._pause(
                f"{self._failures} jobs in a row have failed at the models' service: {message}"
            )
            return True
        return False

    def may_start(self) -> bool:
        """Return whether a job may be started: there is no pause, and room on the disk."""
        if time.monotonic() < self._paused_until:
            return False
        free = shutil.disk_usage(self._folder).free
        if free < FLEET_DISK.value:
            self._pause(f"{self._folder} has {free // 1_000_000:,} MB of free space")
        return free >= FLEET_DISK.value

    def _pause(self, reason: str) -> None:
        longest = FLEET_OUTAGE_PAUSE_MOST.seconds
        seconds = min(longest, FLEET_OUTAGE_PAUSE.seconds * 2 ** min(self._pauses, 10))
        self._pauses += 1
        self._paused_until = time.monotonic() + seconds
        self._notify(f"No job is started for {seconds:g} s: {reason}")
