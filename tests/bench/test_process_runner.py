"""Whole processes are measured as the kernel accounts them."""

import sys
from pathlib import Path

import pytest

from bench.process_runner import (
    Command,
    MeasurementFailed,
    Sample,
    count_imports,
    run_command,
    run_interleaved,
    take_medians,
)


def python(program: str, folder: Path) -> Command:
    return Command([sys.executable, "-S", "-c", program], folder, {})


def test_wall_time_and_cpu_are_told_apart(tmp_path: Path) -> None:
    sample = run_command(python("import time; time.sleep(0.2)", tmp_path))
    assert sample.wall >= 200
    assert sample.cpu < sample.wall - 100


def test_peak_memory_is_that_of_the_largest_process(tmp_path: Path) -> None:
    assert run_command(python("bytearray(200_000_000)", tmp_path)).memory > 200


def test_the_memory_of_the_process_that_measures_is_not_counted(tmp_path: Path) -> None:
    ballast = bytearray(100_000_000)
    assert run_command(python("pass", tmp_path)).memory < 60 < len(ballast) / 1e6


def test_the_environment_is_only_what_is_given(tmp_path: Path) -> None:
    run_command(python("import os, sys; sys.exit('HOME' in os.environ)", tmp_path))


def test_a_command_that_fails_is_shown_with_what_it_printed(tmp_path: Path) -> None:
    with pytest.raises(MeasurementFailed, match=r"(?s)with code 3.*no model"):
        run_command(python("import sys; print('no model'); sys.exit(3)", tmp_path))


def test_the_modules_that_a_program_imports_are_counted(tmp_path: Path) -> None:
    plain, more = (
        count_imports(python(program, tmp_path)) or 0 for program in ("pass", "import graphlib")
    )
    assert 10 < plain < more
    assert count_imports(Command(["true"], tmp_path, {"PATH": "/bin:/usr/bin"})) is None


def test_a_command_that_hangs_is_killed_at_its_deadline(tmp_path: Path) -> None:
    with pytest.raises(MeasurementFailed, match=r"after 0\.1 s"):
        run_command(python("import time; time.sleep(30)", tmp_path), timeout_seconds=0.1)


def test_commands_are_run_in_turn_after_a_round_that_does_not_count(tmp_path: Path) -> None:
    note = "open('order', 'a').write('{}')"
    samples = run_interleaved(
        {name: python(note.format(name), tmp_path) for name in "ab"}, rounds=2
    )
    assert (tmp_path / "order").read_text() == "ababab"
    assert {name: len(found) for name, found in samples.items()} == {"a": 2, "b": 2}


def test_the_median_is_taken_of_each_figure_by_itself() -> None:
    assert take_medians([Sample(1, 30, 5), Sample(3, 10, 6), Sample(2, 20, 70)]) == Sample(2, 20, 6)
