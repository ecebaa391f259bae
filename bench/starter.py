"""Starts one program, and writes what it took to the descriptor that the first argument names.

A process that is started is accounted the peak memory of the one that starts it, until it has loaded its own program:
the bench, with its servers and samples, is larger than codeloop. This one has 9 MB. Run with `python -I -S`.

The line that it writes: wall time, user and system time (seconds), peak memory (KiB; macOS: bytes), wait status.
"""

import os
import sys
import time


def main() -> None:
    """Run the program of the second and further arguments to its end."""
    given, argv = int(sys.argv[1]), sys.argv[2:]
    report = os.dup(given)  # one that is not inherited: what the program leaves behind would keep it open
    os.close(given)
    started = time.perf_counter()
    pid = os.posix_spawnp(argv[0], argv, os.environ)
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - started
    os.write(report, f"{wall} {usage.ru_utime + usage.ru_stime} {usage.ru_maxrss} {status}".encode())


if __name__ == "__main__":
    main()
