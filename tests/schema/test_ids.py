"""Ids: prefix, time, order, uniqueness."""

import re

import pytest

from codeloop.schema import ids
from codeloop.schema.ids import Clock, is_id, new_id, now_ms

SHAPE = re.compile(r"[a-z]+_[0-9a-f]{12}[0-9A-Za-z]{14}")


@pytest.mark.parametrize("prefix", ["ses", "msg", "prt", "evt", "per", "que", "pty", "tool"])
def test_an_id_has_its_prefix_twelve_hex_digits_and_fourteen_characters(prefix: ids.Prefix) -> None:
    made = new_id(prefix)
    assert SHAPE.fullmatch(made)
    assert made.startswith(f"{prefix}_")
    assert is_id(made, prefix)
    assert not is_id("x" + made, prefix)


def test_the_hex_digits_are_the_low_bits_of_the_time_and_a_counter() -> None:
    before = now_ms()
    stamp = int(new_id("msg")[4:16], 16)
    after = now_ms()
    assert before & 0xFFFFFFFFF <= stamp >> 12 <= (after & 0xFFFFFFFFF) + 1
    assert stamp & 0xFFF >= 1


def test_ids_sort_by_creation_and_sessions_the_other_way_round() -> None:
    made = [new_id("prt") for _ in range(10_000)]
    assert made == sorted(made)
    sessions = [new_id("ses") for _ in range(10_000)]
    assert sessions == sorted(sessions, reverse=True)


@pytest.mark.slow
def test_a_hundred_thousand_ids_are_all_different() -> None:
    made = {new_id("evt") for _ in range(100_000)}
    assert len(made) == 100_000
    assert len({one[16:] for one in made}) == 100_000, "the random tails differ as well"


def test_stamps_still_rise_when_the_wall_clock_steps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([5_000, 5_000, 1_000, 999, 5_001, 2])
    monkeypatch.setattr(ids, "now_ms", lambda: next(times))
    clock = Clock()
    stamps = [clock.stamp() for _ in range(6)]
    assert stamps == sorted(set(stamps))
    assert stamps[0] == 5_000 * 4096 + 1
    assert stamps[4] == 5_001 * 4096 + 1
