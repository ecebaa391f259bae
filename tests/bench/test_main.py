"""The table: budget, measured, verdict; and the command line that asks for it."""

import pytest

from bench.__main__ import main, make_table, make_verdict, parse_arguments
from bench.budgets import BUDGETS, Budget
from bench.suite import MEASUREMENTS

STEP = Budget("step", 3, "one more step", "ms", 8)


def test_every_row_of_the_table_is_measured_by_one_function() -> None:
    measured = [name for names in MEASUREMENTS.values() for name in names]
    assert sorted(measured) == sorted(budget.name for budget in BUDGETS)


@pytest.mark.parametrize(
    ("budget", "value", "word"),
    [
        (STEP, 8.0, "ok"),
        (STEP, 12.0, "OVER by 50%"),
        (STEP, None, "not measured"),
        (Budget("http", 2, "run", "ms"), 5.0, ""),
        (Budget("prefix", 8, "prefix", "share"), 1.0, "ok"),
        (Budget("prefix", 8, "prefix", "share"), 0.99, "OVER"),
    ],
)
def test_a_verdict_compares_with_the_budget(budget: Budget, value: float | None, word: str) -> None:
    assert make_verdict(budget, value) == word


def test_the_table_is_aligned_and_shows_every_subject() -> None:
    lines = make_table(
        [STEP], ["codeloop", "other"], {("codeloop", "step"): 7.25, ("other", "step"): 1234.5}
    ).splitlines()
    assert lines[1].split() == [
        "3",
        "step",
        "one",
        "more",
        "step",
        "8.0",
        "ms",
        "7.2",
        "ms",
        "1,234.5",
        "ms",
        "ok",
    ]
    assert lines[0].index("other") + len("other") == lines[1].index("1,234.5 ms") + len(
        "1,234.5 ms"
    )


@pytest.mark.parametrize("argv", [["--only", "nonsense"], ["--runs", "0"], ["--against-env", "A"]])
def test_a_wrong_command_line_ends_with_2(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_arguments(argv)
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_an_empty_comparison_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "version", "--against", " "]) == 2
    assert "--against" in capsys.readouterr().err
