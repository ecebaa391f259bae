"""Parses cron expressions, and finds the times at which they are due. All times are local, without a time zone."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

from msgspec import Struct

from codeloop.schema.errors import UsageProblem

EXAMPLE = '"0 7 * * 1-5" is seven in the morning from Monday to Friday'
ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
_NAMES: dict[str, dict[str, int]] = {
    "month": dict(zip(_MONTHS, range(1, 13), strict=True)),
    "weekday": dict(zip(_WEEKDAYS, range(7), strict=True)),
}
_PIECE = re.compile(r"(\*|[0-9a-z]+)(?:-([0-9a-z]+))?(?:/([0-9]+))?")
_MAX_DAYS_AHEAD = 366 * 9
"""How far ahead a due time is looked for: between two 29ths of February there are 8 years at most."""


class CronTime(Struct, frozen=True):
    """A parsed cron expression. `weekdays`: 0 is Sunday.

    `is_either`: the expression restricts both days and weekdays, and as in cron one of them is enough.
    """

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    is_either: bool

    def is_day(self, day: date) -> bool:
        """Return whether there are due times on this day."""
        is_day, is_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return day.month in self.months and (is_day or is_weekday if self.is_either else is_day and is_weekday)

    def next_due(self, after: datetime) -> datetime:
        """Return the first due time after this one. Raises UsageProblem if there is none."""
        for day in (after.date() + timedelta(days=days) for days in range(_MAX_DAYS_AHEAD)):
            if self.is_day(day) and (due := next((at for at in self._list_times(day) if at > after), None)):
                return due
        raise UsageProblem(f"{self.text!r} is never due: no month has such a day. {EXAMPLE}.")

    def latest_due(self, after: datetime, until: datetime) -> datetime | None:
        """Return the last due time that is later than `after` and not later than `until`; None: there is none."""
        day = until.date()
        while day >= after.date():
            if self.is_day(day) and (times := [at for at in self._list_times(day) if after < at <= until]):
                return times[-1]
            day -= timedelta(days=1)
        return None

    def to_calendars(self) -> list[str]:
        """Return the expression as values of systemd's `OnCalendar`; the timer is due when any of them is."""
        at = f"{_format_values(self.hours, 24)}:{_format_values(self.minutes, 60)}:00"
        months, days = _format_values(self.months, 12), _format_values(self.days, 31)
        names = ",".join(_WEEKDAYS[each].capitalize() for each in self.weekdays)
        weekdays = "" if len(self.weekdays) == 7 else f"{names} "
        if self.is_either:
            return [f"*-{months}-{days} {at}", f"{weekdays}*-{months}-* {at}"]
        return [f"{weekdays}*-{months}-{days} {at}"]

    def _list_times(self, day: date) -> Iterator[datetime]:
        return (datetime.combine(day, time(hour, minute)) for hour in self.hours for minute in self.minutes)


def local_now() -> datetime:
    """Return the local time now."""
    return datetime.now(UTC).astimezone().replace(tzinfo=None)


def local_time(ms: int) -> datetime:
    """Convert ms since the epoch to local time."""
    return datetime.fromtimestamp(ms / 1000, UTC).astimezone().replace(tzinfo=None)


def parse_cron(text: str) -> CronTime:
    """Parse an expression of five fields, or a name such as `@daily`.

    Raises UsageProblem for an invalid expression, and for one that is never due.
    """
    fields = ALIASES.get(text.strip().lower(), text).split()
    if text.strip().startswith("@") and len(fields) == 1:
        raise UsageProblem(f"{text.strip()} is none of {', '.join(ALIASES)}.")
    if len(fields) != len(_FIELDS):
        count = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
        raise UsageProblem(f"{text!r} has {count}, not minute, hour, day, month and weekday: {EXAMPLE}.")
    minutes, hours, days, months, weekdays = (
        _parse_field(field, *row) for field, row in zip(fields, _FIELDS, strict=True)
    )
    is_either = not fields[2].startswith("*") and not fields[4].startswith("*")
    weekdays = tuple(sorted({each % 7 for each in weekdays}))
    when = CronTime(" ".join(fields), minutes, hours, days, months, weekdays, is_either)
    when.next_due(local_now())  # raises if it is never due
    return when


def _parse_field(field: str, name: str, least: int, most: int) -> tuple[int, ...]:
    """Return the values of a field, in order. `name`: what errors call the field."""
    values: set[int] = set()
    for piece in field.lower().split(","):
        match = _PIECE.fullmatch(piece)
        if match is None:
            raise UsageProblem(f"{piece!r} is no {name} for cron. {EXAMPLE}.")
        first, last, step = match.groups()
        if first == "*":
            low, high = least, most
        else:
            low = _parse_value(first, name)
            high = _parse_value(last, name) if last else (most if step else low)
        if not least <= low <= high <= most or step == "0" or (first == "*" and last):
            raise UsageProblem(f"{piece!r} is no {name}: it goes from {least} to {most}. {EXAMPLE}.")
        values.update(range(low, high + 1, int(step or 1)))
    return tuple(sorted(values))


def _parse_value(word: str, name: str) -> int:
    names = _NAMES.get(name, {})
    if word in names:
        return names[word]
    if not word.isdecimal():
        raise UsageProblem(f"{word!r} is no {name} for cron. {EXAMPLE}.")
    return int(word)


def _format_values(values: tuple[int, ...], count: int) -> str:
    """Return values for systemd: `*` when they are all the `count` values that there are."""
    return "*" if len(values) == count else ",".join(map(str, values))
