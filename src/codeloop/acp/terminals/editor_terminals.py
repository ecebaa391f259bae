"""`EditorTerminals`: runs commands outside the sandbox in the editor's own terminals,
with `--editor-terminal`.
"""

import asyncio
from contextlib import suppress
from typing import Any

from codeloop.acp.connection import INTERNAL_ERROR, EditorConnection, RpcError
from codeloop.acp.editor_buffers import EditorBuffers
from codeloop.kit.jsonc import is_object
from codeloop.schema.bounds.editor import EDITOR_ANSWER, EDITOR_OUTPUT, EDITOR_OUTPUT_POLL
from codeloop.schema.editor import EditorCommand, EditorCommandResult
from codeloop.schema.wire import JSON


class EditorTerminals:
    """The editor's terminals. `is_offered`: the editor lets agents run commands in them.

    `buffers`: they have the connection to the editor, and its open sessions.
    """

    def __init__(self, buffers: EditorBuffers) -> None:
        self.is_offered = False
        self.terminal_ids: set[str] = set()
        """Ids of the terminals that this editor can show, including those that were released."""
        self._buffers = buffers

    async def run(self, command: EditorCommand) -> EditorCommandResult | None:
        """Run a command until it ends or times out; None: the editor offers none.
        Raises RpcError.
        """
        connection, session_id = (
            self._buffers.connection,
            self._buffers.choose_session_id(command.session_id),
        )
        if connection is None or session_id is None or not self.is_offered:
            return None
        terminal_id = await _create_terminal(connection, session_id, command)
        self.terminal_ids.add(terminal_id)
        terminal: JSON = {"sessionId": session_id, "terminalId": terminal_id}
        command.show(terminal_id, "")
        exit_task = asyncio.create_task(connection.request("terminal/wait_for_exit", terminal))
        exit_status: Any = None
        has_timed_out = False
        try:
            try:
                async with asyncio.timeout(command.timeout):
                    # The protocol does not report new output, so it is polled.
                    while not (await asyncio.wait({exit_task}, timeout=EDITOR_OUTPUT_POLL.seconds))[
                        0
                    ]:
                        command.show(terminal_id, await _read_output(connection, terminal))
                exit_status = exit_task.result()
            except TimeoutError:
                has_timed_out = True
                # Killed, not released: the output is still needed.
                await _request(connection, "terminal/kill", terminal)
            output = await _read_output(connection, terminal)
            # The editor keeps showing a terminal after its release.
            await _request(connection, "terminal/release", terminal)
        # A cancelled task can't wait for answers any more;
        # and of an editor that refuses to wait, none matters.
        except (asyncio.CancelledError, RpcError):
            connection.post("terminal/kill", terminal)
            connection.post("terminal/release", terminal)
            raise
        finally:
            exit_task.cancel()
        # The editor may send anything; a command that timed out has no exit status.
        code = exit_status.get("exitCode") if is_object(exit_status) else None
        signal = exit_status.get("signal") if is_object(exit_status) else None
        return EditorCommandResult(
            terminal_id=terminal_id,
            output=output,
            code=code if isinstance(code, int) else None,
            signal=signal if isinstance(signal, str) else None,
            timed_out=has_timed_out,
        )


async def _create_terminal(
    connection: EditorConnection, session_id: str, command: EditorCommand
) -> str:
    """Start a command in a new terminal of the editor; return the terminal's id.
    Raises RpcError.
    """
    program, *arguments = command.arguments
    answer = await connection.request(
        "terminal/create",
        {
            "sessionId": session_id,
            "command": program,
            "args": arguments,
            "env": [{"name": name, "value": value} for name, value in command.variables.items()],
            "cwd": str(command.directory),
            "outputByteLimit": EDITOR_OUTPUT.value,
        },
    )
    terminal_id = answer.get("terminalId") if is_object(answer) else None
    if not isinstance(terminal_id, str):
        # The code is not sent: the error only ends the command.
        raise RpcError(INTERNAL_ERROR, "The editor made no terminal.")
    return terminal_id


async def _request(connection: EditorConnection, method: str, terminal: JSON) -> Any:
    """Return the answer to a request about a terminal;
    None: the editor refuses it, or does not answer in time.
    """
    with suppress(RpcError, TimeoutError):
        async with asyncio.timeout(EDITOR_ANSWER.seconds):
            return await connection.request(method, terminal)
    return None


async def _read_output(connection: EditorConnection, terminal: JSON) -> str:
    """Return the text of a terminal; "" if the editor does not send it."""
    answer = await _request(connection, "terminal/output", terminal)
    return str(answer.get("output") or "") if is_object(answer) else ""
