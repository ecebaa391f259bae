"""Starts one program, and writes its time and memory to the descriptor that
the first argument names.

The kernel counts the memory of the starting process into the peak of the started one, which holds
it until it has loaded its own program. The bench, with its servers and samples, is larger than
codeloop; this program has 9 MB when it is run with `python -I -S`.

The line that it writes: wall time, user and system time (seconds), peak memory (KiB;
macOS: bytes), wait status.
"""

import os
import sys
import time


def main() -> None:
    """Run the program of the second and further arguments to its end."""
    inherited, argv = int(sys.argv[1]), sys.argv[2:]
    # The duplicate is not inherited: a process that the program leaves running
    # would keep the pipe open.
    report = os.dup(inherited)
    os.close(inherited)
    started = time.perf_counter()
    pid = os.posix_spawnp(argv[0], argv, os.environ)
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - started
    os.write(
        report, f"{wall} {usage.ru_utime + usage.ru_stime} {usage.ru_maxrss} {status}".encode()
    )


if __name__ == "__main__":
    main()
