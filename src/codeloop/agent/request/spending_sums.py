"""Adds up what was spent today and this month, in the databases of all projects or of one."""

from collections.abc import Iterable
from contextlib import closing, suppress
from datetime import date, datetime, time
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.kit.small_files import write_atomically
from codeloop.schema.wire import DECODE_ERRORS
from codeloop.store.database import StoreError
from codeloop.store.ledger import Spent, open_ledger


class CachedSpent(Struct):
    """What was spent in a database since the starts of a `day` and of its `month`
    (ms since the epoch).

    `state`: the times and sizes of the database's files when it was read.
    """

    state: list[int]
    day: int
    month: int
    spent: Spent


_decode_sums = msgspec.json.Decoder(dict[str, CachedSpent]).decode


def find_day_start(day: date) -> int:
    """Return when a day began in local time (ms since the epoch)."""
    # Without a time zone it means local time as it was on that day,
    # also before a change of the clocks.
    return int(datetime.combine(day, time.min).timestamp() * 1000)


class SpendingSums:
    """The sums of databases, cached in a file: budgets are checked before each request,
    and databases may be many.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        today = datetime.now().astimezone().date()
        self._day = find_day_start(today)
        self._month = find_day_start(today.replace(day=1))
        self._stored: dict[str, CachedSpent] = {}
        """The sums in the file, by the path of the database and the directory
        whose sessions count.
        """
        with suppress(OSError, *DECODE_ERRORS):
            self._stored = _decode_sums(file.read_bytes())
        self._used: dict[str, CachedSpent] = {}
        """The sums that were asked for, which are up to date."""

    def add_up(self, paths: Iterable[Path], directory: str | None) -> Spent:
        """Add up the spending in databases, for the sessions of a directory or for all."""
        today = this_month = 0.0
        for path in paths:
            state = _read_state(path)
            key = f"{path}\n{directory or ''}"
            sums = self._stored.get(key)
            if sums is None or (sums.state, sums.day, sums.month) != (
                state,
                self._day,
                self._month,
            ):
                sums = CachedSpent(state, self._day, self._month, self._read(path, directory))
            self._used[key] = sums
            today += sums.spent.today
            this_month += sums.spent.this_month
        return Spent(today, this_month)

    def store(self) -> None:
        """Write the sums to the file if they have changed."""
        # Sums of other databases stay too: another project may have stored them.
        # Those of earlier days are dropped.
        sums = {
            key: each for key, each in self._stored.items() if each.day == self._day
        } | self._used
        if sums != self._stored:
            with suppress(OSError):
                self._file.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(self._file, msgspec.json.encode(sums))

    def _read(self, path: Path, directory: str | None) -> Spent:
        with suppress(StoreError), closing(open_ledger(path)) as ledger:
            return ledger.sum_spent(self._day, self._month, directory)
        return Spent(0.0, 0.0)


def _read_state(path: Path) -> list[int]:
    """Return the times of the last write (ns) and the sizes (bytes) of a database
    and its write-ahead log.
    """
    values: list[int] = []
    for each in (path, path.with_name(f"{path.name}-wal")):
        try:
            status = each.stat()
        except OSError:
            values += [0, 0]
        else:
            # Opening a database for reading creates an empty log, which is not a change.
            values += [status.st_mtime_ns, status.st_size] if status.st_size else [0, 0]
    return values
