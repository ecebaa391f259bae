"""`LineConversation`: runs `codeloop --plain` and `attach --plain` from the first line to the last.

A turn is followed, answered and summed up as in `run`. In addition, a conversation queues lines
that are typed during a turn, and keeps its session open between turns,
while other clients may work in it, too.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable

from codeloop.cli import exit_codes
from codeloop.cli.bootstrap import list_end_signals
from codeloop.cli.chat.line_terminal import LineTerminal
from codeloop.cli.chat.open_session import OpenSession, SendCall
from codeloop.cli.option_values import Options
from codeloop.cli.output.style import TextStyle
from codeloop.cli.questions.answerer import Answerer
from codeloop.cli.target.selection import (
    check_agent,
    check_model,
    choose_session,
    prepare_session,
    resolve_model,
)
from codeloop.client.client import ServerLost
from codeloop.client.target import Target
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.schema.api.session_requests import SESSION_GET, SessionId
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.limits import ATTACH_SHOWN
from codeloop.schema.message import Session
from codeloop.schema.wire import replace


class LineConversation:
    """Takes lines from a terminal or a pipe until the end, and shows what happens in the session.

    `options`: the options of the next prompt and the next session.
    `client`: the client of the session's directory.
    """

    def __init__(self, target: Target, options: Options, terminal: LineTerminal) -> None:
        self.client = target.client
        self.options = options
        self.is_attended = terminal.is_attended
        """Whether a user sits at a terminal and can be asked."""
        self._target = target
        self._terminal = terminal
        self._answerer = Answerer(terminal if terminal.is_attended else None, auto=options.auto)
        self._open_session: OpenSession | None = None
        self._agent_changes = 0
        """How often the session had changed its agent when the user chose one."""
        self._idle = asyncio.Event()
        # Whether the user was told that the next Ctrl-C ends the conversation.
        self._is_warned = False
        self._is_over = False
        # Whether the loss of the server was shown: everything that waits for the server reports it.
        self._is_lost = False
        self._exit_code = exit_codes.DONE

    @property
    def session(self) -> Session | None:
        """The session, if there is one yet."""
        return self._open_session.session if self._open_session is not None else None

    @property
    def agent(self) -> str | None:
        """The agent of the next prompts; None: the session's.

        What the user chose, with `--agent` or here,
        ends when the session goes on with another agent.
        """
        if (
            self._open_session is not None
            and self._open_session.agent_changes != self._agent_changes
        ):
            return self._open_session.session.agent
        return self.options.agent

    def choose_agent(self, name: str) -> None:
        """Use an agent for the next prompts."""
        self.options = replace(self.options, agent=name)
        self._agent_changes = (
            self._open_session.agent_changes if self._open_session is not None else 0
        )

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs, whoever began it."""
        return self._open_session is not None and self._open_session.is_busy

    @property
    def location(self) -> str:
        """The server, if there is one, and the directory."""
        directory = self.session.directory if self.session else self._target.directory
        return f"{self.options.attach}  {directory}" if self.options.attach else directory

    async def run(self, take_line: Callable[["LineConversation", str], Awaitable[None]]) -> int:
        """Call `take_line` with each line until the input ends or the user leaves;
        return the exit code.

        Raises CodeloopError if the conversation can't begin.
        """
        session = await choose_session(self._target, self.options)
        client = (
            self._target.client if session is None else self._target.get_session_client(session)
        )
        await check_agent(client, self.options.agent)
        self.options = replace(self.options, model=await resolve_model(client, self.options.model))
        await check_model(client, self.options.model)
        if session is not None:
            session = await prepare_session(client, self.options, session)
        # Only Ctrl-C can mean the turn alone; SIGTERM and SIGHUP end the conversation.
        loop = asyncio.get_running_loop()
        for number in list_end_signals():
            loop.add_signal_handler(
                number, self._interrupt if number == signal.SIGINT else self.leave
            )
        self._terminal.lines.start_reading()
        try:
            await self._show_start(session)
            while (line := await self._terminal.lines.take_line()) is not None:
                self._is_warned = False
                self._terminal.set_ready(is_ready=False)
                try:
                    await take_line(self, line)
                except CodeloopError as error:
                    self._show_failure(error)
                self._refresh_prompt()
                # In a pipe, a line is answered before the next one is taken;
                # at a terminal, prompts are queued.
                if not self.is_attended:
                    await self._idle.wait()
        finally:
            await self._stop()
        return self._exit_code

    async def _show_start(self, session: Session | None) -> None:
        if self._target.connection is not None:
            self._target.connection.on_report = lambda text: self.show_text(
                f"codeloop: {text}", "yellow"
            )
        for note in self._target.notes:
            self.show_text(note, "yellow")
        if self.is_attended:
            self.show_text(f"{self.location}  /help lists the commands, Ctrl-D leaves.")
        await self.switch_session(session)
        if prompt := " ".join(self.options.message).strip():
            self.show_text("\n".join(f"> {line}" for line in prompt.splitlines()), "cyan")
            self._terminal.lines.put(prompt)
        else:
            self._refresh_prompt()

    def show_text(self, text: str, style: TextStyle = "dim") -> None:
        """Show lines above the prompt."""
        self._terminal.show_text(text, style)

    async def switch_session(self, session: Session | None, directory: str | None = None) -> None:
        """Continue with a session; None: with a new one, which the next prompt creates,
        maybe in another directory.
        """
        if directory is not None:
            self.client = self._target.get_directory_client(directory)
        if self._open_session is not None:
            await self._open_session.stop()
        self._open_session = None
        if session is not None:
            client = self._target.get_session_client(session)
            list_messages = ListMessages(session_id=session.id, limit=ATTACH_SHOWN.value)
            await self._terminal.show_transcript(
                session, await client.call(SESSION_MESSAGES, list_messages)
            )
            await self._follow(session)

    async def load_session(self) -> Session:
        """Return the session as it is now. Raises UsageProblem if there is none yet."""
        if self.session is None:
            raise UsageProblem("There is no session yet; it starts with the first prompt.")
        return await self.client.call(SESSION_GET, SessionId(session_id=self.session.id))

    async def send(
        self, send_call: SendCall, text: str = "", message_id: str | None = None
    ) -> None:
        """Make a call that returns when a turn ends; the session is created first if there is none.

        `text`: the prompt, which may have to wait. `message_id`: the id under which
        the prompt will be stored.
        """
        open_session = self._open_session or await self._follow(
            await prepare_session(self.client, self.options, None)
        )
        is_offline = self._target.connection is not None and self._target.connection.is_down
        if text and (is_offline or self.is_busy):
            self.show_text("  sent as soon as the server is back" if is_offline else "  queued")
        await open_session.send(send_call, text, message_id)

    def leave(self) -> None:
        """End the conversation; a turn on a server goes on."""
        self._is_over = True
        self._terminal.lines.end_input()
        self._idle.set()

    def _interrupt(self) -> None:
        """Handle Ctrl-C: drop the lines that wait and stop the turn;
        the second time, end the conversation.
        """
        if not self.is_attended:
            self._exit_code = exit_codes.INTERRUPTED
            self._terminal.lines.end_input()
        elif count := self._terminal.lines.drop_waiting():
            self.show_text(f"{count:,} lines that waited were dropped.", "yellow")
        if self._is_warned:
            self.leave()
        elif self._open_session is not None and self._open_session.is_busy:
            self._open_session.abort()
            self.show_text("Stopping the turn; press Ctrl-C again to leave.", "yellow")
        elif self.is_attended:
            self.show_text("Press Ctrl-C again to leave, or use Ctrl-D or /exit.", "yellow")
        self._is_warned = True

    async def _follow(self, session: Session) -> OpenSession:
        self.client = self._target.get_session_client(session)
        self._agent_changes = 0
        self._open_session = OpenSession(
            self.client,
            session,
            self._terminal,
            self._answerer,
            on_failure=self._show_failure,
            on_loss=self._end_after_loss,
            on_change=self._refresh_prompt,
        )
        await self._open_session.start()
        return self._open_session

    def _end_after_loss(self, error: BaseException) -> None:
        """End the conversation, because its events can't be followed any more."""
        self._show_failure(error, is_end=True)
        self._exit_code = exit_codes.ERROR
        self.leave()

    def _format_resume_hint(self, session: Session) -> str:
        program = f"codeloop attach {self.options.attach}" if self.options.attach else "codeloop"
        return f"Resume with: {program} --session {session.id}"

    def _show_failure(self, error: BaseException, *, is_end: bool = False) -> None:
        """Show an error, unless the conversation is over;
        without a user it also sets the exit code.

        `is_end`: the conversation ends by it. Then, as when the server is lost, a pipe gets the
        hint how to resume; a terminal gets it from `_stop`.
        """
        if self._is_over or (self._is_lost and isinstance(error, ServerLost)):
            return
        code, text = exit_codes.ERROR, f"codeloop: Unexpected error: {error!r}"
        if isinstance(error, CodeloopError):
            code, text = exit_codes.choose_error_code(error), f"codeloop: {error}"
        if not self.is_attended:
            self._exit_code = code
        self._is_lost = isinstance(error, ServerLost)
        self.show_text(text, "red")
        if (is_end or self._is_lost) and self.session is not None and not self.is_attended:
            self.show_text(self._format_resume_hint(self.session), "red")

    def _refresh_prompt(self, code: int = exit_codes.DONE) -> None:
        """Show the prompt if nothing runs, and note whether that is so.

        `code`: the exit code of the turn that has ended, if any.
        """
        # In a pipe, the last failure is the exit code of the whole conversation.
        if not self.is_attended:
            self._exit_code = code or self._exit_code
        self._terminal.set_ready(is_ready=not self.is_busy)
        if self.is_busy and not self._is_over:
            self._idle.clear()
            return
        self._is_warned = False
        self._idle.set()

    async def _stop(self) -> None:
        turn_note = ""
        if self.is_busy:
            turn_note = (
                "The turn goes on there. " if self.options.attach else "The turn was stopped. "
            )
        self._terminal.lines.stop_reading()
        self._terminal.set_ready(is_ready=False)
        if self._open_session is not None:
            await self._open_session.stop()
            if self.is_attended:
                self.show_text(f"{turn_note}{self._format_resume_hint(self._open_session.session)}")
