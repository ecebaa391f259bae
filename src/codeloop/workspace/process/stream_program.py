"""Runs a program such as ripgrep, and passes its output to a function until its end, timeout, or enough output."""

import asyncio
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct

from codeloop.schema.bounds.program import PROGRAM_MEMORY
from codeloop.workspace.process.child_process import ChildProcess, Pipe, spawn

_MAX_ERROR_BYTES = 8_192


class ProgramEnd(Struct, frozen=True):
    """The end of a program: its exit code (negative: the signal), the start of its stderr, and why it was stopped."""

    code: int
    stderr: str
    stop_reason: Literal["", "enough", "time"]


async def stream_program(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], feed: Callable[[bytes], bool], seconds: float
) -> ProgramEnd:
    """Run a program until its end, its timeout, or until `feed` returns True for a chunk of output.

    It may use PROGRAM_MEMORY bytes. Raises OSError when it can't be started. It is killed when the caller is cancelled.
    """
    stop_reasons: list[Literal["enough", "time"]] = []
    child: list[ChildProcess] = []
    errors = bytearray()

    def on_output(chunk: bytes) -> None:
        if not stop_reasons and feed(chunk):
            stop_reasons.append("enough")
            child[0].kill()

    def on_error(chunk: bytes) -> None:
        if len(errors) < _MAX_ERROR_BYTES:
            errors.extend(chunk)

    output, errors_pipe = Pipe(on_output), Pipe(on_error)
    try:
        child_process = spawn(
            command, directory=folder, environment=environment, output=output.writer, errors=errors_pipe.writer
        )
        child.append(child_process)
        _limit_memory(child_process.pid)
        output.listen()
        errors_pipe.listen()
        try:
            async with asyncio.timeout(seconds):
                await output.ended
                await errors_pipe.ended
        except TimeoutError:
            stop_reasons.append("time")
            child_process.kill()
        code = await asyncio.shield(child_process.exited)
        return ProgramEnd(code, errors.decode("utf-8", "replace"), stop_reasons[-1] if stop_reasons else "")
    finally:
        for one in child:
            one.kill()
        output.close()
        errors_pipe.close()


def _limit_memory(pid: int) -> None:
    """Limit the memory of a program, without the files that it maps (Linux)."""
    # Elsewhere a limit can be set only from inside the process.
    if sys.platform == "linux":
        # It may have ended already.
        with suppress(OSError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (PROGRAM_MEMORY.value, PROGRAM_MEMORY.value))
