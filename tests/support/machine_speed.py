"""How fast this machine is, for the few tests that bound a time: a core may be slow,
or shared with other machines.
"""

import time

REFERENCE_SECONDS = 0.05
"""CPU seconds in which the reference machine, for which the tests' limits are meant,
adds up a million squares.
"""


def measure_slowness() -> float:
    """Return how many times as long as the machine of `COUNTING` this one takes now, at least 1."""
    begun = time.process_time()
    sum(number * number for number in range(1_000_000))
    return max(1.0, (time.process_time() - begun) / REFERENCE_SECONDS)
