"""`RunTurn`: one turn of `run`, which is followed, and ended by a signal,
a deadline or the loss of stdout's reader.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from typing import Any

from codeloop.cli import exit_codes
from codeloop.cli.follow.follower import FollowCallbacks, SessionFollower
from codeloop.cli.follow.subagents import BackgroundPolicy, wait_for_background
from codeloop.cli.output.result import Ending, Outcome, Tally
from codeloop.cli.output.streams import OutputStream
from codeloop.cli.output.view import View
from codeloop.cli.questions.answerer import Answerer
from codeloop.cli.run.signals import SignalHandlers
from codeloop.client.client import Client, ServerLost
from codeloop.schema.api.session_inputs import ABORT, MessageWithParts, TurnEnd
from codeloop.schema.api.session_requests import SESSION_GET, SessionId
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import BACKGROUND_WAIT, TURN_STOPPING
from codeloop.schema.message import Session

# Seconds between two requests to abort a turn.
ABORT_INTERVAL = 0.01
OVERDUE_MESSAGE = (
    f"The background subagents did not finish within {BACKGROUND_WAIT.seconds / 60:g} minutes."
)
STOPPING_NOTE = "codeloop: Stopping; press Ctrl-C again to quit now."
# The exit codes of turns whose end this process asked for, by the reason.
CODES_BY_REASON = {
    "timeout": exit_codes.TIMEOUT,
    "limit": exit_codes.LIMIT,
    "error": exit_codes.ERROR,
    "closed": exit_codes.ERROR,
    "interrupted": exit_codes.INTERRUPTED,
}

SendCall = Callable[[], Coroutine[Any, Any, MessageWithParts]]
"""Sends a prompt or a command, and returns the answer when the turn ends."""


def read_ending(answer: MessageWithParts | None, refusal: str) -> Ending:
    """Return how a turn ended by itself.

    `answer`: None if another client began the turn. `refusal`: words for the user about a request
    that was refused because nobody could be asked; "": there is none.
    """
    stop = answer.stop if answer is not None else None
    reason, goal = (stop.reason, stop.goal) if stop is not None else ("done", None)
    code = exit_codes.choose_turn_code(answer) if answer is not None else exit_codes.DONE
    message = stop.message if stop is not None and reason != "done" else ""
    # With a goal, its checks say whether it was reached in spite of the refusal.
    if code == exit_codes.DONE and refusal and goal is None:
        code, message = exit_codes.DENIED, refusal
    if stop is None:
        return Ending(reason, code, message)
    return Ending(
        reason=reason,
        code=code,
        message=message,
        window=stop.context_window,
        goal=goal,
        test_changes=stop.test_changes,
        has_unchecked_edits=stop.has_unchecked_edits,
        unended_commands=stop.unended_commands,
        facts=stop.facts,
    )


class RunTurn:
    """One prompt or command, from sending it to the end of its turn.

    `resume_command`: the command line that resumes the session, for messages.
    """

    def __init__(
        self,
        client: Client,
        session: Session,
        view: View,
        answerer: Answerer,
        *,
        stdout: OutputStream,
        resume_command: str,
        background: BackgroundPolicy,
    ) -> None:
        self._client = client
        self._session = session
        self._view = view
        self._answerer = answerer
        self._stdout = stdout
        self._resume_command = resume_command
        self._background = background
        callbacks = FollowCallbacks(on_failure=self._end_after_loss, on_loss=self._end_after_loss)
        self._follower = SessionFollower(client, session, view, answerer, callbacks)
        self._end_requested = asyncio.Event()
        # Why this process asked for the end of the turn, or of the wait for subagents after it;
        # None: it did not. How the turn ended by itself is in the answer.
        self._requested_end: TurnEnd | None = None
        self._send_task: asyncio.Task[Any] | None = None
        self._abort_task: asyncio.Task[None] | None = None

    async def run(
        self, message_id: str, send: SendCall, timeout: float | None, signals: SignalHandlers
    ) -> Outcome:
        """Send a prompt or a command, wait until its turn has ended, and return the outcome.

        `message_id`: the id under which the message will be stored. `timeout`: seconds;
        None: no limit.
        """
        start = time.monotonic()
        self._follower.tally = Tally(self._session, message_id)
        await self._follower.start()
        send_task = asyncio.create_task(send())
        is_answered = False
        try:
            with self._watch_for_end(send_task, timeout, signals):
                answer = await send_task
                await self._follower.wait_until_shown()
                is_answered = self._requested_end is None
                # The answer has been written, so a closed stdout is not a reason to stop any more.
                self._stdout.on_gone = lambda: None
                if await wait_for_background(
                    self._follower.subagents, self._end_requested, self._view.note, self._background
                ):
                    self._requested_end = TurnEnd(reason="limit", message=OVERDUE_MESSAGE)
        except CodeloopError as error:
            return self._make_unanswered_outcome(error, time.monotonic() - start)
        except asyncio.CancelledError:
            if self._requested_end is None or not send_task.cancelled() or signals.is_second:
                raise
            # The end was requested, but the request to abort the turn got no answer.
            hint = "The server does not answer, so the turn may still be running there."
            error = CodeloopError(f"{self._requested_end.message} {hint}")
            return self._make_unanswered_outcome(error, time.monotonic() - start)
        finally:
            await self._follower.stop()
        # The event with the cost of a title may come after the turn.
        with suppress(CodeloopError):
            self._follower.tally.add_growth(
                await self._client.call(SESSION_GET, SessionId(session_id=self._session.id))
            )
        return self._make_outcome(
            self._choose_ending(answer, is_answered=is_answered), time.monotonic() - start
        )

    def _choose_ending(self, answer: MessageWithParts, *, is_answered: bool) -> Ending:
        """Return how the turn ended: by itself, or as requested.
        `is_answered`: its answer came before the request.
        """
        ending, requested = read_ending(answer, self._answerer.refusal), self._requested_end
        # A turn may have ended by itself before it could be aborted; then its own ending counts.
        if requested is not None and (
            is_answered or requested.reason == "error" or ending.reason == "aborted"
        ):
            code = CODES_BY_REASON[requested.reason]
            return ending._replace(reason=requested.reason, code=code, message=requested.message)
        return ending

    def _make_unanswered_outcome(self, error: CodeloopError, seconds: float) -> Outcome:
        """Return the outcome of a message without an answer, by a request to end or a refusal;
        else raise the error.
        """
        requested = self._requested_end
        if isinstance(error, ServerLost) and (requested is None or requested.reason == "error"):
            return self._make_outcome(
                Ending("error", exit_codes.ERROR, f"{error} Resume with: {self._resume_command}"),
                seconds,
            )
        if requested is not None:
            ending = Ending(requested.reason, CODES_BY_REASON[requested.reason], str(error))
            return self._make_outcome(ending, seconds)
        if self._answerer.refusal:
            return self._make_outcome(Ending("rejected", exit_codes.DENIED, str(error)), seconds)
        raise error

    def _make_outcome(self, ending: Ending, seconds: float) -> Outcome:
        return self._follower.tally.make_outcome(
            ending, session_id=self._session.id, seconds=seconds
        )

    def _end_after_loss(self, error: BaseException) -> None:
        """End the turn, because its events or its requests are lost: it would wait for ever."""
        why = (
            str(error) if isinstance(error, CodeloopError) else f"{type(error).__name__}: {error}."
        )
        self.request_end("error", f"The turn could not be followed any more: {why}")

    @contextmanager
    def _watch_for_end(
        self, send_task: asyncio.Task[Any], timeout: float | None, signals: SignalHandlers
    ) -> Generator[None, None, None]:
        """While the context is open, end the turn on a signal, after the timeout,
        or if nobody reads stdout.
        """
        self._send_task = send_task
        before = signals.on_first
        self._stdout.on_gone = lambda: self.request_end("closed", "Nobody reads stdout any more.")
        if self._stdout.is_closed:
            self._stdout.on_gone()
        signals.on_first = lambda: self.request_end("interrupted", f"Interrupted ({signals.name}).")
        loop = asyncio.get_running_loop()
        timer = None
        if timeout:
            message = f"The time limit of {timeout:g} s was reached."
            timer = loop.call_later(timeout, self.request_end, "timeout", message)
        try:
            yield
        finally:
            signals.on_first = before
            self._stdout.on_gone = lambda: None
            if timer is not None:
                timer.cancel()

    def request_end(self, reason: str, message: str) -> None:
        """Ask for the end of the turn; the first call counts.
        `reason`: a key of CODES_BY_REASON.
        """
        if self._requested_end is None:
            self._requested_end = TurnEnd(
                reason=reason, message=f"{message} Resume with: {self._resume_command}"
            )
            self._end_requested.set()
            self._abort_task = asyncio.create_task(self._abort_until_ended())
            if reason == "interrupted":
                asyncio.get_running_loop().call_later(TURN_STOPPING.seconds, self._show_stopping)

    def _show_stopping(self) -> None:
        if self._send_task is not None and not self._send_task.done():
            self._view.note(STOPPING_NOTE)

    async def _abort_until_ended(self) -> None:
        """Request the abort again and again, until the turn has ended."""
        # Once is not enough: while a prompt is being stored, there is no turn to abort yet.
        while self._send_task is not None and not self._send_task.done():
            try:
                await self._client.call(ABORT, SessionId(session_id=self._session.id))
            # The server does not answer, so the turn can only be left alone.
            except CodeloopError:
                self._send_task.cancel()
            await asyncio.sleep(ABORT_INTERVAL)
