"""A conversation with a server in a plain terminal: lines become prompts, what happens is shown above them."""

import asyncio
import signal
import time
from typing import Any

from codeloop.cli import exits
from codeloop.cli.ask import Answerer
from codeloop.cli.chosen import check_agent, known, model_of, session_of
from codeloop.cli.early import handled
from codeloop.cli.lines import Typing
from codeloop.cli.mention import prompt_parts
from codeloop.cli.outcome import Tally
from codeloop.cli.output import Output
from codeloop.cli.reached import Reached
from codeloop.cli.run import Options
from codeloop.cli.slash import COMMANDS
from codeloop.cli.style import Look, has_colour, paint
from codeloop.cli.textview import TextView
from codeloop.cli.transcript import transcript
from codeloop.cli.watching import Watcher
from codeloop.client.client import Client
from codeloop.kit.plain import inert
from codeloop.schema.command import Command
from codeloop.schema.errors import CodeloopError
from codeloop.schema.ids import new_id
from codeloop.schema.limits import ATTACH_SHOWN, TURN_SETTLE
from codeloop.schema.message import ModelRef, Session
from codeloop.schema.operation import (
    ABORT,
    COMMAND,
    COMMAND_LIST,
    PROMPT,
    SESSION_MESSAGES,
    SESSION_SHELL,
    Operation,
)
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
        self._is_attended = isinstance(typing.terminal, Output)
        self._answerer = Answerer(typing.terminal, auto=False, asker=typing.ask)
        self._watcher: Watcher | None = None
        self._client = reached.client
        self._following: asyncio.Task[None] | None = None
        self._work: set[asyncio.Task[Any]] = set()
        self._asides: set[asyncio.Task[None]] = set()
        self._answer: MessageWithParts | None = None
        self._began = 0.0
        self._idle = asyncio.Event()
        self._leaving = asyncio.Event()
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
        return bool(self._work) or (self._watcher is not None and self._watcher.is_running)

    @property
    def place(self) -> str:
        """Where the server is, and which directory of it this is."""
        return f"{self._options.attach}  {self.session.directory if self.session else self._reached.directory}"

    async def run(self) -> int:
        """Hold the conversation until the input ends or the person leaves; gives the exit code. Raises CodeloopError."""
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
            while (line := await self._line()) is not None:
                await self._take(line)
                while not self._is_attended and self.is_busy and not self._leaving.is_set():
                    await self._settled()
        finally:
            await self._stop()
        return self._code

    def say(self, text: str, look: Look = "dim") -> None:
        """Show lines; what could steer the terminal is made inert."""
        shown = paint(inert(text), look, colour=has_colour(self._notes.stream))
        self._typing.above(lambda: self._notes.write(shown + "\n"))

    async def enter(self, session: Session | None) -> None:
        """Go on with a session; None: with a new one, made by the next prompt."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        self._watcher, self._following = None, None
        if session is not None:
            self._client = self._reached.client_of(session)
            await self._show(session)
            await self._watch(session)
        self._update()

    async def begin(self, operation: Operation, **args: Any) -> None:
        """Start what is answered when a turn ends."""
        watcher = self._watcher
        if watcher is None:
            session = await session_of(self._client, self._options, None)
            watcher = await self._watch(session)
        if not self.is_busy:
            self._began, self._answer, watcher.tally = time.monotonic(), None, Tally()
        message_id, text = args.get("message_id"), args.pop("shown", "")
        waits = {watcher.expect(message_id, text)} if message_id is not None else set()
        if text and self.is_busy:
            self.say("  queued")
        task = asyncio.create_task(self._client.call(operation, session_id=watcher.session.id, **args))
        self._work.add(task)
        task.add_done_callback(self._done)
        self._update()
        if waits:  # the next prompt comes after this one, not beside it
            await asyncio.wait({task, *waits}, return_when=asyncio.FIRST_COMPLETED)

    def leave(self) -> None:
        """End the conversation; what runs on the server goes on."""
        self._leaving.set()

    def interrupt(self) -> None:
        """End the turn, and when that was asked for already, the conversation."""
        if self._is_warned or not self._is_attended:
            self._code = self._code or exits.INTERRUPTED * (not self._is_attended)
            self.leave()
        elif self.is_busy and self.session is not None:
            self._aside(self._client.call(ABORT, session_id=self.session.id))
            self.say("Ending the turn. Ctrl-C again leaves.", "yellow")
        else:
            self.say("Ctrl-C again, Ctrl-D or /exit leaves.", "yellow")
        self._is_warned = True

    async def _line(self) -> str | None:
        """Wait for a line; None when the input ends or the conversation does."""
        taking = asyncio.create_task(self._typing.lines.take())
        leaving = asyncio.create_task(self._leaving.wait())
        await asyncio.wait((taking, leaving), return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if self._leaving.is_set() or not taking.done():
            taking.cancel()
            return None
        self._is_warned = False
        return taking.result()

    async def _take(self, line: str) -> None:
        try:
            if line.startswith("/"):
                await self._slash(*line[1:].partition(" ")[::2])
            elif line.startswith("!") and line[1:].strip():
                await self.begin(SESSION_SHELL, command=line[1:].strip(), agent=self.agent, model=self.model)
            elif line.strip():
                await self._prompt(line)
        except CodeloopError as error:
            self._failed(error)
        self._update()

    async def _prompt(self, text: str) -> None:
        parts = await prompt_parts(self._client, text)
        limits = RunLimits(attended=self._is_attended)
        chosen = {"model": self.model, "agent": self.agent, "limits": limits}
        await self.begin(PROMPT, parts=parts, message_id=new_id("msg"), shown=text, **chosen)

    async def _slash(self, name: str, words: str) -> None:
        if name in COMMANDS:
            await COMMANDS[name].run(self, words.strip())
            return
        commands: list[Command] = await self._client.call(COMMAND_LIST)
        if all(command.name != name for command in commands):
            raise exits.UsageProblem(f"There is no command /{name}. /help lists them; a space before it makes it text.")
        model = f"{self.model.provider_id}/{self.model.model_id}" if self.model else None
        limits = RunLimits(attended=self._is_attended)
        chosen = {"model": model, "agent": self.agent, "limits": limits}
        await self.begin(
            COMMAND, command=name, arguments=words, message_id=new_id("msg"), shown=f"/{name} {words}", **chosen
        )

    async def _show(self, session: Session) -> None:
        """Show how a session ended."""
        limit = ATTACH_SHOWN.value
        messages: list[MessageWithParts] = await self._client.call(SESSION_MESSAGES, session_id=session.id, limit=limit)
        if messages and self._is_attended:
            await self._notes.drain()
            self._typing.above(lambda: transcript(session, messages, thinking=self._options.thinking))

    async def _watch(self, session: Session) -> Watcher:
        view = TextView(self._answers, self._notes, thinking=self._options.thinking)
        self._client = self._reached.client_of(session)
        self._view, self._watcher = view, Watcher(self._client, session, self._typing, view, self.say)
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
            self.leave()

    def _failed(self, error: BaseException) -> None:
        self._code = exits.of_error(error) if isinstance(error, CodeloopError) else exits.ERROR
        self.say(f"codeloop: {error}" if isinstance(error, CodeloopError) else f"codeloop failed: {error!r}", "red")

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._work.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failed(error)
        elif not task.cancelled() and isinstance(answer := task.result(), MessageWithParts):
            self._answer = answer
        if not self._work:
            self._aside(self._settle())
        self._update()

    async def _settle(self) -> None:
        """Ask whether the session works, should the stream not tell that it no longer does."""
        await asyncio.sleep(TURN_SETTLE.seconds)
        if self._watcher is not None and self._watcher.is_running:
            await self._watcher.look()

    def _aside(self, work: Any) -> None:
        """Do something beside the rest; what goes wrong is told."""
        task = asyncio.ensure_future(work)
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)
        task.add_done_callback(lambda done: done.cancelled() or not done.exception() or self._failed(done.exception()))

    async def _settled(self) -> None:
        """Wait until something ends."""
        self._idle.clear()
        waiting = [asyncio.create_task(each.wait()) for each in (self._idle, self._leaving)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()

    def _update(self) -> None:
        """Show the sums when a turn is over, and whether something runs."""
        watcher, is_busy = self._watcher, self.is_busy
        if not is_busy and watcher is not None and not watcher.tally.is_empty:
            self._sum_up(watcher)
        self._typing.rest(quiet=not is_busy)
        if not is_busy:
            self._idle.set()

    def _sum_up(self, watcher: Watcher) -> None:
        reason, code, message = "done", exits.DONE, ""
        if self._answer is not None:
            code = exits.of_turn(self._answer)
            stop = self._answer.stop
            if stop is not None and stop.reason not in {"done", "aborted"}:
                reason, message = stop.reason, stop.message
        seconds = time.monotonic() - self._began if self._began else 0.0
        outcome = watcher.tally.outcome(reason, code, message, session_id=watcher.session.id, seconds=seconds)
        self._code = self._code if self._is_attended else code or self._code
        watcher.tally, self._answer, self._began = Tally(), None, 0.0
        self._typing.above(lambda: self._view.finish(outcome))

    async def _stop(self) -> None:
        is_busy, session = self.is_busy, self.session
        self._typing.stop()
        tasks = [*self._work, *self._asides, *([self._following] if self._following else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if session is not None and self._is_attended:
            goes_on = "The turn goes on there. " if is_busy else ""
            self._notes.write(
                inert(f"{goes_on}Go on with: codeloop attach {self._options.attach} --session {session.id}\n")
            )
