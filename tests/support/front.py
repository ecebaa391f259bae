"""`python -I -S front.py SOCKET CODE ARGUMENT...`: have the process behind the socket fork a child that runs the code.

The child has this one's stdin, stdout and stderr, directory and environment. Signals are handed on to it, and this
process ends as the child does. It imports little, since it stands in for a program that is started hundreds of times.
"""

import json
import os
import signal
import socket
import sys

HANDED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGWINCH, signal.SIGUSR1)


def main() -> None:
    """Ask for the child, and be it as far as anybody can see."""
    _, where, code, *argv = sys.argv
    asked = json.dumps({"code": code, "argv": argv, "cwd": os.path.realpath("."), "env": dict(os.environ)}).encode()
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(where)
        socket.send_fds(channel, [len(asked).to_bytes(4, "big")], [0, 1, 2])
        channel.sendall(asked)
        pid = number_from(channel)
        for each in HANDED_ON:
            if signal.getsignal(each) != signal.SIG_IGN:
                signal.signal(each, lambda number, _frame: os.kill(pid, number))
        code = number_from(channel)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


def number_from(channel: socket.socket) -> int:
    """Return the next number that is said."""
    said = channel.recv(4, socket.MSG_WAITALL)
    if len(said) < 4:
        sys.exit("the process that has the program loaded is gone")
    return int.from_bytes(said, "big", signed=True)


main()
