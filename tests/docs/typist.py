"""`python typist.py LINES COMMAND...`: run a command on a terminal and type a line
(joined by `|`) at each question.
"""

import os
import pty
import re
import sys

QUESTION = re.compile(rb"[:?>\]] ?$")


def main() -> None:
    """Run the command and end with its exit code."""
    lines = sys.argv[1].split("|")
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(sys.argv[2], sys.argv[2:])
    shown = b""
    while True:
        try:
            data = os.read(terminal, 65_536)
        except OSError:  # Linux says so when the other side has closed
            break
        if not data:
            break
        sys.stdout.buffer.write(data.replace(b"\r\n", b"\n"))
        sys.stdout.buffer.flush()
        shown += data
        if lines and QUESTION.search(shown):
            os.write(terminal, lines.pop(0).encode() + b"\n")
            shown = b""
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    main()
