"""Which examples a property is tried with: the same ones in every run, or random ones, and many, under `make fuzz`."""

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("CODELOOP_FUZZ", "0"))
"""How many times as many examples as in a usual run, drawn at random; 0: a usual run."""

_TIMED = [HealthCheck.too_slow]
SHARES_A_FIXTURE = [*_TIMED, HealthCheck.function_scoped_fixture]
"""Health checks that a property does without whose examples share one fixture on purpose."""


def examples(count: int) -> int:
    """Return how many examples to try where a usual run tries `count`."""
    return count * max(TIMES, 1)


def choose_examples() -> None:
    """Set what hypothesis draws, so that a commit has one verdict: nothing is random, and no time is measured."""
    untimed = settings(deadline=None, suppress_health_check=_TIMED)
    settings.register_profile("same", untimed, derandomize=True, database=None)
    settings.register_profile("fuzz", untimed, max_examples=examples(100), print_blob=True)
    settings.load_profile("fuzz" if TIMES else "same")
