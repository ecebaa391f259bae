"""Ratios to a loop of plain Python, which are compared with stored ones."""

import sys
from pathlib import Path

import pytest

from bench import ratios, reference_loop
from bench.budgets import BUDGETS
from bench.instructions import find_counter
from bench.process_runner import Command, MeasurementFailed

STORED = {"count-answer": 2.0, "ratio-answer": 3.0, "ratio-step": 0.4}


@pytest.mark.parametrize(
    ("values", "grown"),
    [
        ({"count-answer": 2.19, "ratio-step": 0.43}, []),
        ({"count-answer": 2.21}, ["count-answer has grown from 2 to 2.21 times the loop"]),
        # The CPU of a busy machine says nothing where instructions were counted.
        ({"count-answer": 2.0, "ratio-answer": 9.0}, []),
        ({"ratio-answer": 9.0}, ["ratio-answer has grown from 3 to 9 times the loop"]),
        (
            {"count-answer": 2.0, "ratio-step": 0.5},
            ["ratio-step has grown from 0.4 to 0.5 times the loop"],
        ),
        ({"count-version": 9.0, "ratio-version": 9.0}, []),
        ({"version": 900.0, "step": 900.0}, []),
    ],
)
def test_a_ratio_that_grew_by_more_than_a_tenth_is_named(
    values: dict[str, float], grown: list[str]
) -> None:
    assert ratios.list_grown(values, STORED) == grown


def test_the_stored_ratios_are_the_budgets_of_their_rows() -> None:
    budgets = [ratios.set_allowance(budget, {"ratio-step": 2.0}) for budget in BUDGETS]
    changed = [new for new, old in zip(budgets, BUDGETS, strict=True) if new != old]
    assert [(each.name, each.at_most) for each in changed] == [("ratio-step", pytest.approx(2.2))]


def test_only_ratios_are_stored_and_for_one_kind_of_machine(tmp_path: Path) -> None:
    file = tmp_path / "ratios.json"
    ratios.store({"count-step": 0.12345, "ratio-step": 2.0, "step": 8.0}, file, "one")
    ratios.store({"count-step": 0.2}, file, "one")
    ratios.store({"count-step": 9.0}, file, "other")
    assert ratios.read_stored(file, "one") == {"count-step": 0.2, "ratio-step": 2.0}
    assert ratios.read_stored(file, "other") == {"count-step": 9.0}
    assert ratios.read_stored(file, "third") == ratios.read_stored(tmp_path / "none", "one") == {}


def test_what_is_stored_are_rows_of_the_table() -> None:
    assert ratios.read_stored().keys() <= {budget.name for budget in BUDGETS}


def test_the_loop_does_always_the_same() -> None:
    assert (
        reference_loop.run_loop(1_000)
        == reference_loop.run_loop(1_000)
        > reference_loop.run_loop(999)
    )


def test_without_perf_and_valgrind_nothing_is_counted(tmp_path: Path) -> None:
    assert find_counter(tmp_path, str(tmp_path)) is None


@pytest.mark.slow
def test_instructions_are_those_of_the_program_and_repeat(tmp_path: Path) -> None:
    counter = find_counter(tmp_path)
    if counter is None:
        pytest.skip("neither perf nor valgrind counts here")

    def count(program: str) -> int:
        return counter.count(Command([sys.executable, "-S", "-c", program], tmp_path, {}))

    work = "for each in range(1_000_000): pass"
    idle, busy = count("pass"), count(work)
    assert busy > idle + 5_000_000
    assert abs(count(work) - busy) < 0.02 * busy
    assert (
        count(
            f"import os; os.waitpid(os.posix_spawn({sys.executable!r}, ['python', '-c', {work!r}], {{}}), 0)"
        )
        < busy
    )
    with pytest.raises(MeasurementFailed):
        count("raise SystemExit(3)")
