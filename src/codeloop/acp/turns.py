"""The turns of a session in an editor: how their prompts are answered, how they end and are stopped."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from codeloop.acp.connection import AUTH_REQUIRED, INTERNAL, RpcError
from codeloop.client.client import Client
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import CodeloopError, ProviderAuthError, get_error_message
from codeloop.schema.limits import TURN_EVENTS_TIME
from codeloop.schema.message import AssistantMessage
from codeloop.schema.operation import ABORT
from codeloop.schema.wire import JSON

_ABORT_AGAIN = 0.01
"""Seconds between two tries to stop a prompt: while it is being stored, there is no turn to stop yet."""
_STOP_REASONS = {
    "length": "max_tokens",
    "limit": "max_turn_requests",
    "loop": "max_turn_requests",
    "filtered": "refusal",
    "aborted": "cancelled",
}
"""By why a turn ended; every other one ended by itself."""


def stop_reason(answer: MessageWithParts) -> str:
    """Return why a turn ended. Raises RpcError for one that failed."""
    reason = answer.stop.reason if answer.stop is not None else "done"
    error = answer.info.error if isinstance(answer.info, AssistantMessage) else None
    if reason == "error":
        code = AUTH_REQUIRED if isinstance(error, ProviderAuthError) else INTERNAL
        message = answer.stop.message if answer.stop is not None else ""
        raise RpcError(code, message or (get_error_message(error) if error is not None else "The turn failed."))
    return _STOP_REASONS.get(reason, "end_turn")


class SessionStates:
    """Reports whether a session works, waits for the user, or is idle. `update` sends an update."""

    def __init__(self, update: Callable[[JSON], None]) -> None:
        self._update = update
        self._turns = 0
        self._is_busy = False
        self._questions = 0
        self._last = "idle"

    def begin_turn(self) -> None:
        """Note that a prompt of this editor is worked on."""
        self._turns += 1
        self._report()

    def end_turn(self, reason: str, error: RpcError | None = None) -> None:
        """Note why the work on a prompt of this editor ended."""
        self._turns -= 1
        if self._turns:
            return
        self._is_busy, self._last = False, "idle"
        failure: JSON = {"error": {"code": error.code, "message": str(error)}} if error is not None else {}
        self._update({"sessionUpdate": "state_update", "state": "idle", "stopReason": reason, **failure})

    def note_busy(self, *, is_busy: bool) -> None:
        """Note whether the session works, on whoever's prompt."""
        self._is_busy = is_busy
        self._report()

    def note_questions(self, count: int) -> None:
        """Note how many questions wait for the user."""
        self._questions = count
        self._report()

    def _report(self) -> None:
        works = self._turns > 0 or self._is_busy
        state = "requires_action" if works and self._questions else "running" if works else "idle"
        if state != self._last:
            self._last = state
            self._update({"sessionUpdate": "state_update", "state": state})


class SessionTurns:
    """The work on an editor's prompts. `states` reports it; None: a prompt is answered when its turn has ended."""

    def __init__(self, client: Client, session_id: str, states: SessionStates | None) -> None:
        self._client = client
        self._session_id = session_id
        self._states = states
        self._idle = asyncio.Event()
        self._running: set[asyncio.Task[MessageWithParts]] = set()
        self._accepting: dict[str, asyncio.Future[None]] = {}
        """By message: done once the prompt is stored."""
        self._following: set[asyncio.Task[None]] = set()

    @property
    def are_running(self) -> bool:
        """Whether there is work on a prompt."""
        return bool(self._running)

    def accept(self, message_id: str) -> None:
        """Note that a prompt is stored."""
        if (waiting := self._accepting.get(message_id)) is not None and not waiting.done():
            waiting.set_result(None)

    def note_idle(self) -> None:
        """Note that nothing is worked on, and all of it was shown."""
        self._idle.set()

    async def answer(self, work: Coroutine[Any, Any, str], message_id: str, show: Callable[[], None]) -> JSON:
        """Return the answer to a prompt. `work` returns why it ended; `show` shows the prompt, once it is stored.

        Raises RpcError, CodeloopError.
        """
        states = self._states
        if states is None:
            return {"stopReason": await work}
        acceptance = self._accepting[message_id] = asyncio.get_running_loop().create_future()
        turn = asyncio.create_task(work)
        try:
            await asyncio.wait((turn, acceptance), return_when=asyncio.FIRST_COMPLETED)
        finally:
            del self._accepting[message_id]
        if not acceptance.done():
            turn.result()  # raises why it was not stored
        show()
        states.begin_turn()
        following = asyncio.create_task(_report_end(turn, states))
        self._following.add(following)
        following.add_done_callback(self._following.discard)
        return {"messageId": message_id}

    async def wait_for(self, call: Coroutine[Any, Any, MessageWithParts]) -> MessageWithParts:
        """Wait for the end of a turn and until it is shown; cancelled, the turn is stopped."""
        self._idle.clear()
        turn = asyncio.create_task(call)
        self._running.add(turn)
        turn.add_done_callback(self._running.discard)
        try:
            answer = await asyncio.shield(turn)
            with suppress(TimeoutError):
                async with asyncio.timeout(TURN_EVENTS_TIME.seconds):
                    await self._idle.wait()
        except asyncio.CancelledError:
            await self.stop()
            raise
        return answer

    async def stop(self) -> None:
        """Stop what the session does, and wait until that is stored."""
        while True:
            with suppress(CodeloopError):
                await self._client.call(ABORT, SessionId(session_id=self._session_id))
            if not self._running:
                return
            await asyncio.wait(self._running, timeout=_ABORT_AGAIN)


async def _report_end(turn: "asyncio.Task[str]", states: SessionStates) -> None:
    """Report the end of a turn whose prompt was answered before."""
    try:
        states.end_turn(await turn)
    except RpcError as error:
        states.end_turn("error", error)
    except CodeloopError as error:
        states.end_turn("error", RpcError(INTERNAL, str(error)))
