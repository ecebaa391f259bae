"""The request to stop all turns: a file watched by every process of this user that runs a session."""

import asyncio
import os
from pathlib import Path

from codeloop.kit.small_files import write_atomically
from codeloop.schema.bounds.session import STOP_LOOK


def request_stop(file: Path) -> None:
    """Ask every turn and subagent that runs now to stop. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, str(os.getpid()).encode())


async def wait_for_stop(file: Path) -> None:
    """Wait until it is asked that what runs since now stop."""
    before = _stamp(file)
    while True:
        await asyncio.sleep(STOP_LOOK.seconds)
        if _stamp(file) != before:
            return


def _stamp(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_ino
