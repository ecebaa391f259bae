"""Measures how long hook handlers take: counted in memory,
and added to a file of the project every few seconds.
"""

import statistics
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from codeloop.kit.small_files import create_private_folder, lock, read_start, write_atomically
from codeloop.schema.bounds.extension import (
    HOOK_MEDIAN_SAMPLES,
    HOOK_TIMINGS,
    HOOK_TIMINGS_EVERY,
    HOOK_TIMINGS_LOCK,
    HOST_FILE,
)
from codeloop.schema.wire import DECODE_ERRORS

Outcome = Literal["answered", "failed", "late"]
"""`late`: it missed its deadline."""


class HookTiming(Struct, omit_defaults=True):
    """The calls of one handler at one hook. Times are in ms; `times`: the newest ones;
    `late`: missed deadlines.
    """

    label: str
    hook: str
    calls: int = 0
    failures: int = 0
    late: int = 0
    longest: float = 0.0
    times: list[float] = []

    @property
    def median(self) -> float:
        """The median of the newest times."""
        return statistics.median(self.times) if self.times else 0.0

    def record(self, took: float, outcome: Outcome) -> None:
        """Count a call that took so many ms."""
        self.calls += 1
        self.failures += outcome != "answered"
        self.late += outcome == "late"
        self.longest = max(self.longest, took)
        self.times = [*self.times, took][-HOOK_MEDIAN_SAMPLES.value :]

    def add(self, later: "HookTiming") -> None:
        """Add later counts."""
        self.calls += later.calls
        self.failures += later.failures
        self.late += later.late
        self.longest = max(self.longest, later.longest)
        self.times = [*self.times, *later.times][-HOOK_MEDIAN_SAMPLES.value :]


class HookTimings:
    """Counts the calls of a project's hook handlers. If the file can't be written,
    they are lost without an error.
    """

    is_busy = False
    """For `RunningService`, by which `app/services.py` closes it with the project:
    `close` waits for nothing.
    """

    def __init__(self, folder: Path) -> None:
        self._file = get_timings_path(folder)
        self._unsaved: dict[tuple[str, str], HookTiming] = {}
        """The counts since the last save, by label and hook."""
        self._saved_at = time.monotonic()

    def record(self, label: str, hook: str, took: float, outcome: Outcome) -> None:
        """Count a call that took so many ms."""
        timing = self._unsaved.setdefault((label, hook), HookTiming(label, hook))
        timing.record(round(took, 2), outcome)
        if time.monotonic() - self._saved_at >= HOOK_TIMINGS_EVERY.seconds:
            self.save()

    def save(self) -> None:
        """Add the new counts to the file."""
        # Reset before the file is written, so that a save that fails is not tried
        # again with each call.
        unsaved, self._unsaved, self._saved_at = self._unsaved, {}, time.monotonic()
        if not unsaved:
            return
        with suppress(OSError, TimeoutError):
            create_private_folder(self._file.parent)
            # Several processes of one project add to the same file.
            with lock(self._file.parent, HOOK_TIMINGS_LOCK.seconds):
                timings = {
                    (timing.label, timing.hook): timing
                    for timing in read_timings(self._file.parent)
                }
                for key, timing in unsaved.items():
                    # Popped and put at the end: those that were not used for the
                    # longest time are cut off.
                    total = timings.pop(key, HookTiming(timing.label, timing.hook))
                    total.add(timing)
                    timings[key] = total
                write_atomically(
                    self._file, msgspec.json.encode(list(timings.values())[-HOOK_TIMINGS.value :])
                )

    async def close(self) -> None:
        """Save the new counts."""
        self.save()


def get_timings_path(folder: Path) -> Path:
    """Return the file of timings in a project's folder of extensions."""
    return folder / "timings.json"


def read_timings(folder: Path) -> list[HookTiming]:
    """Read the counted times; empty where they can't be read."""
    with suppress(OSError, *DECODE_ERRORS):
        return msgspec.json.decode(
            read_start(get_timings_path(folder), HOST_FILE.value), type=list[HookTiming]
        )
    return []
