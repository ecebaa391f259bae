"""Chooses the examples of properties: the same in every run, or with `make fuzz`,
many random ones.
"""

import os

from hypothesis import HealthCheck, settings

FUZZ_FACTOR = int(os.environ.get("CODELOOP_FUZZ", "0"))
"""The factor by which `make fuzz` tries more examples; 0: a usual run."""

_TIMED_CHECKS = [HealthCheck.too_slow]
SHARED_FIXTURE_CHECKS = [*_TIMED_CHECKS, HealthCheck.function_scoped_fixture]
"""Health checks to suppress for a property whose examples share one fixture on purpose."""


def scale_examples(count: int) -> int:
    """Return how many examples to try of a property for which a usual run tries `count`."""
    return count * max(FUZZ_FACTOR, 1)


def configure_hypothesis() -> None:
    """Configure hypothesis. In a usual run nothing is random or timed,
    so that all runs of a commit agree.
    """
    untimed = settings(deadline=None, suppress_health_check=_TIMED_CHECKS)
    settings.register_profile("same", untimed, derandomize=True, database=None)
    settings.register_profile("fuzz", untimed, max_examples=scale_examples(100), print_blob=True)
    settings.load_profile("fuzz" if FUZZ_FACTOR else "same")
