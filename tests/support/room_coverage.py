"""Prints which share of each room's lines the tests ran: with `make test COVERAGE=1`,
before pytest's last line.

Only lines that run in the tests' own processes are counted, not those in programs that tests start:
the commands of `cli` are covered better than their row says.
"""

from collections import Counter
from pathlib import Path

import pytest
from coverage import Coverage

ROOT = Path(__file__).parents[2]
PACKAGES = (ROOT / "src" / "codeloop", ROOT / "automation" / "src")


@pytest.hookimpl(trylast=True)  # after pytest-cov has combined what its workers wrote
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print a row for each room, and one for all rooms."""
    coverage = Coverage()
    coverage.load()
    lines: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    for package, file in ((each, file) for each in PACKAGES for file in each.rglob("*.py")):
        _, statements, _, unseen, _ = coverage.analysis2(str(file))
        parts = file.relative_to(package).parts
        for room in ((parts[0] if len(parts) > 1 else "top"), "in all"):
            lines[room] += len(statements)
            missing[room] += len(unseen)
    terminalreporter.section("lines that the tests ran")
    for room, count in sorted(lines.items(), key=lambda row: (row[0] == "in all", row[0])):
        terminalreporter.write_line(
            f"{room:20} {100 * (count - missing[room]) / max(count, 1):5.1f} % of {count:,}"
        )
