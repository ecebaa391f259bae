"""A conversation in a plain terminal: lines become prompts, and what happens is shown above them."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from msgspec import Struct

from codeloop.cli import exit_codes
from codeloop.cli.bootstrap import list_end_signals
from codeloop.cli.chat.screen import Screen
from codeloop.cli.follow.follower import Callbacks, RunFollower
from codeloop.cli.follow.own_prompts import Prompts
from codeloop.cli.options import Options
from codeloop.cli.output.result import Tally
from codeloop.cli.output.style import Look
from codeloop.cli.output.view import View
from codeloop.cli.questions.answerer import Answerer
from codeloop.cli.target.selection import check_agent, check_model, choose_session, model_of, session_of
from codeloop.cli.tasks import report, stop_all
from codeloop.client.client import Client
from codeloop.client.link import ServerLost
from codeloop.client.target import Target
from codeloop.schema.api.session_inputs import MessageWithParts, RunLimits
from codeloop.schema.api.session_requests import ListMessages, SessionId
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import ATTACH_SHOWN
from codeloop.schema.message import ModelRef, Session
from codeloop.schema.operation import ABORT, SESSION_MESSAGES

Send = Callable[[Client, str], Coroutine[Any, Any, object]]
"""Sends something to a session, named by its id, and returns what the turn answers."""


class OpenSession(Struct, frozen=True):
    """The session of a conversation, followed and shown."""

    view: View
    prompts: Prompts
    follower: RunFollower


class PendingCalls:
    """Calls that are answered when a turn ends. `failed` is called with an error, `changed` when one is done."""

    def __init__(self, failed: Callable[[BaseException], object], changed: Callable[[], object]) -> None:
        self.answer: MessageWithParts | None = None
        """The last answer of a turn that has not been summed up yet."""
        self.began = 0.0
        self.is_abandoned = False
        """Whether the person leaves without waiting for the turn."""
        self.is_given_up = False
        """Whether it was shown that the server did not come back."""
        self._failed = failed
        self._changed = changed
        self._calls: set[asyncio.Task[Any]] = set()
        self._asides: set[asyncio.Task[Any]] = set()

    @property
    def is_empty(self) -> bool:
        """Whether no call is waited for."""
        return not self._calls

    def start(self, call: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Wait for a call."""
        task = asyncio.create_task(call)
        self._calls.add(task)
        task.add_done_callback(self._take_result)
        return task

    def start_unawaited(self, call: Coroutine[Any, Any, Any]) -> None:
        """Do something that nothing waits for."""
        task = asyncio.create_task(call)
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)
        task.add_done_callback(lambda task: report(task, self._failed))

    async def stop(self) -> None:
        """Wait for nothing any more; a turn on a server goes on."""
        await stop_all([*self._calls, *self._asides])

    def _take_result(self, task: asyncio.Task[Any]) -> None:
        self._calls.discard(task)
        report(task, self._failed)
        if not task.cancelled() and task.exception() is None and isinstance(task.result(), MessageWithParts):
            self.answer = task.result()
        self._changed()


