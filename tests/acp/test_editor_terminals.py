"""Commands in an editor's terminals, with an editor that doesn't keep to the protocol."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.acp.connection import EditorConnection, RpcError
from codeloop.acp.editor_buffers import EditorBuffers
from codeloop.acp.terminals import editor_terminals
from codeloop.acp.terminals.editor_terminals import EditorTerminals
from codeloop.schema.bounds.editor import EDITOR_ANSWER
from codeloop.schema.editor import EditorCommand
from codeloop.schema.wire import replace
from tests.support.scripted_project import wait_until

Answers = Callable[[dict[str, Any]], dict[str, Any] | None]
"""The rest of an editor's answer to a request; None: it never answers."""


MAKE = EditorCommand("s", ("make",), Path("/"), {}, 0.05, lambda _terminal, _output: None)


def connect(answers: Answers) -> EditorTerminals:
    """Return the terminals of an editor that answers so."""
    connection: EditorConnection
    pending: list[asyncio.Task[None]] = []

    async def handle(_method: str, _params: Any) -> None: ...

    def write(line: bytes) -> None:
        request = msgspec.json.decode(line)
        if "id" in request and (answer := answers(request)) is not None:
            received = msgspec.json.encode({"jsonrpc": "2.0", "id": request["id"], **answer})
            pending.append(asyncio.create_task(connection.receive(received)))

    buffers = EditorBuffers()
    buffers.connection = connection = EditorConnection(write, handle)
    buffers.sessions["s"] = None
    terminals = EditorTerminals(buffers)
    terminals.is_offered = True
    return terminals


@pytest.mark.parametrize(
    "ending", [None, {"error": {"code": -32603, "message": "No such terminal."}}]
)
async def test_an_editor_that_does_not_kill_or_release_a_terminal_does_not_keep_its_command(
    ending: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editor_terminals, "EDITOR_ANSWER", replace(EDITOR_ANSWER, value=400))
    asked: list[str] = []

    def answer(request: dict[str, Any]) -> dict[str, Any] | None:
        asked.append(request["method"])
        results = {"terminal/create": {"terminalId": "t"}, "terminal/output": {"output": "half"}}
        if request["method"] in results:
            return {"result": results[request["method"]]}
        return None if request["method"] == "terminal/wait_for_exit" else ending

    result = await asyncio.wait_for(connect(answer).run(MAKE), 60)
    assert result is not None
    assert (result.timed_out, result.output) == (True, "half")
    assert {"terminal/kill", "terminal/release"} <= set(asked)


@pytest.mark.parametrize("refused", ["", "terminal/wait_for_exit"])
async def test_a_terminal_is_released_when_its_command_is_given_up(refused: str) -> None:
    """The turn is stopped while the editor does not answer that it killed the command,
    or the editor does not wait.
    """
    asked: list[str] = []

    def answer(request: dict[str, Any]) -> dict[str, Any] | None:
        asked.append(request["method"])
        if request["method"] == refused:
            return {"error": {"code": -32601, "message": "Unknown."}}
        return {"result": {"terminalId": "t"}} if request["method"] == "terminal/create" else None

    running = asyncio.create_task(connect(answer).run(MAKE))
    if not refused:
        await wait_until(lambda: "terminal/kill" in asked)
        running.cancel()
    with pytest.raises((asyncio.CancelledError, RpcError)):
        await asyncio.wait_for(running, 60)
    assert asked[-2:] == ["terminal/kill", "terminal/release"]
