"""`python without_sandbox.py [--landlock] COMMAND...`: runs a command where no sandbox is available, for `make bare`.

It is as in a container without namespaces and Landlock. With `--landlock`, only Landlock is available.
"""

import os
import sys
from collections.abc import Sequence
from ctypes import addressof, create_string_buffer
from struct import pack

from codeloop.workspace.sandbox.launcher.libc import call_libc
from codeloop.workspace.sandbox.launcher.seccomp import filter_calls

_LANDLOCK_CALL = 444
"""The number of the first of its three system calls, on every processor."""
_ENOSYS = 38
_REFUSE_LANDLOCK = (
    (0x20, 0, 0, 0),
    (0x35, 0, 2, _LANDLOCK_CALL),
    (0x35, 1, 0, _LANDLOCK_CALL + 3),
    (0x06, 0, 0, 0x00050000 | _ENOSYS),
)
_ALLOW_CALL = (0x06, 0, 0, 0x7FFF0000)


def main(command: Sequence[str]) -> None:
    """Make the kernel refuse namespaces, mounts and perhaps Landlock, then replace this process by the command."""
    if not filter_calls(unix=True, internet=True, truncate=True):
        raise SystemExit("without_sandbox: the system calls of this processor are not known")
    if command[0] == "--landlock":
        os.execvp(command[1], list(command[1:]))
    program = create_string_buffer(b"".join(pack("=HBBI", *each) for each in (*_REFUSE_LANDLOCK, _ALLOW_CALL)))
    call_libc("prctl", 22, 2, pack("@HP", len(_REFUSE_LANDLOCK) + 1, addressof(program)), 0, 0)
    os.execvp(command[0], list(command))


if __name__ == "__main__":
    main(sys.argv[1:])
