"""What is counted of handlers: added up among processes, bounded,
and lost rather than in the way.
"""

from pathlib import Path

import pytest

from codeloop.extend.hooks.timings import HookTiming, HookTimings, get_timings_path, read_timings
from codeloop.schema.bounds.extension import HOOK_MEDIAN_SAMPLES, HOOK_TIMINGS
from codeloop.schema.wire import replace

BEFORE = "tool.execute.before"


def test_counts_of_two_processes_add_up(tmp_path: Path) -> None:
    one, other = HookTimings(tmp_path), HookTimings(tmp_path)
    one.record("guard", BEFORE, 1.0, "answered")
    one.record("guard", BEFORE, 3.0, "late")
    other.record("guard", BEFORE, 8.0, "failed")
    other.record("guard", "config", 2.0, "answered")
    one.save()
    one.save()
    other.save()
    found = {row.hook: row for row in read_timings(tmp_path)}
    assert found[BEFORE] == HookTiming("guard", BEFORE, 3, 2, 1, 8.0, [1.0, 3.0, 8.0])
    assert found[BEFORE].median == 3.0
    assert found["config"].calls == 1
    assert get_timings_path(tmp_path).stat().st_mode & 0o777 == 0o600


def test_times_and_rows_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "codeloop.extend.hooks.timings.HOOK_TIMINGS", replace(HOOK_TIMINGS, value=2)
    )
    timings = HookTimings(tmp_path)
    for took in range(HOOK_MEDIAN_SAMPLES.value + 50):
        timings.record("a", BEFORE, float(took), "answered")
    timings.save()
    (row,) = read_timings(tmp_path)
    assert (row.calls, len(row.times), row.times[0]) == (
        HOOK_MEDIAN_SAMPLES.value + 50,
        HOOK_MEDIAN_SAMPLES.value,
        50.0,
    )
    for label in "bc":
        timings.record(label, BEFORE, 1.0, "answered")
    timings.save()
    assert [row.label for row in read_timings(tmp_path)] == ["b", "c"]


def test_a_file_that_is_none_counts_as_empty(tmp_path: Path) -> None:
    get_timings_path(tmp_path).write_text("[{")
    assert read_timings(tmp_path) == []
    get_timings_path(tmp_path).unlink()
    get_timings_path(tmp_path).mkdir()
    timings = HookTimings(tmp_path)
    timings.record("a", BEFORE, 1.0, "answered")
    timings.save()
    assert get_timings_path(tmp_path).is_dir()
    assert read_timings(tmp_path) == []
