"""Starts a run of codeloop that goes on when the terminal is left, and returns its session as soon as that is known."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from codeloop.kit.small_files import create_private_folder
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import BACKGROUND_START
from codeloop.schema.wire import DECODE_ERRORS, Wire

BACKGROUND_FOLDER = "background"
"""The folder for logs, in that of the state."""
DETACHED_OPTION = "--detached"
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
    """A run in the background. `session_id`: "" if it ended before it had one; `log`: the file with its lines.

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


def start_background_run(arguments: Sequence[str], folder: Path, directory: Path) -> BackgroundRun:
    """Start `codeloop run` with these arguments in a session of its own, and wait until its session is known. Blocks.

    `folder`: for logs; `directory`: where it works. Raises CodeloopError.
    """
    try:
        log = _make_log(folder)
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "codeloop", "run", DETACHED_OPTION, "--format", "json", *arguments],
                cwd=directory,
                stdin=subprocess.DEVNULL if sys.stdin is None or sys.stdin.isatty() else None,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    except OSError as error:
        raise CodeloopError(f"The run could not be started in the background: {error}") from error
    deadline = time.monotonic() + BACKGROUND_START.seconds
    while time.monotonic() < deadline:
        code = process.poll()
        line = _read_line(log)
        if line.session_id and (line.type != "result" or code is not None):
            is_over = line.type == "result" and code is not None
            return BackgroundRun(line.session_id, log, code if is_over else None, line.message if is_over else "")
        if code is not None:
            return BackgroundRun("", log, code or 1, line.message or f"It ended at once: see {log}.")
        time.sleep(_POLL_SECONDS)
    process.terminate()
    raise CodeloopError(f"The run did not begin within {BACKGROUND_START.seconds:g} s: see {log}.")


def _make_log(folder: Path) -> Path:
    create_private_folder(folder)
    now = time.time()
    for old in folder.glob("*.jsonl"):
        with suppress(OSError):
            if now - old.stat().st_mtime > _MAX_LOG_AGE:
                old.unlink()
    log = folder / f"{time.time_ns()}-{os.getpid()}.jsonl"
    log.touch(mode=0o600)
    return log


def _read_line(log: Path) -> _Line:
    """Return the first line that names the session, else the last one."""
    line = _Line()
    for raw in log.read_bytes().splitlines():
        with suppress(*DECODE_ERRORS):
            line = msgspec.json.decode(raw, type=_Line)
            if line.session_id:
                return line
    return line