class Chat:
    """Sends what is typed and shows what happens. `agent` and `model` are for the prompts that follow.

    `options`: what it was started with, and the profile of the next session.
    """

    def __init__(self, target: Target, options: Options, screen: Screen) -> None:
        self.agent = options.agent
        self.model: ModelRef | None = model_of(options.model)
        self.client = target.client
        """What reaches the session's directory."""
        self._target = target
        self.options = options
        self._screen = screen
        self._answerer = Answerer(screen.typing if screen.is_attended else None, auto=options.auto)
        self._open: OpenSession | None = None
        self._pending = PendingCalls(self._show_failure, self._note_call_done)
        self._idle = asyncio.Event()
        self._is_warned = False
        self._code = exit_codes.DONE

    @property
    def session(self) -> Session | None:
        """The session, if there is one yet."""
        return self._open.prompts.session if self._open is not None else None

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs, whoever began it."""
        return not self._pending.is_empty or (self._open is not None and self._open.follower.is_running)

    @property
    def limits(self) -> RunLimits:
        """The limits of a turn, and whether a person can be asked."""
        return RunLimits(attended=self._screen.is_attended)

    @property
    def place(self) -> str:
        """The server, if there is one, and the directory."""
        directory = self.session.directory if self.session else self._target.directory
        return f"{self.options.attach}  {directory}" if self.options.attach else directory

    async def run(self, take_line: Callable[["Chat", str], Awaitable[None]]) -> int:
        """Do what each line says until the input ends or the person leaves; return the exit code.

        Raises CodeloopError if the conversation can't begin.
        """
        session = await choose_session(self._target, self.options)
        client = self._target.client if session is None else self._target.client_of(session)
        await check_agent(client, self.agent)
        if self.model is not None:
            await check_model(client, self.model)
        if session is not None:
            session = await session_of(client, self.options, session)
        loop = asyncio.get_running_loop()
        for number in list_end_signals():
            loop.add_signal_handler(number, self.interrupt if number == signal.SIGINT else self.leave)
        typing = self._screen.typing
        typing.start()
        try:
            await self._greet(session)
            while (line := await typing.lines.take()) is not None:
                self._is_warned = False
                try:
                    await take_line(self, line)
                except CodeloopError as error:
                    self._show_failure(error)
                self._update()
                if not self._screen.is_attended:
                    await self._idle.wait()
        finally:
            await self._stop()
        return self._code

    async def _greet(self, session: Session | None) -> None:
        if self._target.link is not None:
            self._target.link.heard = lambda text: self.say(f"codeloop: {text}", "yellow")
        for note in self._target.notes:
            self.say(note, "yellow")
        if self._screen.is_attended:
            self.say(f"{self.place}  /help lists the commands, Ctrl-D leaves.")
        await self.enter(session)
        if first := " ".join(self.options.message).strip():
            self.say("\n".join(f"> {line}" for line in first.splitlines()), "cyan")
            self._screen.typing.lines.put(first)

    def say(self, text: str, look: Look = "dim") -> None:
        """Show lines."""
        self._screen.say(text, look)

    async def enter(self, session: Session | None, directory: str | None = None) -> None:
        """Continue with a session; None: with a new one, which the next prompt creates, maybe in another directory."""
        if directory is not None:
            self.client = self._target.client_at(directory)
        if self._open is not None:
            await self._open.follower.stop()
        self._open = None
        if session is not None:
            client = self.client = self._target.client_of(session)
            list_messages = ListMessages(session_id=session.id, limit=ATTACH_SHOWN.value)
            await self._screen.show_transcript(session, await client.call(SESSION_MESSAGES, list_messages))
            await self._follow(session)
        self._update()

    async def begin(self, send: Send, draw: str = "", message_id: str | None = None) -> None:
        """Send something that is answered when a turn ends, to a session that may have to be created.

        `draw`: the prompt, which may have to wait; `message_id`: the id it will be stored under.
        """
        session_open = self._open or await self._follow(await session_of(self.client, self.options, None))
        is_kept = self._target.link is not None and self._target.link.is_down
        if draw and (is_kept or self.is_busy):
            self.say("  sent as soon as the server is back" if is_kept else "  queued")
        if not self.is_busy:
            self._pending.answer, session_open.follower.tally = None, Tally(self.session)
        waits: set[asyncio.Future[Any]] = set()
        if message_id is not None:  # the next prompt comes after this one, not at the same time
            waits.add(session_open.prompts.expect(message_id, draw if session_open.follower.is_running else ""))
        task = self._pending.start(send(self.client, session_open.prompts.session.id))
        self._update()
        if waits:
            await asyncio.wait({task, *waits}, return_when=asyncio.FIRST_COMPLETED)

    def leave(self) -> None:
        """End the conversation; a turn on a server goes on."""
        self._pending.is_abandoned = True
        self._screen.typing.lines.end()
        self._idle.set()

    def interrupt(self) -> None:
        """Drop what waits to be sent, and stop the turn; the second time, end the conversation."""
        if dropped := self._screen.typing.drop() if self._screen.is_attended else 0:
            self.say(f"{dropped:,} lines that waited were dropped.", "yellow")
        if self._is_warned:
            self.leave()
        elif self.is_busy and self.session is not None:
            self._pending.start_unawaited(self.client.call(ABORT, SessionId(session_id=self.session.id)))
            self.say("Stopping the turn; press Ctrl-C again to leave.", "yellow")
        elif self._screen.is_attended:
            self.say("Press Ctrl-C again to leave, or use Ctrl-D or /exit.", "yellow")
        self._is_warned = True
        if not self._screen.is_attended:
            self._code = exit_codes.INTERRUPTED
            self._screen.typing.lines.end()

    async def _follow(self, session: Session) -> OpenSession:
        self.client = self._target.client_of(session)
        view, prompts = self._screen.view(), Prompts(session, self._screen.say)
        on = Callbacks(
            failed=lambda error: self.say(f"The question could not be answered: {error}", "red"),
            lost=self._end_if_lost,
            heard=prompts.take,
            changed=self._update,
        )
        open_session = self._open = OpenSession(
            view, prompts, RunFollower(self.client, session, view, self._answerer, on)
        )
        await open_session.follower.start()
        await open_session.follower.catch_up()
        return open_session

    def _end_if_lost(self, error: BaseException) -> None:
        """End the conversation if nothing can be shown any more."""
        self._show_failure(error, is_end=True)
        self._code = exit_codes.ERROR
        self.leave()

    def _resume(self, session: Session) -> str:
        again = f"codeloop attach {self.options.attach}" if self.options.attach else "codeloop"
        return f"Resume with: {again} --session {session.id}"

    def _show_failure(self, error: BaseException, *, is_end: bool = False) -> None:
        """Show an error, unless the conversation is over; without a person it also sets the exit code.

        In a pipe, the end says how to resume; at a terminal this is printed when the program ends.

        That the server is gone is reported by everything that waits for it, and shown once.
        """
        is_known = self._pending.is_given_up and isinstance(error, ServerLost)
        if self._pending.is_abandoned or is_known:
            return
        code, text = exit_codes.ERROR, f"codeloop: Unexpected error: {error!r}"
        if isinstance(error, CodeloopError):
            code, text = exit_codes.of_error(error), f"codeloop: {error}"
        self._code = self._code if self._screen.is_attended else code
        self._pending.is_given_up = isinstance(error, ServerLost)
        self.say(text, "red")
        if (is_end or self._pending.is_given_up) and self.session is not None and not self._screen.is_attended:
            self.say(self._resume(self.session), "red")

    def _note_call_done(self) -> None:
        """Note that a call is done; after the last one the session should become idle."""
        if self._pending.is_empty and self._open is not None and self._open.follower.is_running:
            self._pending.start_unawaited(self._open.follower.settle())
        self._update()

    def _update(self) -> None:
        """Show the sums if a turn is over, and whether one runs."""
        is_busy = self.is_busy
        if is_busy and not self._pending.began:
            self._pending.began = time.monotonic()
        if not is_busy and self._open is not None and not self._open.follower.tally.is_empty:
            self._sum_up(self._open)
        self._screen.typing.rest(quiet=not is_busy)
        if is_busy and not self._pending.is_abandoned:
            self._idle.clear()
        else:
            self._idle.set()

    def _sum_up(self, open_session: OpenSession) -> None:
        reason, code, message, window = "done", exit_codes.DONE, "", 0
        if (answer := self._pending.answer) is not None:
            code, stop = exit_codes.of_turn(answer), answer.stop
            window = stop.context_window if stop else 0
            if stop is not None and stop.reason not in {"done", "aborted"}:
                reason, message = stop.reason, stop.message
        self._is_warned = False
        if code == exit_codes.DONE and self._answerer.refused:
            code = exit_codes.DENIED
        session, began = open_session.prompts.session, self._pending.began
        tally, open_session.follower.tally = open_session.follower.tally, Tally(session)
        seconds = time.monotonic() - began if began else 0.0
        outcome = tally.outcome(reason, code, message, session_id=session.id, seconds=seconds, window=window)
        self._code = self._code if self._screen.is_attended else code or self._code
        self._pending.answer, self._pending.began = None, 0.0
        open_session.view.finish(outcome)

    async def _stop(self) -> None:
        busy, session = "", self.session
        if self.is_busy:
            busy = "The turn goes on there. " if self.options.attach else "The turn was stopped. "
        self._screen.typing.stop()
        await self._pending.stop()
        if self._open is not None:
            await self._open.follower.stop()
        if session is not None and self._screen.is_attended:
            self._screen.write(f"{busy}{self._resume(session)}\n")
