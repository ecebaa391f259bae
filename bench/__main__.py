"""`python -m bench`: prints the budgets of the design next to what is measured here and now."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import ratios, subjects
from bench.bench_run import BenchRun
from bench.budgets import BUDGETS, Budget, Unit
from bench.suite import run_measurements
from codeloop.kit.remove_tree import temporary_folder

FIGURE_FORMATS: dict[Unit, str] = {
    "ms": "{:,.1f} ms",
    "MB": "{:,.1f} MB",
    "times": "{:.2f} x",
    "bytes": "{:,.0f} bytes",
    "share": "{:.0%}",
    "count": "{:,.0f}",
    "part": "{:.0%}",
}


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; a wrong one ends the program with code 2."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="a row of the table; may be repeated",
    )
    parser.add_argument(
        "--runs", type=int, default=7, metavar="N", help="runs of each command; medians are shown"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument(
        "--against", metavar="COMMAND", help="another agent's command line, with {url} and {prompt}"
    )
    parser.add_argument(
        "--against-env", action="append", default=[], metavar="NAME=VALUE", help="its environment"
    )
    parser.add_argument("--against-name", metavar="NAME", help="what to call it in the table")
    parser.add_argument("--against-version", metavar="COMMAND", help="how it says its version")
    parser.add_argument(
        "--store-ratios",
        action="store_true",
        help="later runs are compared with the ratios of this one",
    )
    options = parser.parse_args(argv)
    names = [budget.name for budget in BUDGETS]
    if unknown := [
        name for name in options.only if not any(is_wanted(budget, [name]) for budget in BUDGETS)
    ]:
        parser.error(f"there is no row {unknown[0]!r}; the rows are: {', '.join(names)}")
    if options.against_env and options.against is None:
        parser.error("--against-env goes with --against")
    if options.runs < 1:
        parser.error("--runs takes a number from 1")
    return options


def is_wanted(budget: Budget, only: Sequence[str]) -> bool:
    """Return whether a row is selected: by its name or by the beginning of it (`answer`
    selects `answer-cpu`, too).
    """
    return not only or any(
        budget.name == name or budget.name.startswith(f"{name}-") for name in only
    )


def make_verdict(budget: Budget, value: float | None) -> str:
    """Return the last column of a row: whether `value` is within its budget."""
    if value is None:
        return "not measured"
    if budget.unit == "share":
        return "ok" if value >= 1 else "OVER"
    if budget.at_most is None:
        return ""
    if value <= budget.at_most:
        return "ok"
    return f"OVER by {value / budget.at_most - 1:.0%}" if budget.at_most else "OVER"


def format_figure(unit: Unit, value: float | None) -> str:
    """Return a figure with its unit; "-" if it was not measured."""
    return "-" if value is None else FIGURE_FORMATS[unit].format(value)


def make_table(
    budgets: Sequence[Budget], subject_names: Sequence[str], values: Mapping[tuple[str, str], float]
) -> str:
    """Return the table as aligned text; the verdict is that of the first subject."""
    rows = [("#", "name", "what", "budget", *subject_names, "verdict")]
    for budget in budgets:
        measured = [values.get((name, budget.name)) for name in subject_names]
        allowed = "all" if budget.unit == "share" else format_figure(budget.unit, budget.at_most)
        figures = [format_figure(budget.unit, value) for value in measured]
        rows.append(
            (
                str(budget.number or ""),
                budget.name,
                budget.description,
                allowed,
                *figures,
                make_verdict(budget, measured[0]),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    # Words are aligned to the left, figures to the right.
    left_columns = {1, 2, len(widths) - 1}
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in left_columns else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def main(argv: Sequence[str]) -> int:
    """Measure and print the table.

    Return the exit code: 1 when a measurement failed or a ratio has grown,
    2 for a wrong command line.
    """
    options = parse_arguments(argv)
    agents = [subjects.make_codeloop()]
    if options.against is not None:
        try:
            agents.append(
                subjects.make_other(
                    options.against,
                    options.against_env,
                    options.against_name,
                    options.against_version,
                )
            )
        except ValueError as error:
            print(error, file=sys.stderr)
            return 2
    stored = ratios.read_stored()
    budgets = [
        ratios.set_allowance(budget, stored)
        for budget in BUDGETS
        if is_wanted(budget, options.only)
    ]
    with temporary_folder("codeloop-bench-") as folder:
        bench = BenchRun(
            [subjects.install_subject(agent, folder) for agent in agents], options.runs, folder
        )
        failures = run_measurements(bench, frozenset(budget.name for budget in budgets))
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}; medians of {options.runs} runs in turn, whole processes")
    print(make_table(budgets, [agent.name for agent in agents], bench.values))
    if options.json:
        figures = {
            agent.name: {
                budget.name: bench.values.get((agent.name, budget.name)) for budget in budgets
            }
            for agent in agents
        }
        allowed = {
            budget.name: {"unit": budget.unit, "at_most": budget.at_most} for budget in budgets
        }
        report = {"machine": machine, "runs": options.runs, "budgets": allowed, "measured": figures}
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    own = {name: value for (agent, name), value in bench.values.items() if agent == agents[0].name}
    grown = ratios.list_grown(own, stored)
    if options.store_ratios:
        ratios.store(own)
        grown = []
    for failure in failures:
        print(f"could not measure: {failure}", file=sys.stderr)
    for line in grown:
        print(f"{line}: find out why, or accept it with --store-ratios", file=sys.stderr)
    return 1 if failures or grown else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
