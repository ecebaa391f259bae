"""Times as cron has them: five fields of numbers, names, ranges and steps. All times are local and without a zone."""

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
_DAYS = 366 * 9
"""How far a due time is looked for: the 29th of February comes again within 8 years."""


class CronTime(Struct, frozen=True):
    """When something is due. `weekdays`: 0 is Sunday. `is_either`: days and weekdays are both given, one is enough."""

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    is_either: bool

    def is_day(self, day: date) -> bool:
        """Return whether something is due on this day."""
        is_day, is_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return day.month in self.months and (is_day or is_weekday if self.is_either else is_day and is_weekday)

    def next_due(self, after: datetime) -> datetime:
        """Return the first due time after this one. Raises UsageProblem if there is none."""
        for day in (after.date() + timedelta(days=days) for days in range(_DAYS)):
            if self.is_day(day) and (time_of_day := next((at for at in self._times(day) if at > after), None)):
                return time_of_day
        raise UsageProblem(f"{self.text!r} is never due: no month has such a day. {EXAMPLE}.")

    def latest_due(self, after: datetime, until: datetime) -> datetime | None:
        """Return the last due time after one time and not after another; None: there is none between."""
        day = until.date()
        while day >= after.date():
            if self.is_day(day) and (times := [at for at in self._times(day) if after < at <= until]):
                return times[-1]
            day -= timedelta(days=1)
        return None

    def calendars(self) -> list[str]:
        """Return the same as `OnCalendar` of systemd, each of which is due by itself."""
        at = f"{_list(self.hours, 24)}:{_list(self.minutes, 60)}:00"
        months, days = _list(self.months, 12), _list(self.days, 31)
        names = ",".join(_WEEKDAYS[each].capitalize() for each in self.weekdays)
        weekdays = "" if len(self.weekdays) == 7 else f"{names} "
        if self.is_either:
            return [f"*-{months}-{days} {at}", f"{weekdays}*-{months}-* {at}"]
        return [f"{weekdays}*-{months}-{days} {at}"]

    def _times(self, day: date) -> Iterator[datetime]:
        return (datetime.combine(day, time(hour, minute)) for hour in self.hours for minute in self.minutes)


def local_now() -> datetime:
    """Return the time that a clock on the wall shows."""
    return datetime.now(UTC).astimezone().replace(tzinfo=None)


def local_time(ms: int) -> datetime:
    """Return the local time at this moment (ms since the epoch)."""
    return datetime.fromtimestamp(ms / 1000, UTC).astimezone().replace(tzinfo=None)


def parse_cron(text: str) -> CronTime:
    """Read five fields, or a name such as `@daily`. Raises UsageProblem."""
    fields = ALIASES.get(text.strip().lower(), text).split()
    if text.strip().startswith("@") and len(fields) == 1:
        raise UsageProblem(f"{text.strip()} is none of {', '.join(ALIASES)}.")
    if len(fields) != len(_FIELDS):
        count = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
        raise UsageProblem(f"{text!r} has {count}, not minute, hour, day, month and weekday: {EXAMPLE}.")
    minutes, hours, days, months, weekdays = (_parse(field, *row) for field, row in zip(fields, _FIELDS, strict=True))
    is_either = not fields[2].startswith("*") and not fields[4].startswith("*")
    weekdays = tuple(sorted({each % 7 for each in weekdays}))
    when = CronTime(" ".join(fields), minutes, hours, days, months, weekdays, is_either)
    when.next_due(local_now())
    return when


def _parse(field: str, name: str, least: int, most: int) -> tuple[int, ...]:
    values: set[int] = set()
    for piece in field.lower().split(","):
        match = _PIECE.fullmatch(piece)
        if match is None:
            raise UsageProblem(f"{piece!r} is no {name} for cron. {EXAMPLE}.")
        first, last, step = match.groups()
        if first == "*":
            low, high = least, most
        else:
            low = _value(first, name)
            high = _value(last, name) if last else (most if step else low)
        if not least <= low <= high <= most or step == "0" or (first == "*" and last):
            raise UsageProblem(f"{piece!r} is no {name}: it goes from {least} to {most}. {EXAMPLE}.")
        values.update(range(low, high + 1, int(step or 1)))
    return tuple(sorted(values))


def _value(word: str, name: str) -> int:
    names = _NAMES.get(name, {})
    if word in names:
        return names[word]
    if not word.isdecimal():
        raise UsageProblem(f"{word!r} is no {name} for cron. {EXAMPLE}.")
    return int(word)


def _list(values: tuple[int, ...], count: int) -> str:
    return "*" if len(values) == count else ",".join(map(str, values))
