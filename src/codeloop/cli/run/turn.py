"""One turn from the command line: shown while it runs, its questions answered, ended by a signal or a deadline."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from typing import Any

from codeloop.cli import exit_codes
from codeloop.cli.follow.follower import RunFollower
from codeloop.cli.output.streams import Output
from codeloop.cli.output.view import View
from codeloop.cli.questions.answerer import Answerer
from codeloop.cli.run.background import Background, wait_for
from codeloop.cli.run.result import Outcome, Tally
from codeloop.cli.run.signals import Signals
from codeloop.client.client import Client
from codeloop.client.link import ServerLost
from codeloop.schema.api.session_inputs import MessageWithParts, TurnEnd
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import BACKGROUND_WAIT, TURN_STOPPING
from codeloop.schema.message import Session
from codeloop.schema.operation import ABORT, SESSION_GET

ABORT_AGAIN = 0.01
"""Seconds between two tries to abort."""
OVERDUE = f"The background subagents did not end within {BACKGROUND_WAIT.seconds / 60:g} minutes."
STOPPING = "codeloop: Stopping. Once more ends it at once."

Send = Callable[[], Coroutine[Any, Any, MessageWithParts]]
"""Sends a prompt or a command and returns what is answered when the turn ends."""


class Turn:
    """One prompt or command, from its sending to the end of its turn."""

    def __init__(
        self,
        client: Client,
        session: Session,
        view: View,
        answerer: Answerer,
        stdout: Output,
        resume: str,
        background: Background | None = None,
    ) -> None:
        """`resume`: the command line that goes on with the session."""
        self._client = client
        self._resume = resume
        self._session_id = session.id
        self._view = view
        self._answerer = answerer
        self._stdout = stdout
        self._session = session
        self._follower = RunFollower(client, session, view, answerer)
        self._follower.failed = self._follower.lost = self._lost
        self._background = background or Background()
        self._ended = asyncio.Event()
        self._ended_by: TurnEnd | None = None
        self._turn: asyncio.Task[Any] | None = None
        self._aborting: asyncio.Task[None] | None = None

    async def run(self, message_id: str, send: Send, timeout: float | None, signals: Signals) -> Outcome:
        """Send a prompt or a command and stay until the turn has ended; return how it did.

        `message_id`: what it will be stored as; `timeout`: seconds.
        """
        start = time.monotonic()
        self._follower.tally = Tally(self._session, message_id)
        await self._follower.start()
        turn = asyncio.create_task(send())
        is_answered = False
        try:
            with self._endings(turn, timeout, signals):
                answer = await turn
                await self._follower.settled()
                is_answered = self._ended_by is None
                self._stdout.gone = lambda: None  # the answer is out
                if await wait_for(self._follower.subagents, self._ended, self._view, self._background):
                    self._ended_by = TurnEnd(reason="limit", message=OVERDUE)
        except CodeloopError as error:
            return self._not_sent(error, time.monotonic() - start)
        except asyncio.CancelledError:
            if self._ended_by is None or not turn.cancelled() or signals.is_second:
                raise
            lost = "The server does not answer, so that the turn may go on there."
            return self._not_sent(CodeloopError(f"{self._ended_by.message} {lost}"), time.monotonic() - start)
        finally:
            await asyncio.sleep(0)
            await self._follower.stop()
        with suppress(CodeloopError):  # the event that tells of a title's cost may come after the turn
            self._follower.tally.grow(await self._client.call(SESSION_GET, SessionId(session_id=self._session_id)))
        code = exit_codes.of_turn(answer)
        message = answer.stop.message if answer.stop and answer.stop.reason != "done" else ""
        ended_by = self._ended_by
        if (
            ended_by is not None
            and not is_answered
            and ended_by.reason != "error"
            and (answer.stop is None or answer.stop.reason != "aborted")
        ):
            ended_by = None  # it was over before it could be ended
        if ended_by is not None:
            message, code = ended_by.message, self._code_of(ended_by)
        if code == exit_codes.DONE and self._answerer.refused:
            code = exit_codes.DENIED
            message = "Something was asked and nobody was there to answer: use --auto, or allow it in codeloop.json."
        reason = ended_by.reason if ended_by else answer.stop.reason if answer.stop else "done"
        return self._outcome(reason, code, message, time.monotonic() - start, answer.stop)

    def _not_sent(self, error: CodeloopError, seconds: float) -> Outcome:
        """Return how it ended when nothing was sent because it was ended or refused; raises any other error again."""
        if isinstance(error, ServerLost) and (self._ended_by is None or self._ended_by.reason == "error"):
            return self._outcome("error", exit_codes.ERROR, f"{error} Go on with: {self._resume}", seconds)
        if self._ended_by is not None:
            return self._outcome(self._ended_by.reason, self._code_of(self._ended_by), str(error), seconds)
        if self._answerer.refused:
            return self._outcome("rejected", exit_codes.DENIED, str(error), seconds)
        raise error

    def _code_of(self, end: TurnEnd) -> int:
        match end.reason:
            case "timeout":
                return exit_codes.TIMEOUT
            case "limit":
                return exit_codes.LIMIT
            case "error" | "closed":
                return exit_codes.ERROR
            case _:
                return exit_codes.INTERRUPTED

    def _outcome(self, reason: str, code: int, message: str, seconds: float, stop: TurnEnd | None = None) -> Outcome:
        window = stop.context_window if stop else 0
        return self._follower.tally.outcome(
            reason, code, message, session_id=self._session_id, seconds=seconds, window=window
        )

    def _lost(self, error: BaseException) -> None:
        """End the turn when it can no longer be shown, or a question not be answered: it would wait for ever."""
        why = str(error) if isinstance(error, CodeloopError) else f"{type(error).__name__}: {error}."
        self._end("error", f"The turn could not be followed any more: {why}")

    @contextmanager
    def _endings(self, turn: asyncio.Task[Any], timeout: float | None, signals: Signals) -> Generator[None, None, None]:
        """End the turn on a signal, when the time is over, or when nobody reads stdout any more."""
        self._turn = turn
        before = signals.act
        self._stdout.gone = lambda: self._end("closed", "Nobody reads stdout any more.")
        if self._stdout.closed:
            self._stdout.gone()
        signals.act = lambda: self._end("interrupted", f"Interrupted ({signals.name}).")
        loop = asyncio.get_running_loop()
        over = f"The time limit of {timeout:g} s is over." if timeout else ""
        timer = loop.call_later(timeout, self._end, "timeout", over) if timeout else None
        try:
            yield
        finally:
            signals.act = before
            self._stdout.gone = lambda: None
            if timer is not None:
                timer.cancel()

    def _end(self, reason: str, message: str) -> None:
        """Begin to end the turn; the first reason counts."""
        if self._ended_by is None:
            self._ended_by = TurnEnd(reason=reason, message=f"{message} Go on with: {self._resume}")
            self._ended.set()
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
                await self._client.call(ABORT, SessionId(session_id=self._session_id))
            except CodeloopError:
                self._turn.cancel()
            await asyncio.sleep(ABORT_AGAIN)
