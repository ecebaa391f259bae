"""Times as cron has them."""

from datetime import datetime, timedelta

import pytest

from codeloop.schema.errors import UsageProblem
from codeloop_automation.schedule.cron import parse_cron


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("when", "after", "due"),
    [
        ("0 7 * * 1-5", "2026-11-27T07:00", "2026-11-30T07:00"),
        ("0 7 * * mon-fri", "2026-11-27T06:59", "2026-11-27T07:00"),
        ("*/15 9-17 * * *", "2026-11-26T17:45", "2026-11-27T09:00"),
        ("5/20 * * * *", "2026-11-26T17:05", "2026-11-26T17:25"),
        ("0 0 29 2 *", "2026-11-26T00:00", "2028-02-29T00:00"),
        ("0 0 13 * 5", "2026-11-26T12:00", "2026-11-27T00:00"),  # either a 13th or a Friday
        ("0 0 */10 * 5", "2026-11-28T12:00", "2026-12-11T00:00"),  # both, as one begins with a star
        ("30 4 1 jan,jul 0", "2026-11-26T12:00", "2027-01-01T04:30"),
        ("0 12 * * 7", "2026-11-26T12:00", "2026-11-29T12:00"),
        ("@daily", "2026-11-26T12:00", "2026-11-27T00:00"),
    ],
)
def test_the_next_time_is_the_first_one_after(when: str, after: str, due: str) -> None:
    found = parse_cron(when).find_next_due_time(at(after))
    assert found == at(due)
    assert parse_cron(when).find_latest_due_time(at(after), found) == found
    assert parse_cron(when).find_latest_due_time(at(after), found - timedelta(minutes=1)) is None


def test_of_many_missed_times_the_latest_counts() -> None:
    assert parse_cron("0 7 * * *").find_latest_due_time(
        at("2026-11-01T07:00"), at("2026-11-26T06:59")
    ) == at("2026-11-25T07:00")


WRONG = """
    7 | 0 7 * * | 60 * * * * | * 24 * * * | * * 0 * * | * * * 13 * | * * * * 8 | 5-1 * * * * | */0 * * * * | a * * * *
    | * * * * monday | *-5 * * * * | 1,,2 * * * * | 0 0 31 2 * | @noon
"""


@pytest.mark.parametrize("wrong", ["", *WRONG.split("|")])
def test_what_cron_would_not_take_is_refused(wrong: str) -> None:
    with pytest.raises(UsageProblem):
        parse_cron(wrong)


def test_systemd_is_told_the_same_times() -> None:
    assert parse_cron("0 7 * * 1-5").to_systemd_calendars() == ["Mon,Tue,Wed,Thu,Fri *-*-* 7:0:00"]
    assert parse_cron("*/30 * 1 * *").to_systemd_calendars() == ["*-*-1 *:0,30:00"]
    assert parse_cron("0 0 13 * 5").to_systemd_calendars() == ["*-*-13 0:0:00", "Fri *-*-* 0:0:00"]
