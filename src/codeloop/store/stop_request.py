"""Requests to stop turns of other processes. A request changes a file, which running turns poll.

There is one file for all sessions, and one for each session.
"""

import asyncio
import os
from pathlib import Path

from codeloop.kit.small_files import read_file_state, write_atomically
from codeloop.schema.bounds.session import STOP_POLL


def get_session_stop_file(stop_file: Path, session_id: str) -> Path:
    """Return the file that asks the turn of one session to stop, next to the file for all sessions."""
    return stop_file.with_name(f"{stop_file.name}-{session_id}")


def request_stop(file: Path) -> None:
    """Ask the turns and subagents that run now and watch this file to stop. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, str(os.getpid()).encode())


async def wait_for_stop(*files: Path) -> None:
    """Return once one of the files changes, which asks the turns that run now to stop."""
    before = [read_file_state(file) for file in files]
    while True:
        await asyncio.sleep(STOP_POLL.seconds)
        if [read_file_state(file) for file in files] != before:
            return
