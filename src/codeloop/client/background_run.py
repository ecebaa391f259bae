"""Starts a run of codeloop that goes on when the terminal is left,
and returns its session as soon as that is known.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.kit.child_process import ChildProcess, Launch
from codeloop.kit.small_files import create_private_folder
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import BACKGROUND_START
from codeloop.schema.wire import DECODE_ERRORS, Wire, replace

BACKGROUND_FOLDER = "background"
"""The folder for logs, in that of the state."""
DETACHED_OPTION = "--detached"
_LOG_SUFFIX = ".jsonl"
_POLL_SECONDS = 0.05
# Logs of earlier runs are removed when a new one begins.
_MAX_LOG_AGE = 30 * 86_400


class _Line(Wire):
    """A line of `--format json`; the last one is of the type `result`."""

    type: str = ""
    session_id: str = msgspec.field(name="sessionID", default="")
    message: str = ""
    exit_code: int = 0


class BackgroundRun(Struct, frozen=True):
    """A run in the background. `session_id`: "" if it ended before it had one;
    `log`: the file with its lines.

    `exit_code`, `message`: how it ended; None: it runs.
    """

    session_id: str
    log: Path
    exit_code: int | None = None
    message: str = ""


def describe_background(session_id: str) -> str:
    """Return lines that say how a run in the background is found again."""
    return (
        f"{session_id} works in the background.\n"
        "`codeloop status` shows how it stands, `codeloop -c` opens it, also to answer its questions.\n"
        f"`codeloop stop {session_id}` stops it."
    )


async def start_background_run(
    arguments: Sequence[str], folder: Path, directory: Path
) -> BackgroundRun:
    """Start `codeloop run` with these arguments in a session of its own,
    and wait until its session is known.

    `folder`: for logs; `directory`: where it works. Raises CodeloopError.
    """
    try:
        create_private_folder(folder)
        _remove_old_logs(folder)
        output, name = tempfile.mkstemp(suffix=_LOG_SUFFIX, dir=folder)
        stdin = {0: sys.stdin.fileno()} if sys.stdin is not None and not sys.stdin.isatty() else {}
        try:
            process = ChildProcess(
                Launch(
                    [
                        sys.executable,
                        "-P",
                        "-m",
                        "codeloop",
                        "run",
                        DETACHED_OPTION,
                        "--format",
                        "json",
                        *arguments,
                    ],
                    directory,
                    os.environ,
                    {1: output, 2: output, **stdin},
                )
            )
        finally:
            os.close(output)
    except OSError as error:
        raise CodeloopError(f"The run could not be started in the background: {error}") from error
    log, deadline = Path(name), time.monotonic() + BACKGROUND_START.seconds
    while time.monotonic() < deadline:
        code = process.exited.result() if process.exited.done() else None
        line = _read_line(log)
        if line.session_id and code is None:
            return BackgroundRun(line.session_id, log)
        if code is not None:
            message = line.message or f"It ended at once: see {log}."
            return BackgroundRun(line.session_id, log, code, message)
        await asyncio.sleep(_POLL_SECONDS)
    await process.end()
    raise CodeloopError(f"The run did not begin within {BACKGROUND_START.seconds:g} s: see {log}.")


def _remove_old_logs(folder: Path) -> None:
    for old in folder.glob(f"*{_LOG_SUFFIX}"):
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > _MAX_LOG_AGE:
                old.unlink()


def _read_line(log: Path) -> _Line:
    """Return the last line of a log, with the session that any line names."""
    line, session_id = _Line(), ""
    for raw in log.read_bytes().splitlines():
        with suppress(*DECODE_ERRORS):
            line = msgspec.json.decode(raw, type=_Line)
            session_id = line.session_id or session_id
    return replace(line, session_id=session_id)
