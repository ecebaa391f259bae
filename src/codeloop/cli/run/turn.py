"""One turn of `run`: shown while it runs, its requests answered, ended by a signal, a deadline or a closed pipe."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from typing import Any

from codeloop.cli import exit_codes
from codeloop.cli.follow.follower import Callbacks, RunFollower
from codeloop.cli.follow.subagents import Background, wait_for
from codeloop.cli.output.result import Ending, Outcome, Tally
from codeloop.cli.output.streams import Output
from codeloop.cli.output.view import View
from codeloop.cli.questions.answerer import Answerer
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
OVERDUE = f"The background subagents did not finish within {BACKGROUND_WAIT.seconds / 60:g} minutes."
STOPPING = "codeloop: Stopping; press Ctrl-C again to quit now."
NOBODY_ASKED = (
    "A request was denied because nobody could be asked. Allow it in codeloop.json (`permission`), choose another "
    "--profile, or use --auto."
)
CODES = {
    "timeout": exit_codes.TIMEOUT,
    "limit": exit_codes.LIMIT,
    "error": exit_codes.ERROR,
    "closed": exit_codes.ERROR,
    "interrupted": exit_codes.INTERRUPTED,
}

Send = Callable[[], Coroutine[Any, Any, MessageWithParts]]
"""Sends a prompt or a command, and returns the answer when the turn ends."""


def read_ending(answer: MessageWithParts | None, refusals: int) -> Ending:
    """Return how a turn ended by itself. `refusals`: how many requests were denied because nobody could be asked.

    None: nothing that was sent from here is answered, because another client began the turn.
    """
    stop = answer.stop if answer is not None else None
    reason, goal = (stop.reason, stop.goal) if stop is not None else ("done", None)
    code = exit_codes.of_turn(answer) if answer is not None else exit_codes.DONE
    message = stop.message if stop is not None and reason != "done" else ""
    if code == exit_codes.DONE and refusals and goal is None:
        code, message = exit_codes.DENIED, NOBODY_ASKED
    if stop is None:
        return Ending(reason, code, message)
    return Ending(reason, code, message, stop.context_window, goal, stop.test_changes, stop.has_unchecked_edits)


class RunTurn:
    """One prompt or command, from sending it to the end of its turn."""

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
        """`resume`: the command line that resumes the session."""
        self._client = client
        self._session = session
        self._view = view
        self._answerer = answerer
        self._stdout = stdout
        self._resume = resume
        self._background = background or Background()
        self._follower = RunFollower(client, session, view, answerer, Callbacks(self._end_if_lost, self._end_if_lost))
        self._ended = asyncio.Event()
        self._ended_by: TurnEnd | None = None
        self._turn: asyncio.Task[Any] | None = None
        self._aborting: asyncio.Task[None] | None = None

    async def run(self, message_id: str, send: Send, timeout: float | None, signals: Signals) -> Outcome:
        """Send a prompt or a command, wait until its turn has ended, and return how it did.

        `message_id`: the id it will be stored under; `timeout`: seconds.
        """
        start = time.monotonic()
        self._follower.tally = Tally(self._session, message_id)
        await self._follower.start()
        turn = asyncio.create_task(send())
        is_answered = False
        try:
            with self._endings(turn, timeout, signals):
                answer = await turn
                await self._follower.wait_until_settled()
                is_answered = self._ended_by is None
                self._stdout.on_gone = lambda: None  # the answer is out
                if await wait_for(self._follower.subagents, self._ended, self._view.note, self._background):
                    self._ended_by = TurnEnd(reason="limit", message=OVERDUE)
        except CodeloopError as error:
            return self._end_unsent(error, time.monotonic() - start)
        except asyncio.CancelledError:
            if self._ended_by is None or not turn.cancelled() or signals.is_second:
                raise
            hint = "The server does not answer, so the turn may still be running there."
            return self._end_unsent(CodeloopError(f"{self._ended_by.message} {hint}"), time.monotonic() - start)
        finally:
            await asyncio.sleep(0)
            await self._follower.stop()
        with suppress(CodeloopError):  # the event with the cost of a title may come after the turn
            self._follower.tally.grow(await self._client.call(SESSION_GET, SessionId(session_id=self._session.id)))
        return self._outcome(self._ending(answer, is_answered=is_answered), time.monotonic() - start)

    def _ending(self, answer: MessageWithParts, *, is_answered: bool) -> Ending:
        ending, ended_by = read_ending(answer, self._answerer.refusals), self._ended_by
        # What ended it counts, unless the turn was over by itself before it could be aborted.
        if ended_by is not None and (is_answered or ended_by.reason == "error" or ending.reason == "aborted"):
            return ending._replace(reason=ended_by.reason, code=CODES[ended_by.reason], message=ended_by.message)
        return ending

    def _end_unsent(self, error: CodeloopError, seconds: float) -> Outcome:
        """Return the outcome of a message that was not sent, because of an end or a refusal; else raise the error."""
        ended_by = self._ended_by
        if isinstance(error, ServerLost) and (ended_by is None or ended_by.reason == "error"):
            return self._outcome(Ending("error", exit_codes.ERROR, f"{error} Resume with: {self._resume}"), seconds)
        if ended_by is not None:
            return self._outcome(Ending(ended_by.reason, CODES[ended_by.reason], str(error)), seconds)
        if self._answerer.refusals:
            return self._outcome(Ending("rejected", exit_codes.DENIED, str(error)), seconds)
        raise error

    def _outcome(self, ending: Ending, seconds: float) -> Outcome:
        return self._follower.tally.outcome(ending, session_id=self._session.id, seconds=seconds)

    def _end_if_lost(self, error: BaseException) -> None:
        """End the turn if it can't be shown or a request can't be answered: it would wait for ever."""
        why = str(error) if isinstance(error, CodeloopError) else f"{type(error).__name__}: {error}."
        self.end("error", f"The turn could not be followed any more: {why}")

    @contextmanager
    def _endings(self, turn: asyncio.Task[Any], timeout: float | None, signals: Signals) -> Generator[None, None, None]:
        """End the turn on a signal, after the timeout, or when nobody reads stdout any more."""
        self._turn = turn
        before = signals.act
        self._stdout.on_gone = lambda: self.end("closed", "Nobody reads stdout any more.")
        if self._stdout.is_closed:
            self._stdout.on_gone()
        signals.act = lambda: self.end("interrupted", f"Interrupted ({signals.name}).")
        loop = asyncio.get_running_loop()
        over = f"The time limit of {timeout:g} s was reached." if timeout else ""
        timer = loop.call_later(timeout, self.end, "timeout", over) if timeout else None
        try:
            yield
        finally:
            signals.act = before
            self._stdout.on_gone = lambda: None
            if timer is not None:
                timer.cancel()

    def end(self, reason: str, message: str) -> None:
        """Begin to end the turn, for a reason of `CODES`; the first one counts."""
        if self._ended_by is None:
            self._ended_by = TurnEnd(reason=reason, message=f"{message} Resume with: {self._resume}")
            self._ended.set()
            self._aborting = asyncio.create_task(self._abort())
            if reason == "interrupted":
                asyncio.get_running_loop().call_later(TURN_STOPPING.seconds, self._show_stopping)

    def _show_stopping(self) -> None:
        if self._turn is not None and not self._turn.done():
            self._view.note(STOPPING)

    async def _abort(self) -> None:
        """Abort until the turn has ended: while a prompt is being stored there is no turn to abort yet."""
        while self._turn is not None and not self._turn.done():
            try:
                await self._client.call(ABORT, SessionId(session_id=self._session.id))
            except CodeloopError:
                self._turn.cancel()
            await asyncio.sleep(ABORT_AGAIN)
