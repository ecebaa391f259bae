"""One turn from the command line: shown while it runs, its questions answered, ended by a signal or a deadline."""

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from codeloop.cli import exits
from codeloop.cli.ask import Answerer
from codeloop.cli.named import belongs
from codeloop.cli.outcome import Outcome, Tally
from codeloop.cli.output import Output
from codeloop.cli.signals import Signals
from codeloop.cli.view import View
from codeloop.client.client import Client
from codeloop.schema.errors import CodeloopError
from codeloop.schema.event import Event, PermissionAsked, QuestionAsked, session_of
from codeloop.schema.limits import TURN_SETTLE, TURN_STOPPING
from codeloop.schema.live import Busy, SessionIdle, StatusChanged
from codeloop.schema.operation import ABORT, Operation
from codeloop.schema.prompts import MessageWithParts, TurnEnd
from codeloop.store.follow import GapError

ABORT_AGAIN = 0.01
"""Seconds between two tries to abort."""
STOPPING = "codeloop: Stopping. Once more ends it at once."


class Turn:
    """Follows one session's turn through a client."""

    def __init__(self, client: Client, session_id: str, view: View, answerer: Answerer, stdout: Output) -> None:
        self._client = client
        self._session_id = session_id
        self._view = view
        self._answerer = answerer
        self._stdout = stdout
        self._tally = Tally()
        self._idle = asyncio.Event()
        self._questions: set[asyncio.Task[None]] = set()
        self._ended_by: TurnEnd | None = None
        self._turn: asyncio.Task[Any] | None = None
        self._aborting: asyncio.Task[None] | None = None

    async def run(self, said: tuple[Operation, dict[str, Any]], timeout: float | None, signals: Signals) -> Outcome:
        """Send a prompt or a command and stay until the turn has ended; gives how it did. `timeout` in seconds."""
        start = time.monotonic()
        watching = asyncio.create_task(self._watch())
        watching.add_done_callback(self._check)
        await asyncio.sleep(0)
        operation, prompt = said
        turn = asyncio.create_task(self._client.call(operation, session_id=self._session_id, **prompt))
        try:
            with self._endings(turn, timeout, signals):
                answer: MessageWithParts = await turn
                await self._settled(watching)
        except CodeloopError as error:
            return self._not_sent(error, time.monotonic() - start)
        except asyncio.CancelledError:
            if self._ended_by is None or not turn.cancelled() or signals.is_second:
                raise
            lost = "The server does not answer, so that the turn may go on there."
            return self._not_sent(CodeloopError(f"{self._ended_by.message} {lost}"), time.monotonic() - start)
        finally:
            await asyncio.sleep(0)
            await self._drain(watching)
        code = exits.of_turn(answer)
        message = answer.stop.message if answer.stop and answer.stop.reason != "done" else ""
        ended_by = self._ended_by
        if (
            ended_by is not None
            and ended_by.reason != "error"
            and (answer.stop is None or answer.stop.reason != "aborted")
        ):
            ended_by = None  # it was over before it could be ended
        if ended_by is not None:
            message, code = ended_by.message, self._code_of(ended_by)
        if code == exits.DONE and self._answerer.refused:
            code = exits.DENIED
            message = "Something was asked and nobody was there to answer: use --auto, or allow it in codeloop.json."
        reason = ended_by.reason if ended_by else answer.stop.reason if answer.stop else "done"
        return self._outcome(reason, code, message, time.monotonic() - start)

    def _not_sent(self, error: CodeloopError, seconds: float) -> Outcome:
        """Give how it ended when nothing was sent because it was ended or refused; raises any other error again."""
        if self._ended_by is not None:
            return self._outcome(self._ended_by.reason, self._code_of(self._ended_by), str(error), seconds)
        if self._answerer.refused:
            return self._outcome("rejected", exits.DENIED, str(error), seconds)
        raise error

    def _code_of(self, end: TurnEnd) -> int:
        match end.reason:
            case "timeout":
                return exits.TIMEOUT
            case "error" | "closed":
                return exits.ERROR
            case _:
                return exits.INTERRUPTED

    def _outcome(self, reason: str, code: int, message: str, seconds: float) -> Outcome:
        return self._tally.outcome(reason, code, message, session_id=self._session_id, seconds=seconds)

    async def _watch(self) -> None:
        """Show what is told of the session; what was missed in between is said, and the rest shown."""
        while True:
            try:
                async for stamped in self._client.follow():
                    await self._seen(stamped.event)
            except GapError as error:
                self._view.note(f"Some of what happened is not shown: {error}")
            else:
                return

    async def _seen(self, event: Event) -> None:
        match event:
            case PermissionAsked() | QuestionAsked():
                if await belongs(self._client, event.properties.session_id, self._session_id):
                    self._ask(event)
            case _ if session_of(event) in {self._session_id, None}:
                self._tally.take(event)
                self._view.show(event)
                if isinstance(event, SessionIdle):
                    self._idle.set()
                elif isinstance(event, StatusChanged) and isinstance(event.properties.status, Busy):
                    self._idle.clear()
                if self._stdout.closed:
                    self._end("closed", "Nobody reads stdout any more.")
            case _:
                pass

    def _ask(self, event: PermissionAsked | QuestionAsked) -> None:
        match event:
            case PermissionAsked(properties=request):
                answering = self._answerer.answer(self._client, self._view, request)
            case QuestionAsked(properties=request):
                answering = self._answerer.answer_question(self._client, self._view, request)
        task = asyncio.create_task(answering)
        self._questions.add(task)
        task.add_done_callback(self._questions.discard)
        task.add_done_callback(self._check)

    def _check(self, task: asyncio.Task[None]) -> None:
        """End the turn when it can no longer be shown, or a question not be answered: it would wait for ever."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._end("error", f"The turn could not be followed any more: {type(error).__name__}: {error}.")

    @contextmanager
    def _endings(self, turn: asyncio.Task[Any], timeout: float | None, signals: Signals) -> Generator[None, None, None]:
        """End the turn on a signal, when the time is over, or when nobody reads stdout any more."""
        self._turn = turn
        before = signals.act
        signals.act = lambda: self._end("interrupted", f"Interrupted ({signals.name}).")
        loop = asyncio.get_running_loop()
        over = f"The time limit of {timeout:g} s is over." if timeout else ""
        timer = loop.call_later(timeout, self._end, "timeout", over) if timeout else None
        try:
            yield
        finally:
            signals.act = before
            if timer is not None:
                timer.cancel()

    def _end(self, reason: str, message: str) -> None:
        """Begin to end the turn; the first reason counts."""
        if self._ended_by is None:
            resume = f"Go on with: codeloop run --session {self._session_id}"
            self._ended_by = TurnEnd(reason=reason, message=f"{message} {resume}")
            self._aborting = asyncio.create_task(self._abort())
            if reason == "interrupted":
                asyncio.get_running_loop().call_later(TURN_STOPPING.seconds, self._say_stopping)

    def _say_stopping(self) -> None:
        if self._turn is not None and not self._turn.done():
            self._view.note(STOPPING)

    async def _abort(self) -> None:
        """Abort until it has ended: a prompt that is still being stored has no turn yet that could be."""
        while self._turn is not None and not self._turn.done():
            try:
                await self._client.call(ABORT, session_id=self._session_id)
            except CodeloopError:
                self._turn.cancel()
            await asyncio.sleep(ABORT_AGAIN)

    async def _settled(self, watching: asyncio.Task[None]) -> None:
        """Wait until the turn is shown to its end: from a server that may come after the prompt's answer."""
        ended = asyncio.create_task(self._idle.wait())
        await asyncio.wait((ended, watching), timeout=TURN_SETTLE.seconds, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()

    async def _drain(self, watching: asyncio.Task[None]) -> None:
        """Let the follower show what is already there, then stop it."""
        for _ in range(3):
            await asyncio.sleep(0)
        for task in (*self._questions, watching):
            task.cancel()
        await asyncio.gather(*self._questions, watching, return_exceptions=True)
