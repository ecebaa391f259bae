"""Runs a parser of untrusted data (a web page, a schema) in its own process, which is killed at its deadline."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from codeloop.kit.run_program import kill_program, start_program
from codeloop.schema.installation import check_package_file


class BoundedRunResult(Struct, frozen=True):
    """The result of a run: the lines that the program wrote.

    `is_late`: it was ended at the deadline, or by the limit of processor time that it has set itself. `has_failed`: its
    exit code was not 0.
    """

    lines: tuple[bytes, ...]
    is_late: bool = False
    has_failed: bool = False


async def run_bounded_program(
    program: Path,
    arguments: Sequence[object],
    data: bytes,
    environment: Mapping[str, str],
    seconds: float,
    max_line_bytes: int,
) -> BoundedRunResult:
    """Run a Python program with `data` on its stdin, for at most `seconds`, and return its output.

    A line longer than `max_line_bytes` ends the reading.
    """
    process = await start_program(
        (sys.executable, "-I", str(check_package_file(program)), *map(str, arguments)),
        environment=environment,
        stderr=asyncio.subprocess.DEVNULL,
        limit_bytes=max_line_bytes,
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
        await kill_program(process)
    return BoundedRunResult(tuple(lines), is_late or process.returncode == -signal.SIGXCPU, process.returncode != 0)


async def _exchange(process: asyncio.subprocess.Process, data: bytes) -> AsyncIterator[bytes]:
    """Write the data to the program, then yield the lines of its output."""
    if process.stdin is None or process.stdout is None:
        return
    # The program may end before it has read everything.
    with suppress(ConnectionError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()
    # `readline` raises ValueError for a line beyond the limit.
    with suppress(ValueError):
        while line := await process.stdout.readline():
            yield line
