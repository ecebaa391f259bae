"""Runs a program and streams its output to a function, until its end, its timeout, or enough output."""

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

_ERRORS = 8_192


class ProgramResult(Struct, frozen=True):
    """How a program ended: its code (negative: the signal), the start of its error output, and why it was ended."""

    code: int
    errors: str
    stopped: Literal["", "enough", "time"]


async def run_program(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], feed: Callable[[bytes], bool], seconds: float
) -> ProgramResult:
    """Run a program until its end, its timeout, or until `feed` returns True.

    It may take PROGRAM_MEMORY bytes. Raises OSError when it can't be started. A caller that is cancelled kills it.
    """
    stopped: list[Literal["enough", "time"]] = []
    child: list[ChildProcess] = []
    errors = bytearray()

    def take(chunk: bytes) -> None:
        if not stopped and feed(chunk):
            stopped.append("enough")
            child[0].kill()

    def on_error(chunk: bytes) -> None:
        if len(errors) < _ERRORS:
            errors.extend(chunk)

    output, errors_pipe = Pipe(take), Pipe(on_error)
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
            stopped.append("time")
            child_process.kill()
        code = await asyncio.shield(child_process.exited)
        return ProgramResult(code, errors.decode("utf-8", "replace"), stopped[-1] if stopped else "")
    finally:
        for one in child:
            one.kill()
        output.close()
        errors_pipe.close()


def _limit_memory(pid: int) -> None:
    """Bound what a program keeps in memory of its own; files that it maps to read them do not count."""
    if sys.platform == "linux":  # elsewhere a limit can be set only from inside the process
        with suppress(OSError):  # it has ended already
            resource.prlimit(pid, resource.RLIMIT_DATA, (PROGRAM_MEMORY.value, PROGRAM_MEMORY.value))
