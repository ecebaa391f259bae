"""The JSON-RPC connection to an editor, without a program around it."""

import asyncio
from typing import Any

import msgspec
import pytest

from codeloop.acp.connection import EditorConnection


async def test_an_id_that_is_in_use_is_refused_and_the_running_request_can_still_be_cancelled() -> (
    None
):
    sent: list[dict[str, Any]] = []
    started: list[str] = []

    async def handle(method: str, _params: Any) -> None:
        started.append(method)
        await asyncio.Event().wait()

    def write(line: bytes) -> None:
        sent.append(msgspec.json.decode(line))

    connection = EditorConnection(write, handle)
    await connection.receive(b'{"jsonrpc":"2.0","id":7,"method":"first"}')
    await connection.receive(b'{"jsonrpc":"2.0","id":7,"method":"second"}')
    await asyncio.sleep(0)
    assert started == ["first"]
    # The error has no id: with it, the editor would take it for the answer to the first request.
    assert [(each["id"], each["error"]["code"]) for each in sent] == [(None, -32600)]
    await connection.receive(
        b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}'
    )
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [(each["id"], each["error"]["code"]) for each in sent[1:]] == [(7, -32800)]
    await connection.close()


@pytest.mark.parametrize(
    "line", [b'{"method":"\xff"}', b"[" * 3000 + b"]" * 3000], ids=["not UTF-8", "nested deeply"]
)
async def test_a_line_that_can_not_be_decoded_is_answered_with_an_error(line: bytes) -> None:
    sent: list[bytes] = []

    async def handle(_method: str, _params: Any) -> None:
        pass

    connection = EditorConnection(sent.append, handle)
    await connection.receive(line)
    await connection.close()
    (answer,) = sent
    assert msgspec.json.decode(answer)["error"]["code"] == -32700
