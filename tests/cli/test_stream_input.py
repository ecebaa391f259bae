"""The lines of stdin as messages, without a program around them."""

import asyncio
import os

import pytest

from codeloop.cli.run.stream_input import StreamInput
from codeloop.schema.wire import JSON


@pytest.mark.parametrize(
    "line", [b'{"type":"\xff"}', b"[" * 3000 + b"]" * 3000], ids=["not UTF-8", "nested deeply"]
)
async def test_a_line_that_can_not_be_decoded_is_a_problem_and_the_next_is_read(
    line: bytes,
) -> None:
    async def handle_control(_document: JSON) -> None:
        pass

    source, sink = os.pipe()
    stdin = StreamInput(handle_control, lambda: None)
    stdin.start(source)
    os.write(sink, line + b"\n" + b'{"type":"user","message":{"role":"user","content":"hello"}}\n')
    os.close(sink)
    async with asyncio.timeout(60):
        bad, good, end = [await stdin.queue.get() for _ in range(3)]
    assert bad is not None
    assert "Message 1 of stdin was not sent: the line is not JSON" in bad.problem
    assert good is not None
    assert good.problem == ""
    assert end is None
