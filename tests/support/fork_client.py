"""Has the process behind a socket fork a child that runs a code: `python -I -S fork_client.py
SOCKET CODE ARGUMENT...`.

The child gets the stdin, stdout, stderr, directory and environment of this process. Signals are
passed on to it, and this process ends as the child does. It imports little, since it is started
hundreds of times in place of the program.
"""

import json
import os
import signal
import socket
import sys
from contextlib import suppress

FORWARDED_SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGWINCH,
    signal.SIGUSR1,
)


def main() -> None:
    """Request the child, pass signals on to it, and end as it does."""
    _, where, code, *argv = sys.argv
    # They wait until the child is known: one that comes before would end this process,
    # and the child by SIGKILL.
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED_SIGNALS)
    asked = json.dumps(
        {"code": code, "argv": argv, "cwd": os.path.realpath("."), "env": dict(os.environ)}
    ).encode()
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(where)
        socket.send_fds(channel, [len(asked).to_bytes(4, "big")], [0, 1, 2])
        channel.sendall(asked)
        pid = receive_number(channel)

        def forward(number: int, _: object) -> None:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, number)

        for each in FORWARDED_SIGNALS:
            if signal.getsignal(each) != signal.SIG_IGN:
                signal.signal(each, forward)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED_SIGNALS)
        code = receive_number(channel)
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


def receive_number(channel: socket.socket) -> int:
    """Return the next number that the channel receives."""
    said = channel.recv(4, socket.MSG_WAITALL)
    if len(said) < 4:
        sys.exit("the process that has the program loaded is gone")
    return int.from_bytes(said, "big", signed=True)


main()
