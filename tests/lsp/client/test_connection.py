"""What a server may send without harm to the others that wait for it."""

import asyncio
from typing import Any, cast

from codeloop.kit.program import Program
from codeloop.lsp.client.connection import LspConnection, encode_message


class Pipes:
    """A program that has written some messages, and takes whatever it is sent."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.left = [encode_message(message) for message in messages]
        self.ending = "it ended with exit code 0"

    async def read(self) -> bytes:
        return self.left.pop(0) if self.left else b""

    def write(self, data: bytes) -> int:
        return 0

    async def measure_memory(self) -> int:
        return 0

    async def close(self) -> None:
        """Nothing runs."""


async def test_an_answer_to_nothing_is_passed_over() -> None:
    strange = [{"id": number, "result": "strange"} for number in ([], {}, "1", 99, 1.5)]
    pipes = cast("Program", Pipes(*strange, {"id": 2, "result": "meant"}))
    connection = LspConnection(pipes, lambda _method, _params: None, {})
    connection.fence(lambda: None)
    asked = asyncio.create_task(connection.request("textDocument/hover", {}, 20))
    await asyncio.sleep(0)
    await connection.listen()
    assert await asked == "meant"
    assert connection.loss_reason == "it ended with exit code 0"
