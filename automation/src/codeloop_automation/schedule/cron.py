"""Cron expressions: the parser, and the times at which they are due.
All times are local, without a time zone.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

from msgspec import Struct

from codeloop.schema.errors import UsageProblem

CRON_EXAMPLE = '"0 7 * * 1-5" is seven in the morning from Monday to Friday'
CRON_ALIASES = {
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
_FIELD_RANGES = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day", 1, 31),
    ("month", 1, 12),
    ("weekday", 0, 7),
)
_VALUE_NAMES: dict[str, dict[str, int]] = {
    "month": dict(zip(_MONTHS, range(1, 13), strict=True)),
    "weekday": dict(zip(_WEEKDAYS, range(7), strict=True)),
}
# One item of a comma-separated field: `*`, `5`, `1-5`, `*/10`, `1-5/2`;
# words such as `mon` stand for numbers.
_FIELD_ITEM = r"(\*|[0-9a-z]+)(?:-([0-9a-z]+))?(?:/([0-9]+))?"
# Between two 29ths of February there are at most 8 years.
_MAX_DAYS_AHEAD = 366 * 9


class CronTime(Struct, frozen=True):
    """A parsed cron expression. `weekdays`: 0 is Sunday.

    `matches_either_day`: the expression restricts both days and weekdays,
    and as in cron it is due on either of them.
    """

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    matches_either_day: bool

    def includes_day(self, day: date) -> bool:
        """Return whether there are due times on this day."""
        if day.month not in self.months:
            return False
        matches_day, matches_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if self.matches_either_day:
            return matches_day or matches_weekday
        return matches_day and matches_weekday

    def find_next_due_time(self, after: datetime) -> datetime:
        """Return the first due time after this one. Raises UsageProblem if there is none."""
        for days_ahead in range(_MAX_DAYS_AHEAD):
            day = after.date() + timedelta(days=days_ahead)
            if not self.includes_day(day):
                continue
            for due_time in self._list_times(day):
                if due_time > after:
                    return due_time
        raise UsageProblem(f"{self.text!r} is never due: no month has such a day. {CRON_EXAMPLE}.")

    def find_latest_due_time(self, after: datetime, until: datetime) -> datetime | None:
        """Return the last due time after `after` and up to `until`; None if there is none."""
        day = until.date()
        while day >= after.date():
            if self.includes_day(day):
                times = [
                    due_time for due_time in self._list_times(day) if after < due_time <= until
                ]
                if times:
                    return times[-1]
            day -= timedelta(days=1)
        return None

    def to_systemd_calendars(self) -> list[str]:
        """Return the expression as values of systemd's `OnCalendar`;
        the timer is due when any of them is.
        """
        clock_times = f"{_format_values(self.hours, 24)}:{_format_values(self.minutes, 60)}:00"
        months, days = _format_values(self.months, 12), _format_values(self.days, 31)
        names = ",".join(_WEEKDAYS[each].capitalize() for each in self.weekdays)
        weekdays = "" if len(self.weekdays) == 7 else f"{names} "
        # systemd requires weekday and date of one value to match, so "either" takes two values.
        if self.matches_either_day:
            return [f"*-{months}-{days} {clock_times}", f"{weekdays}*-{months}-* {clock_times}"]
        return [f"{weekdays}*-{months}-{days} {clock_times}"]

    def _list_times(self, day: date) -> Iterator[datetime]:
        return (
            datetime.combine(day, time(hour, minute))
            for hour in self.hours
            for minute in self.minutes
        )


def get_local_time() -> datetime:
    """Return the local time now, without a time zone."""
    return datetime.now(UTC).astimezone().replace(tzinfo=None)


def to_local_time(ms: int) -> datetime:
    """Convert ms since the epoch to local time, without a time zone."""
    return datetime.fromtimestamp(ms / 1000, UTC).astimezone().replace(tzinfo=None)


def parse_cron(text: str) -> CronTime:
    """Parse an expression of five fields, or a name such as `@daily`.

    Raises UsageProblem for an invalid expression, and for one that is never due.
    """
    fields = CRON_ALIASES.get(text.strip().lower(), text).split()
    if text.strip().startswith("@") and len(fields) == 1:
        raise UsageProblem(f"{text.strip()} is none of {', '.join(CRON_ALIASES)}.")
    if len(fields) != len(_FIELD_RANGES):
        count = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
        raise UsageProblem(
            f"{text!r} has {count}, not minute, hour, day, month and weekday: {CRON_EXAMPLE}."
        )
    minutes, hours, days, months, weekdays = (
        _parse_field(field, name, lowest, highest)
        for field, (name, lowest, highest) in zip(fields, _FIELD_RANGES, strict=True)
    )
    # As in cron, a field that begins with `*`, such as `*/2`, counts as unrestricted here.
    matches_either_day = not fields[2].startswith("*") and not fields[4].startswith("*")
    # Sunday is 0 or 7.
    weekdays = tuple(sorted({each % 7 for each in weekdays}))
    cron_time = CronTime(
        text=" ".join(fields),
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=weekdays,
        matches_either_day=matches_either_day,
    )
    # Raises for a day that no month has, such as the 31st of February.
    cron_time.find_next_due_time(get_local_time())
    return cron_time


def _parse_field(field: str, name: str, lowest: int, highest: int) -> tuple[int, ...]:
    """Return the values of a field, in ascending order.
    `name`: the name of the field, also in errors.
    """
    values: set[int] = set()
    for item in field.lower().split(","):
        match = re.fullmatch(_FIELD_ITEM, item)
        if match is None:
            raise UsageProblem(f"{item!r} is not a valid {name} for cron. {CRON_EXAMPLE}.")
        first, last, step = match.groups()
        if first == "*":
            low, high = lowest, highest
        else:
            low = _parse_value(first, name)
            # `5/10` is short for "from 5 to the end, every 10th"; `5` alone is one value.
            high = highest if step else low
            if last:
                high = _parse_value(last, name)
        if not lowest <= low <= high <= highest or step == "0" or (first == "*" and last):
            raise UsageProblem(
                f"{item!r} is not a valid {name}: it goes from {lowest} to {highest}. {CRON_EXAMPLE}."
            )
        values.update(range(low, high + 1, int(step or 1)))
    return tuple(sorted(values))


def _parse_value(word: str, name: str) -> int:
    """Return the number for a number or a name such as `mon`. Raises UsageProblem."""
    names = _VALUE_NAMES.get(name, {})
    if word in names:
        return names[word]
    if not word.isdecimal():
        raise UsageProblem(f"{word!r} is not a valid {name} for cron. {CRON_EXAMPLE}.")
    return int(word)


def _format_values(values: tuple[int, ...], count: int) -> str:
    """Return values in the syntax of systemd; `count`: the number of values
    that a `*` stands for.
    """
    return "*" if len(values) == count else ",".join(map(str, values))
