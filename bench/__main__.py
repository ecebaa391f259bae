"""`python -m bench`: prints the budgets of the design next to what is measured here and now."""

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import subject
from bench.budgets import BUDGETS, Budget, Unit
from bench.figures import Bench
from bench.suite import measure

FORMATS: dict[Unit, str] = {
    "ms": "{:,.1f} ms",
    "MB": "{:,.1f} MB",
    "times": "{:.2f} x",
    "bytes": "{:,.0f} bytes",
    "share": "{:.0%}",
    "count": "{:,.0f}",
    "part": "{:.0%}",
}


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line; ends the program with code 2 when it is wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="a row of the table; may be repeated"
    )
    parser.add_argument("--runs", type=int, default=7, metavar="N", help="runs of each command; medians are shown")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--against", metavar="COMMAND", help="another agent's command line, with {url} and {prompt}")
    parser.add_argument("--against-env", action="append", default=[], metavar="NAME=VALUE", help="its environment")
    parser.add_argument("--against-name", metavar="NAME", help="what to call it in the table")
    parser.add_argument("--against-version", metavar="COMMAND", help="how it says its version")
    options = parser.parse_args(argv)
    names = [budget.name for budget in BUDGETS]
    if unknown := [name for name in options.only if not any(wanted(budget, [name]) for budget in BUDGETS)]:
        parser.error(f"there is no row {unknown[0]!r}; the rows are: {', '.join(names)}")
    if options.against_env and options.against is None:
        parser.error("--against-env goes with --against")
    if options.runs < 1:
        parser.error("--runs takes a number from 1")
    return options


def wanted(budget: Budget, only: Sequence[str]) -> bool:
    """Say whether a row is asked for: by its name, or with the row that it adds to (`answer` brings `answer-cpu`)."""
    return not only or any(budget.name == name or budget.name.startswith(f"{name}-") for name in only)


def verdict(budget: Budget, value: float | None) -> str:
    """Say in a word or two whether `value` is within its budget."""
    if value is None:
        return "not measured"
    if budget.unit == "share":
        return "ok" if value >= 1 else "OVER"
    if budget.at_most is None:
        return ""
    return "ok" if value <= budget.at_most else f"OVER by {value / budget.at_most - 1:.0%}"


def shown(unit: Unit, value: float | None) -> str:
    """Return a figure with its unit, "-" for none."""
    return "-" if value is None else FORMATS[unit].format(value)


def table(budgets: Sequence[Budget], subjects: Sequence[str], values: Mapping[tuple[str, str], float]) -> str:
    """Return the aligned table; the verdict is on the first subject."""
    rows = [("#", "name", "what", "budget", *subjects, "verdict")]
    for budget in budgets:
        found = [values.get((name, budget.name)) for name in subjects]
        allowed = "all" if budget.unit == "share" else shown(budget.unit, budget.at_most)
        figures = [shown(budget.unit, value) for value in found]
        rows.append((str(budget.number or ""), budget.name, budget.what, allowed, *figures, verdict(budget, found[0])))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    left = {1, 2, len(widths) - 1}
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def main(argv: Sequence[str]) -> int:
    """Measure and print. Gives 0, or 1 when something that was to be measured did not run."""
    options = arguments(argv)
    subjects = [subject.codeloop()]
    if options.against is not None:
        try:
            subjects.append(
                subject.another(options.against, options.against_env, options.against_name, options.against_version)
            )
        except ValueError as error:
            print(error, file=sys.stderr)
            return 2
    budgets = [budget for budget in BUDGETS if wanted(budget, options.only)]
    with tempfile.TemporaryDirectory(prefix="codeloop-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        bench = Bench([subject.place(one, folder) for one in subjects], options.runs, folder)
        failures = measure(bench, frozenset(budget.name for budget in budgets))
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}; medians of {options.runs} runs in turn, whole processes")
    print(table(budgets, [one.name for one in subjects], bench.values))
    if options.json:
        figures = {one.name: {b.name: bench.values.get((one.name, b.name)) for b in budgets} for one in subjects}
        allowed = {budget.name: {"unit": budget.unit, "at_most": budget.at_most} for budget in budgets}
        report = {"machine": machine, "runs": options.runs, "budgets": allowed, "measured": figures}
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    for failure in failures:
        print(f"could not measure: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
