"""Finds a port for a server that a test starts later, or starts again at the same one."""

import random
import socket


def find_free_port() -> int:
    """Return a port that nobody uses, below those that the system gives away,
    so that nobody gets it meanwhile.
    """
    while True:
        port = random.SystemRandom().randrange(10_000, 20_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
