"""Runs our parsers of untrusted data, each in a process of its own that is killed at its deadline."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct


class BoundedRun(Struct, frozen=True):
    """The lines that were written.

    `is_late`: it was ended at the deadline, or by a limit of processor time that it has set itself. `failed`: it did
    not end with 0.
    """

    lines: tuple[bytes, ...]
    is_late: bool = False
    failed: bool = False


async def run_bounded(
    program: Path,
    arguments: Sequence[object],
    data: bytes,
    environment: Mapping[str, str],
    seconds: float,
    longest: int,
) -> BoundedRun:
    """Run a program of Python on `data` and return what it writes; a line longer than `longest` bytes ends it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(program), *map(str, arguments)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=dict(environment),
        cwd="/",
        start_new_session=True,
        limit=longest,
    )
    lines = list[bytes]()
    is_late = False
    try:
        async with asyncio.timeout(max(seconds, 0)):
            async for line in _exchange(process, data):
                lines.append(line)
            await process.wait()
    except TimeoutError:
        is_late = True
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return BoundedRun(tuple(lines), is_late or process.returncode == -signal.SIGXCPU, process.returncode != 0)


async def _exchange(process: asyncio.subprocess.Process, data: bytes) -> AsyncIterator[bytes]:
    if process.stdin is None or process.stdout is None:
        return
    with suppress(ConnectionError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()
    with suppress(ValueError):  # an endless line ends the reading
        while line := await process.stdout.readline():
            yield line
