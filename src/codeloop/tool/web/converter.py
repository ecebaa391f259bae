"""Runs a program that turns a hostile document into text; it may be ended at any time, and is at its deadline."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct


class Conversion(Struct, frozen=True):
    """The lines that were written until the end. `late`: it was ended at the deadline; `failed`: it ended by itself."""

    lines: tuple[bytes, ...]
    late: bool = False
    failed: bool = False


async def converted(
    program: str, arguments: Sequence[object], data: bytes, environment: Mapping[str, str], seconds: float, longest: int
) -> Conversion:
    """Run a program on `data` and return what it writes; a line longer than `longest` bytes ends it.

    `program`: its path, or its name in this folder.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(Path(__file__).parent / program), *map(str, arguments)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=dict(environment),
        cwd="/",
        start_new_session=True,
        limit=longest,
    )
    lines = list[bytes]()
    late = False
    try:
        async with asyncio.timeout(max(seconds, 0)):
            async for line in _exchanged(process, data):
                lines.append(line)
            await process.wait()
    except TimeoutError:
        late = True
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return Conversion(tuple(lines), late, process.returncode != 0)


async def _exchanged(process: asyncio.subprocess.Process, data: bytes) -> AsyncIterator[bytes]:
    if process.stdin is None or process.stdout is None:
        return
    with suppress(ConnectionError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()
    with suppress(ValueError):  # an endless line ends the reading
        while line := await process.stdout.readline():
            yield line
