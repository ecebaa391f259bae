"""Running a program for what it prints: handed on as it comes, ended when there is enough of it or its time is over."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from codeloop.workspace.child import Child, Pipe, spawn

_ERRORS = 8_192


class Ended(Struct, frozen=True):
    """How a program ended: its code (negative: the signal), the start of its error output, and why it was ended."""

    code: int
    errors: str
    stopped: Literal["", "enough", "time"]


async def stream(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], feed: Callable[[bytes], bool], seconds: float
) -> Ended:
    """Run a program until its end, its time, or until `feed` says (true) that it has seen enough.

    Raises OSError when it can't be started. When the caller is cancelled, the program is killed.
    """
    stopped: list[Literal["enough", "time"]] = []
    child: list[Child] = []
    errors = bytearray()

    def take(chunk: bytes) -> None:
        if not stopped and feed(chunk):
            stopped.append("enough")
            child[0].kill()

    def complain(chunk: bytes) -> None:
        if len(errors) < _ERRORS:
            errors.extend(chunk)

    output, complaints = Pipe(take), Pipe(complain)
    try:
        started = spawn(
            command, directory=folder, environment=environment, output=output.writer, errors=complaints.writer
        )
        child.append(started)
        output.listen()
        complaints.listen()
        try:
            async with asyncio.timeout(seconds):
                await output.ended
                await complaints.ended
        except TimeoutError:
            stopped.append("time")
            started.kill()
        code = await asyncio.shield(started.exited)
        return Ended(code, errors.decode("utf-8", "replace"), stopped[-1] if stopped else "")
    finally:
        for one in child:
            one.kill()
        output.close()
        complaints.close()
