"""The turns of a session in an editor: runs and stops them, answers their prompts,
and reports the session's state.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from codeloop.acp.connection import AUTH_REQUIRED, INTERNAL_ERROR, RpcError
from codeloop.client.client import Client
from codeloop.schema.api.session_inputs import ABORT, MessageWithParts
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import CodeloopError, ProviderAuthError, get_error_message
from codeloop.schema.limits import TURN_EVENTS_TIME
from codeloop.schema.message import AssistantMessage
from codeloop.schema.wire import JSON

_ABORT_RETRY_DELAY = 0.01
"""Seconds between two tries to stop a prompt: while it is being stored,
there is no turn to stop yet.
"""
_STOP_REASONS = {
    "length": "max_tokens",
    "limit": "max_turn_requests",
    "loop": "max_turn_requests",
    "filtered": "refusal",
    "aborted": "cancelled",
}
"""The protocol's stop reasons, by ours; every other one is `end_turn`."""


def find_stop_reason(answer: MessageWithParts) -> str:
    """Return the protocol's stop reason of a turn. Raises RpcError if the turn failed."""
    reason = answer.stop.reason if answer.stop is not None else "done"
    error = answer.info.error if isinstance(answer.info, AssistantMessage) else None
    if reason == "error":
        # With this code editors offer to sign in.
        code = AUTH_REQUIRED if isinstance(error, ProviderAuthError) else INTERNAL_ERROR
        message = answer.stop.message if answer.stop is not None else ""
        raise RpcError(
            code, message or (get_error_message(error) if error is not None else "The turn failed.")
        )
    return _STOP_REASONS.get(reason, "end_turn")


class StateReporter:
    """Reports to a version 2 editor whether a session is running, waits for the user,
    or is idle.
    """

    def __init__(self, send_update: Callable[[JSON], None]) -> None:
        self._send_update = send_update
        self._turn_count = 0
        self._is_busy = False
        self._question_count = 0
        self._sent_state = "idle"

    def begin_turn(self) -> None:
        """Record that a turn of this editor's prompt begins."""
        self._turn_count += 1
        self._report()

    def end_turn(self, reason: str, error: RpcError | None = None) -> None:
        """Record the end of a turn, and report it if no other turn of this editor runs."""
        self._turn_count -= 1
        if self._turn_count:
            return
        self._is_busy, self._sent_state = False, "idle"
        failure: JSON = (
            {"error": {"code": error.code, "message": str(error)}} if error is not None else {}
        )
        self._send_update(
            {"sessionUpdate": "state_update", "state": "idle", "stopReason": reason, **failure}
        )

    def note_busy(self, *, is_busy: bool) -> None:
        """Record whether the session works on the prompt of any client."""
        self._is_busy = is_busy
        self._report()

    def note_questions(self, count: int) -> None:
        """Record the number of open questions."""
        self._question_count = count
        self._report()

    def _report(self) -> None:
        state = "idle"
        if self._turn_count > 0 or self._is_busy:
            state = "requires_action" if self._question_count else "running"
        if state != self._sent_state:
            self._sent_state = state
            self._send_update({"sessionUpdate": "state_update", "state": state})


class EditorTurns:
    """Runs and stops the turns of an editor's prompts.

    `state_reporter`: for version 2, whose prompts are answered at once; None: for version 1, whose
    prompts are answered at the end of their turns.
    """

    def __init__(
        self, client: Client, session_id: str, state_reporter: StateReporter | None
    ) -> None:
        self._client = client
        self._session_id = session_id
        self._state_reporter = state_reporter
        self._idle = asyncio.Event()
        self._running: set[asyncio.Task[MessageWithParts]] = set()
        self._storing: dict[str, asyncio.Future[None]] = {}
        """By message id, a future that is done when the prompt is stored."""
        self._report_tasks: set[asyncio.Task[None]] = set()

    @property
    def is_running(self) -> bool:
        """Whether a turn of this editor's prompt runs."""
        return bool(self._running)

    def confirm_stored(self, message_id: str) -> None:
        """Record that a prompt is stored."""
        if (stored := self._storing.get(message_id)) is not None and not stored.done():
            stored.set_result(None)

    def note_idle(self) -> None:
        """Record that the session is idle and all its events were shown."""
        self._idle.set()

    async def answer_prompt(
        self, work: Coroutine[Any, Any, str], message_id: str, show: Callable[[], None]
    ) -> JSON:
        """Carry out a prompt, and return the answer to its request: the stop reason,
        or in version 2 the message's id.

        `work` runs the turn and returns its stop reason. `show` is called in version 2 when the
        prompt is stored, to show it. Raises RpcError, CodeloopError.
        """
        state_reporter = self._state_reporter
        if state_reporter is None:
            return {"stopReason": await work}
        stored = self._storing[message_id] = asyncio.get_running_loop().create_future()
        turn = asyncio.create_task(work)
        try:
            await asyncio.wait((turn, stored), return_when=asyncio.FIRST_COMPLETED)
        finally:
            del self._storing[message_id]
        # The turn ended before the prompt was stored: raise its error.
        if not stored.done():
            turn.result()
        show()
        state_reporter.begin_turn()
        report_task = asyncio.create_task(_report_end(turn, state_reporter))
        self._report_tasks.add(report_task)
        report_task.add_done_callback(self._report_tasks.discard)
        return {"messageId": message_id}

    async def run_turn(self, call: Coroutine[Any, Any, MessageWithParts]) -> MessageWithParts:
        """Run a turn until it has ended and is shown. Cancelling stops the turn."""
        self._idle.clear()
        turn = asyncio.create_task(call)
        self._running.add(turn)
        turn.add_done_callback(self._running.discard)
        try:
            # Shielded: a turn is ended by an abort, after which its end is awaited.
            answer = await asyncio.shield(turn)
            # The answer arrives by another way than the events: wait until these were shown,
            # but not for a lost one.
            with suppress(TimeoutError):
                async with asyncio.timeout(TURN_EVENTS_TIME.seconds):
                    await self._idle.wait()
        except asyncio.CancelledError:
            await self.stop()
            raise
        return answer

    async def stop(self) -> None:
        """Abort the session's turns, and wait until their ends are stored."""
        while True:
            with suppress(CodeloopError):
                await self._client.call(ABORT, SessionId(session_id=self._session_id))
            if not self._running:
                return
            await asyncio.wait(self._running, timeout=_ABORT_RETRY_DELAY)


async def _report_end(turn: "asyncio.Task[str]", state_reporter: StateReporter) -> None:
    """Report the end of a turn whose prompt was answered at its start.
    The task returns the stop reason.
    """
    try:
        state_reporter.end_turn(await turn)
    except RpcError as error:
        state_reporter.end_turn("error", error)
    except CodeloopError as error:
        state_reporter.end_turn("error", RpcError(INTERNAL_ERROR, str(error)))
