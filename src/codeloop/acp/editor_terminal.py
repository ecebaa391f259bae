"""Runs commands in the editor's own terminals, outside of any sandbox: where `--editor-terminal` asks for that."""

import asyncio
from contextlib import suppress
from typing import Any

from codeloop.acp.buffers import EditorBuffers
from codeloop.acp.connection import EditorConnection, RpcError
from codeloop.kit.jsonc import is_object
from codeloop.schema.api.editor import EditorCommand, EditorCommandResult
from codeloop.schema.bounds.editor import EDITOR_ANSWER, EDITOR_LOOK, EDITOR_OUTPUT
from codeloop.schema.wire import JSON


class EditorTerminals:
    """The editor's terminals. `is_offered`: whether it lets us run commands in them; `buffers` knows its sessions."""

    def __init__(self, buffers: EditorBuffers) -> None:
        self.is_offered = False
        self.known: set[str] = set()
        """Ids of terminals that this editor can show, those that were released as well."""
        self._buffers = buffers

    async def run(self, command: EditorCommand) -> EditorCommandResult | None:
        """Run a command to its end or its timeout; None: the editor has no terminals. Raises RpcError."""
        connection, named = self._buffers.connection, self._buffers.name_session(command.session_id)
        if connection is None or named is None or not self.is_offered:
            return None
        program, *arguments = command.arguments
        created = await connection.request(
            "terminal/create",
            {
                "sessionId": named,
                "command": program,
                "args": arguments,
                "env": [{"name": name, "value": value} for name, value in command.variables.items()],
                "cwd": str(command.directory),
                "outputByteLimit": EDITOR_OUTPUT.value,
            },
        )
        terminal_id = created.get("terminalId") if is_object(created) else None
        if not isinstance(terminal_id, str):
            raise RpcError(0, "The editor made no terminal.")
        self.known.add(terminal_id)
        terminal: JSON = {"sessionId": named, "terminalId": terminal_id}
        command.show(terminal_id, "")
        ending, timed_out = asyncio.create_task(connection.request("terminal/wait_for_exit", terminal)), False
        try:
            async with asyncio.timeout(command.timeout):
                while not (await asyncio.wait({ending}, timeout=EDITOR_LOOK.seconds))[0]:
                    command.show(terminal_id, await _output_of(connection, terminal))
            ended: Any = ending.result()
        except TimeoutError:
            timed_out, ended = True, {}
            await connection.request("terminal/kill", terminal)
        except asyncio.CancelledError:
            connection.post("terminal/kill", terminal)
            connection.post("terminal/release", terminal)
            raise
        finally:
            ending.cancel()
        output = await _output_of(connection, terminal)
        with suppress(RpcError):
            await connection.request("terminal/release", terminal)
        code, signal = (ended.get("exitCode"), ended.get("signal")) if is_object(ended) else (None, None)
        return EditorCommandResult(
            terminal_id,
            output,
            code if isinstance(code, int) else None,
            signal if isinstance(signal, str) else None,
            timed_out,
        )


async def _output_of(connection: EditorConnection, terminal: JSON) -> str:
    """Return the text of a terminal; "" where the editor can't say."""
    with suppress(RpcError, TimeoutError):
        async with asyncio.timeout(EDITOR_ANSWER.seconds):
            found = await connection.request("terminal/output", terminal)
            return str(found.get("output") or "") if is_object(found) else ""
    return ""
