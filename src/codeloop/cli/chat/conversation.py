"""A conversation in a plain terminal: lines become prompts, what happens is shown above them."""

import asyncio
import signal
import time
from typing import Any

from codeloop.cli import exit_codes
from codeloop.cli.bootstrap import handled
from codeloop.cli.chat.above import Above
from codeloop.cli.chat.input import Typing
from codeloop.cli.chat.parse_line import take
from codeloop.cli.chat.pending import Work
from codeloop.cli.chat.slash_commands import Send
from codeloop.cli.follow.follower import RunFollower
from codeloop.cli.follow.prompts import Prompts
from codeloop.cli.output.shown import view_of
from codeloop.cli.output.streams import Output
from codeloop.cli.output.style import Look, has_colour, paint
from codeloop.cli.output.transcript import transcript
from codeloop.cli.questions.answerer import Answerer
from codeloop.cli.run.options import Options
from codeloop.cli.run.result import Tally
from codeloop.cli.target.selection import check_agent, check_model, known, model_of, session_of
from codeloop.cli.target.target import Reached
from codeloop.client.client import Client
from codeloop.kit.terminal_text import inert
from codeloop.schema.api.session_inputs import RunLimits
from codeloop.schema.api.session_requests import ListMessages, SessionId
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import ATTACH_SHOWN
from codeloop.schema.message import ModelRef, Session
from codeloop.schema.operation import ABORT, SESSION_MESSAGES


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
        self._view = Above(view_of("text", self._answers, self._notes, ""), self._notes, typing)
        self._answerer = Answerer(self._view if self._is_attended else None, auto=options.auto, asker=typing.ask)
        self._follower: RunFollower | None = None
        self._prompts: Prompts | None = None
        self._client = reached.client
        self._work = Work(self._failed, self._over)
        self._began = 0.0
        self._idle = asyncio.Event()
        self._is_leaving = False
        self._is_warned = False
        self._code = exit_codes.DONE

    @property
    def client(self) -> Client:
        """What reaches the session's directory."""
        return self._client

    @property
    def session(self) -> Session | None:
        """The session, when there is one yet."""
        return self._prompts.session if self._prompts is not None else None

    @property
    def is_busy(self) -> bool:
        """Whether something runs, whoever began it."""
        return not self._work.is_empty or (self._follower is not None and self._follower.is_running)

    @property
    def limits(self) -> RunLimits:
        """What bounds a turn, and whether somebody can be asked."""
        return RunLimits(attended=self._is_attended)

    @property
    def place(self) -> str:
        """Where the server is, if it is one, and which directory this is."""
        directory = self.session.directory if self.session else self._reached.directory
        return f"{self._options.attach}  {directory}" if self._options.attach else directory

    async def run(self) -> int:
        """Talk until the input ends or the person leaves; gives the exit code. Raises CodeloopError."""
        found = await known(self._reached, self._options)
        client = self._reached.client if found is None else self._reached.client_of(found)
        await check_agent(client, self.agent)
        if self.model is not None:
            await check_model(client, self.model)
        if found is not None and self._options.fork:
            found = await session_of(self._reached.client_of(found), self._options, found)
        loop = asyncio.get_running_loop()
        for number in handled():
            loop.add_signal_handler(number, self.interrupt if number == signal.SIGINT else self.leave)
        self._typing.start()
        try:
            if self._reached.link is not None:
                self._reached.link.heard = lambda text: self.say(f"codeloop: {text}", "yellow")
            for note in self._reached.notes:
                self.say(note, "yellow")
            if self._is_attended:
                self.say(f"{self.place}  /help lists the commands, Ctrl-D leaves.")
            await self.enter(found)
            if first := " ".join(self._options.message).strip():
                self.say("\n".join(f"> {line}" for line in first.splitlines()), "cyan")
                self._typing.lines.put(first)
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
        if self._follower is not None:
            await self._follower.stop()
        self._follower, self._prompts = None, None
        if session is not None:
            self._client = self._reached.client_of(session)
            await _show(self._client, session, self._typing, thinking=self._options.thinking)
            await self._watch(session)
        self._update()

    async def begin(self, send: Send, shown: str = "", message_id: str | None = None) -> None:
        """Send what is answered when a turn ends; `shown`: the prompt, which may have to wait."""
        if self._follower is None or self._prompts is None:
            follower, prompts = await self._watch(await session_of(self._client, self._options, None))
        else:
            follower, prompts = self._follower, self._prompts
        is_kept = self._reached.link is not None and self._reached.link.is_down
        if shown and (is_kept or self.is_busy):
            self.say("  sent as soon as the server is back" if is_kept else "  queued")
        if not self.is_busy:
            self._work.answer, follower.tally = None, Tally(self.session)
        waits: set[asyncio.Future[Any]] = set()
        if message_id is not None:  # the next prompt comes after this one, not beside it
            waits.add(prompts.expect(message_id, shown if follower.is_running else ""))
        task = self._work.start(send(self._client, prompts.session.id))
        self._update()
        if waits:
            await asyncio.wait({task, *waits}, return_when=asyncio.FIRST_COMPLETED)

    def leave(self) -> None:
        """End the conversation; what runs on a server goes on."""
        self._is_leaving = True
        self._typing.lines.end()
        self._idle.set()

    def interrupt(self) -> None:
        """End the turn, and when that was asked for already, the conversation."""
        if self._is_warned:
            self.leave()
        elif self.is_busy and self.session is not None:
            self._work.aside(self._client.call(ABORT, SessionId(session_id=self.session.id)))
            self.say("Ending the turn. Ctrl-C again leaves.", "yellow")
        elif self._is_attended:
            self.say("Ctrl-C again, Ctrl-D or /exit leaves.", "yellow")
        self._is_warned = True
        if not self._is_attended:
            self._code = exit_codes.INTERRUPTED
            self._typing.lines.end()

    async def _take(self, line: str) -> None:
        try:
            await take(self, line)
        except CodeloopError as error:
            self._failed(error)
        self._update()

    async def _watch(self, session: Session) -> tuple[RunFollower, Prompts]:
        view = view_of("text", self._answers, self._notes, session.id, thinking=self._options.thinking)
        self._client = self._reached.client_of(session)
        self._view = Above(view, self._notes, self._typing)
        self._prompts = Prompts(session, self.say)
        self._follower = RunFollower(self._client, session, self._view, self._answerer)
        self._follower.heard = self._prompts.take
        self._follower.changed = self._update
        self._follower.failed = lambda error: self.say(f"The question could not be answered: {error}", "red")
        self._follower.lost = self._lost
        await self._follower.start()
        await self._follower.catch_up()
        return self._follower, self._prompts

    def _lost(self, error: BaseException) -> None:
        """End the conversation when nothing can be shown any more."""
        self._failed(error)
        self._code = exit_codes.ERROR
        self.leave()

    def _failed(self, error: BaseException) -> None:
        """Tell what went wrong; where nobody reads along it counts for the exit code."""
        code, text = exit_codes.ERROR, f"codeloop: It failed unexpectedly: {error!r}"
        if isinstance(error, CodeloopError):
            code, text = exit_codes.of_error(error), f"codeloop: {error}"
        self._code = self._code if self._is_attended else code
        self.say(text, "red")

    def _over(self) -> None:
        """Hear that a call is over: when it was the last, the session should be idle."""
        if self._work.is_empty and self._follower is not None and self._follower.is_running:
            self._work.aside(self._follower.settle())
        self._update()

    def _update(self) -> None:
        """Show the sums when a turn is over, and whether something runs."""
        follower, is_busy = self._follower, self.is_busy
        if is_busy and not self._began:
            self._began = time.monotonic()
        if not is_busy and follower is not None and not follower.tally.is_empty:
            self._sum_up(follower)
        self._typing.rest(quiet=not is_busy)
        if is_busy and not self._is_leaving:
            self._idle.clear()
        else:
            self._idle.set()

    def _sum_up(self, follower: RunFollower) -> None:
        reason, code, message, window = "done", exit_codes.DONE, "", 0
        if (answer := self._work.answer) is not None:
            code, stop = exit_codes.of_turn(answer), answer.stop
            window = stop.context_window if stop else 0
            if stop is not None and stop.reason not in {"done", "aborted"}:
                reason, message = stop.reason, stop.message
        self._is_warned = False
        if code == exit_codes.DONE and self._answerer.refused:
            code = exit_codes.DENIED
        seconds = time.monotonic() - self._began if self._began else 0.0
        session_id = self.session.id if self.session else ""
        tally, follower.tally = follower.tally, Tally(self.session)
        outcome = tally.outcome(reason, code, message, session_id=session_id, seconds=seconds, window=window)
        self._code = self._code if self._is_attended else code or self._code
        self._work.answer, self._began = None, 0.0
        self._view.finish(outcome)

    async def _stop(self) -> None:
        busy, session = "", self.session
        if self.is_busy:
            busy = "The turn goes on there. " if self._options.attach else "The turn was stopped. "
        self._typing.stop()
        await self._work.stop()
        if self._follower is not None:
            await self._follower.stop()
        if session is not None and self._is_attended:
            again = f"codeloop attach {self._options.attach}" if self._options.attach else "codeloop"
            self._notes.write(inert(f"{busy}Resume with: {again} --session {session.id}\n"))


async def _show(client: Client, session: Session, typing: Typing, *, thinking: bool) -> None:
    """Show how a session ended."""
    limit = ATTACH_SHOWN.value
    messages = await client.call(SESSION_MESSAGES, ListMessages(session_id=session.id, limit=limit))
    if messages and typing.terminal is not None:
        await typing.terminal.drain()
        typing.above(lambda: transcript(session, messages, thinking=thinking))
