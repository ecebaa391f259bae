"""Measures codeloop in units of a loop of plain Python,
and compares these ratios with those that are stored.

A ratio is the same on a fast and on a slow machine. `ratio-...` divides the CPU of whole processes,
the least of the runs, by that of the loop, which is run in turn with them. `count-...` divides the
instructions of codeloop's own process: it hardly varies, so where it was counted, it alone decides.
Steps are not counted: a counter slows them down so much that what codeloop does by the clock, such
as looking for other processes, would count many times.
"""

import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bench import reference_loop, replay_script
from bench.bench_run import BenchRun
from bench.budgets import COUNT_SUBJECTS, RATIO_SUBJECTS, Budget
from bench.instructions import find_counter
from bench.process_runner import Command, run_interleaved

STORED_FILE = Path(__file__).with_name("ratios.json")
GROWTH = 1.1
"""How much a ratio may grow from the stored one."""
_STEPS = 20
MACHINE_KEY = f"{platform.system()} {platform.machine()}, Python {'.'.join(platform.python_version_tuple()[:2])}"
"""Ratios are compared with those of the same kind of machine and interpreter."""


def measure_ratios(bench: BenchRun) -> None:
    """Measure the CPU of codeloop against that of the loop."""
    commands = _make_commands(bench)
    least = {
        name: min(sample.cpu for sample in samples)
        for name, samples in run_interleaved(commands, bench.rounds).items()
    }
    # A call is what a run takes more with it.
    subjects = {
        "version": least["version"],
        "answer": least["answer"],
        "first-call": least["one"] - least["answer"],
        "step": (least["many"] - least["one"]) / _STEPS,
    }
    for name in RATIO_SUBJECTS:
        bench.put_own(f"ratio-{name}", subjects[name] / least["loop"])


def count_ratios(bench: BenchRun) -> None:
    """Count the instructions of codeloop against those of the loop, where something counts them."""
    counter = find_counter(bench.folder)
    if counter is None:
        return
    commands = _make_commands(bench)
    counts: dict[str, float] = {}
    for name in ("loop", *COUNT_SUBJECTS):
        # The first run fills caches and makes the database.
        counter.count(commands[name])
        counts[name] = counter.count(commands[name])
    for name in COUNT_SUBJECTS:
        bench.put_own(f"count-{name}", counts[name] / counts["loop"])


def _make_commands(bench: BenchRun) -> dict[str, Command]:
    installation = bench.codeloop
    calls = [
        [("bash", {"command": f"echo step {number}", "description": "Says which"})]
        for number in range(_STEPS + 1)
    ]
    scripts = {"answer": [], "one": calls[:1], "many": calls}
    commands = {
        name: installation.fill(
            installation.subject.scripted,
            script=replay_script.write_replay_script(bench.folder / f"ratio-{name}.jsonl", *steps),
        )
        for name, steps in scripts.items()
    }
    loop = Command([sys.executable, "-S", str(reference_loop.__file__)], bench.folder, {})
    return {"loop": loop, "version": installation.fill(installation.subject.version), **commands}


def read_stored(file: Path = STORED_FILE, key: str = MACHINE_KEY) -> dict[str, float]:
    """Return the stored ratios of a kind of machine, by row; none if there are none."""
    stored: dict[str, dict[str, float]] = (
        json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    )
    return stored.get(key, {})


def store(values: Mapping[str, float], file: Path = STORED_FILE, key: str = MACHINE_KEY) -> None:
    """Store the ratios among the figures of a run, by row,
    as those that later runs are compared with.
    """
    stored: dict[str, dict[str, float]] = (
        json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    )
    ratios = {
        name: round(value, 4)
        for name, value in values.items()
        if name.startswith(("ratio-", "count-"))
    }
    stored[key] = {**stored.get(key, {}), **ratios}
    file.write_text(json.dumps(stored, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def set_allowance(budget: Budget, stored: Mapping[str, float]) -> Budget:
    """Return a row of the table, of a ratio with what it may have grown to."""
    return (
        replace(budget, at_most=stored[budget.name] * GROWTH) if budget.name in stored else budget
    )


def list_grown(values: Mapping[str, float], stored: Mapping[str, float]) -> list[str]:
    """Return a line for each ratio among the figures that has grown by more than a tenth.

    The CPU of a busy machine varies by more than that: what was counted is not judged by its CPU.
    """
    counted = {
        f"ratio-{name}"
        for name in COUNT_SUBJECTS
        if {f"count-{name}"} <= values.keys() & stored.keys()
    }
    return [
        f"{name} has grown from {stored[name]:.3g} to {value:.3g} times the loop"
        for name, value in values.items()
        if name in stored and name not in counted and value > stored[name] * GROWTH
    ]
