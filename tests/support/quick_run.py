"""Options of pytest for `make quick`, for the processes that run its tests: no slow tests,
and none after its time.

A test that is passed over is reported with the property `LEFT`, for the process that prints.
(PYTEST_DONT_REWRITE: `scripts/run_changed_tests.py` imports it before pytest does,
and asserts nothing.)
"""

import time

import pytest

LEFT = ("left for time", "")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options."""
    group = parser.getgroup("make quick")
    group.addoption(
        "--quick-seconds",
        type=float,
        default=20.0,
        help="start no test later than this after the first",
    )
    group.addoption(
        "--quick-whole",
        default="",
        help="files, separated by spaces, of which slow tests run as well",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the slow tests, but for those of the files that are run whole."""
    whole = tuple(str(config.getoption("quick_whole")).split())
    slow = [
        item
        for item in items
        if item.get_closest_marker("slow") and not item.nodeid.startswith(whole)
    ]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in slow]


class Deadline:
    """Passes over the tests that would start after the time."""

    def __init__(self, seconds: float) -> None:
        """Take the time in seconds; it runs from the first test."""
        self._seconds = seconds
        self._end: float | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Report a test as left once the time is over."""
        now = time.monotonic()
        self._end = self._end or now + self._seconds
        if now < self._end:
            return None
        report = pytest.TestReport(
            item.nodeid, item.location, {}, "skipped", None, "call", user_properties=[LEFT]
        )
        item.ihook.pytest_runtest_logreport(report=report)
        return True


def pytest_configure(config: pytest.Config) -> None:
    """Watch the time in each process that runs tests."""
    config.pluginmanager.register(Deadline(float(str(config.getoption("quick_seconds")))))
