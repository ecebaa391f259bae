"""A conversation with a server in a plain terminal: lines become prompts, what happens is shown above them."""

import asyncio
import signal
import time
from typing import Any

from codeloop.cli import exits
from codeloop.cli.above import Above
from codeloop.cli.ask import Answerer
from codeloop.cli.chosen import check_agent, known, model_of, session_of
from codeloop.cli.early import handled
from codeloop.cli.lines import Typing
from codeloop.cli.outcome import Tally
from codeloop.cli.output import Output
from codeloop.cli.reached import Reached
from codeloop.cli.run import Options
from codeloop.cli.said import take
from codeloop.cli.style import Look, has_colour, paint
from codeloop.cli.textview import TextView
from codeloop.cli.transcript import transcript
from codeloop.cli.watching import Watcher
from codeloop.cli.work import Work
from codeloop.client.client import Client
from codeloop.kit.plain import inert
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import ATTACH_SHOWN
from codeloop.schema.message import ModelRef, Session
from codeloop.schema.operation import ABORT, SESSION_MESSAGES, Operation
from codeloop.schema.prompts import MessageWithParts, RunLimits


class Conversation:
    """Sends what is typed and shows what happens. `person`: somebody sits at a terminal and can be asked."""

    def __init__(self, reached: Reached, options: Options, outputs: tuple[Output, Output], typing: Typing) -> None:
        self.agent = options.agent
        self.model: ModelRef | None = model_of(options.model)
        self._reached = reached
        self._options = options
        self._answers, self._notes = outputs
        self._typing = typing
        self._is_attended = typing.terminal is not None
        self._view = Above(TextView(self._answers, self._notes), self._notes, typing)
        self._answerer = Answerer(self._view if self._is_attended else None, auto=False, asker=typing.ask)
        self._watcher: Watcher | None = None
        self._client = reached.client
        self._following: asyncio.Task[None] | None = None
        self._work = Work(self._failed, self._over)
        self._began = 0.0
        self._idle = asyncio.Event()
        self._is_leaving = False
        self._is_warned = False
        self._code = exits.DONE

    @property
    def client(self) -> Client:
        """What reaches the session's directory."""
        return self._client

    @property
    def session(self) -> Session | None:
        """The session, when there is one yet."""
        return self._watcher.session if self._watcher is not None else None

    @property
    def is_busy(self) -> bool:
        """Whether something runs, whoever began it."""
        return not self._work.is_empty or (self._watcher is not None and self._watcher.is_running)

    @property
    def limits(self) -> RunLimits:
        """What bounds a turn, and whether somebody can be asked."""
        return RunLimits(attended=self._is_attended)

    @property
    def place(self) -> str:
        """Where the server is, and which directory of it this is."""
        return f"{self._options.attach}  {self.session.directory if self.session else self._reached.directory}"

    async def run(self) -> int:
        """Talk until the input ends or the person leaves; gives the exit code. Raises CodeloopError."""
        found = await known(self._reached, self._options)
        await check_agent(self._reached.client if found is None else self._reached.client_of(found), self.agent)
        if found is not None and self._options.fork:
            found = await session_of(self._reached.client_of(found), self._options, found)
        loop = asyncio.get_running_loop()
        for number in handled():
            loop.add_signal_handler(number, self.interrupt if number == signal.SIGINT else self.leave)
        self._typing.start()
        try:
            for note in self._reached.notes:
                self.say(note, "yellow")
            if self._is_attended:
                self.say(f"{self.place}  /help lists the commands, Ctrl-D leaves.")
            await self.enter(found)
            while (line := await self._typing.lines.take()) is not None:
                self._is_warned = False
                await self._take(line)
                if not self._is_attended:
                    await self._idle.wait()
        finally:
            await self._stop()
        return self._code

    def say(self, text: str, look: Look = "dim") -> None:
        """Show lines; what could steer the terminal is made inert."""
        shown = paint(inert(text), look, colour=has_colour(self._notes.stream))
        self._typing.above(lambda: self._notes.write(("" if self._notes.is_at_start else "\n") + shown + "\n"))

    async def enter(self, session: Session | None) -> None:
        """Go on with a session; None: with a new one, made by the next prompt."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        self._watcher, self._following = None, None
        if session is not None:
            self._client = self._reached.client_of(session)
            await _show(self._client, session, self._typing, thinking=self._options.thinking)
            await self._watch(session)
        self._update()

    async def begin(self, operation: Operation, shown: str, **args: Any) -> None:
        """Start what is answered when a turn ends; `shown`: the prompt, which may have to wait."""
        watcher = self._watcher or await self._watch(await session_of(self._client, self._options, None))
        if not self.is_busy:
            self._work.answer, watcher.tally = None, Tally()
        elif shown:
            self.say("  queued")
        waits: set[asyncio.Future[Any]] = set()
        if "message_id" in args:  # the next prompt comes after this one, not beside it
            waits.add(watcher.expect(args["message_id"], shown))
        task = self._work.start(self._client.call(operation, session_id=watcher.session.id, **args))
        self._update()
        if waits:
            await asyncio.wait({task, *waits}, return_when=asyncio.FIRST_COMPLETED)

    def leave(self) -> None:
        """End the conversation; what runs on the server goes on."""
        self._is_leaving = True
        self._typing.lines.end()
        self._idle.set()

    def interrupt(self) -> None:
        """End the turn, and when that was asked for already, the conversation."""
        if self._is_warned:
            self.leave()
        elif self.is_busy and self.session is not None:
            self._work.aside(self._client.call(ABORT, session_id=self.session.id))
            self.say("Ending the turn. Ctrl-C again leaves.", "yellow")
        elif self._is_attended:
            self.say("Ctrl-C again, Ctrl-D or /exit leaves.", "yellow")
        self._is_warned = True
        if not self._is_attended:
            self._code = exits.INTERRUPTED
            self._typing.lines.end()

    async def _take(self, line: str) -> None:
        try:
            await take(self, line)
        except CodeloopError as error:
            self._failed(error)
        self._update()

    async def _watch(self, session: Session) -> Watcher:
        view = TextView(self._answers, self._notes, thinking=self._options.thinking)
        self._client = self._reached.client_of(session)
        self._view = Above(view, self._notes, self._typing)
        self._watcher = Watcher(self._client, session, self._view, self.say)
        self._watcher.changed = self._update
        self._following = asyncio.create_task(self._watcher.follow(self._answerer))
        self._following.add_done_callback(self._check)
        await asyncio.sleep(0)
        await self._watcher.catch_up(self._answerer)
        return self._watcher

    def _check(self, following: asyncio.Task[None]) -> None:
        """End the conversation when nothing can be shown any more."""
        error = None if following.cancelled() else following.exception()
        if error is not None:
            self._failed(error)
            self._code = exits.ERROR
            self.leave()

    def _failed(self, error: BaseException) -> None:
        """Tell what went wrong; where nobody reads along it counts for the exit code."""
        code, text = exits.ERROR, f"codeloop failed: {error!r}"
        if isinstance(error, CodeloopError):
            code, text = exits.of_error(error), f"codeloop: {error}"
        self._code = self._code if self._is_attended else code
        self.say(text, "red")

    def _over(self) -> None:
        """Hear that a call is over: when it was the last, the session should be idle."""
        if self._work.is_empty and self._watcher is not None and self._watcher.is_running:
            self._work.aside(self._watcher.settle())
        self._update()

    def _update(self) -> None:
        """Show the sums when a turn is over, and whether something runs."""
        watcher, is_busy = self._watcher, self.is_busy
        if is_busy and not self._began:
            self._began = time.monotonic()
        if not is_busy and watcher is not None and not watcher.tally.is_empty:
            self._sum_up(watcher)
        self._typing.rest(quiet=not is_busy)
        if is_busy and not self._is_leaving:
            self._idle.clear()
        else:
            self._idle.set()

    def _sum_up(self, watcher: Watcher) -> None:
        reason, code, message = "done", exits.DONE, ""
        if (answer := self._work.answer) is not None:
            code, stop = exits.of_turn(answer), answer.stop
            if stop is not None and stop.reason not in {"done", "aborted"}:
                reason, message = stop.reason, stop.message
        self._is_warned = False
        if code == exits.DONE and self._answerer.refused:
            code = exits.DENIED
        seconds = time.monotonic() - self._began if self._began else 0.0
        outcome = watcher.tally.outcome(reason, code, message, session_id=watcher.session.id, seconds=seconds)
        self._code = self._code if self._is_attended else code or self._code
        watcher.tally, self._work.answer, self._began = Tally(), None, 0.0
        self._view.finish(outcome)

    async def _stop(self) -> None:
        is_busy, session = self.is_busy, self.session
        self._typing.stop()
        await self._work.stop()
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        if session is not None and self._is_attended:
            goes_on = "The turn goes on there. " if is_busy else ""
            again = f"codeloop attach {self._options.attach} --session {session.id}"
            self._notes.write(inert(f"{goes_on}Go on with: {again}\n"))


async def _show(client: Client, session: Session, typing: Typing, *, thinking: bool) -> None:
    """Show how a session ended."""
    limit = ATTACH_SHOWN.value
    messages: list[MessageWithParts] = await client.call(SESSION_MESSAGES, session_id=session.id, limit=limit)
    if messages and typing.terminal is not None:
        await typing.terminal.drain()
        typing.above(lambda: transcript(session, messages, thinking=thinking))
