"""Questions at the terminal, and what answers them when there is none."""

import asyncio
import os
import sys

from codeloop.cli.view import Output, View
from codeloop.client.client import Client
from codeloop.kit.plain import inert
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import PERMISSION_REPLY
from codeloop.schema.rules import PermissionRequest

NOBODY = "Nobody is there to answer, so this was refused. Find another way or say in your answer what you could not do."


class Answerer:
    """Answers permission questions: yes to all with `auto`, at the terminal when there is one, else no."""

    def __init__(self, terminal: Output | None, *, auto: bool) -> None:
        self._terminal = terminal
        self._auto = auto
        self._turn = asyncio.Lock()
        self.refused = 0

    async def answer(self, client: Client, view: View, request: PermissionRequest) -> None:
        """Answer one question; one is asked at a time, and one that another client answered is passed over."""
        reply, message = "once", None
        if not self._auto and self._terminal is None:
            self.refused += 1
            what = inert(f"{request.permission} {', '.join(request.patterns)}")
            view.note(f"Refused, since nobody is there to ask: {what}")
            reply, message = "reject", NOBODY
        elif not self._auto and self._terminal is not None:
            async with self._turn:
                reply, message = await ask(self._terminal, view, request)
        try:
            await client.call(PERMISSION_REPLY, request_id=request.id, reply=reply, message=message)
        except OperationError as error:
            if error.kind != "PermissionNotFoundError":
                raise


NAMED = ("command", "filepath", "tool")
"""What of a question's metadata names the thing itself."""


async def ask(terminal: Output, view: View, request: PermissionRequest) -> tuple[str, str | None]:
    """Show a question and read the answer: yes, always, no, or words for the model."""
    named = [request.metadata.get(key) for key in NAMED]
    what = [*request.patterns, *(name for name in named if isinstance(name, str) and name not in request.patterns)]
    view.note(f"Allow {request.permission}?\n" + "\n".join(f"  {inert(line)}" for line in what))
    diff = request.metadata.get("diff")
    if isinstance(diff, str) and diff:
        terminal.write(inert(diff).rstrip() + "\n")
    always = f", a = always ({inert(', '.join(request.always))})" if request.always else ""
    while True:
        terminal.write(f"y = yes{always}, n = no, or say what to do instead: ")
        line = await read_line()
        if line is None:
            return "reject", None
        match line.strip().lower():
            case "y" | "yes":
                return "once", None
            case "a" | "always" if request.always:
                return "always", None
            case "n" | "no":
                return "reject", None
            case "":
                continue
            case _:
                return "reject", line.strip()


async def read_line() -> str | None:
    """Read a line from the terminal without blocking the loop; None at its end."""
    loop = asyncio.get_running_loop()
    descriptor = sys.stdin.fileno()
    ready: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        if not ready.done():
            ready.set_result(os.read(descriptor, 65_536))

    loop.add_reader(descriptor, read)
    try:
        data = await ready
    finally:
        loop.remove_reader(descriptor)
    return data.decode(sys.stdin.encoding or "utf-8", "replace") if data else None
