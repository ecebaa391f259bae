"""`OpenSession`: the session of a conversation,
which is followed and shown until another one is opened.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from codeloop.cli import exit_codes
from codeloop.cli.chat.line_terminal import LineTerminal
from codeloop.cli.follow.follower import FollowCallbacks, SessionFollower
from codeloop.cli.output.result import Tally
from codeloop.cli.output.style import TextStyle
from codeloop.cli.questions.answerer import Answerer
from codeloop.cli.run.turn import read_ending
from codeloop.client.client import Client
from codeloop.kit.asyncio_tasks import cancel_all, report_failure
from codeloop.schema.api.session_inputs import ABORT, MessageWithParts
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import get_error_message
from codeloop.schema.event import Event, MessageUpdated, PartUpdated, SessionDeleted, SessionUpdated
from codeloop.schema.live_events import SessionErrored
from codeloop.schema.message import AssistantMessage, Session, UserMessage
from codeloop.schema.part import FilePart, TextPart

SendCall = Callable[[Client, str], Coroutine[Any, Any, object]]
"""Sends a prompt or a command to the session of an id,
and returns the answer when the turn ends.
"""
ErrorCallback = Callable[[BaseException], object]


class OpenSession:
    """Shows the events of a session, whoever caused them, and the sums of each turn,
    until `stop` is called.

    `on_failure`: called with the error of a call, such as those of `send` and `abort`. `on_loss`:
    called with the error that ended the following. `on_change`: called when the session starts or
    stops working, with the exit code of the turn that has ended, else 0.
    """

    def __init__(
        self,
        client: Client,
        session: Session,
        terminal: LineTerminal,
        answerer: Answerer,
        *,
        on_failure: ErrorCallback,
        on_loss: ErrorCallback,
        on_change: Callable[[int], object],
    ) -> None:
        self.client = client
        self._answerer = answerer
        self._on_failure = on_failure
        self._on_change = on_change
        self._prompts = _PromptDisplay(session, terminal.show_text)
        self._view = terminal.make_view()
        callbacks = FollowCallbacks(
            on_failure=lambda error: terminal.show_text(
                f"The question could not be answered: {error}", "red"
            ),
            on_loss=on_loss,
            on_event=self._prompts.handle_event,
            on_change=self._handle_change,
        )
        self._follower = SessionFollower(client, session, self._view, answerer, callbacks)
        # The last answer that has not been summed up yet.
        self._answer: MessageWithParts | None = None
        # When the session began to work (monotonic seconds); None while it does not.
        self._start_time: float | None = None
        # Calls that return when a turn ends.
        self._turn_tasks: set[asyncio.Task[Any]] = set()
        self._background_tasks: set[asyncio.Task[Any]] = set()

    @property
    def session(self) -> Session:
        """The session as last seen."""
        return self._prompts.session

    @property
    def agent_changes(self) -> int:
        """How often the session went on with another agent since it is followed."""
        return self._prompts.agent_changes

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs, whoever began it."""
        return bool(self._turn_tasks) or self._follower.is_running

    async def start(self) -> None:
        """Follow the session from now on."""
        await self._follower.start()
        await self._follower.catch_up()

    async def stop(self) -> None:
        """Stop following, and stop waiting for answers; a turn on a server goes on."""
        await cancel_all([*self._turn_tasks, *self._background_tasks])
        await self._follower.stop()

    async def send(
        self, send_call: SendCall, text: str = "", message_id: str | None = None
    ) -> None:
        """Start a call that returns when a turn ends.

        `text`: the prompt, which is shown when its turn comes after waiting. `message_id`: the id
        under which the prompt will be stored; then this returns once it is stored,
        so that the next prompt comes after it.
        """
        if not self.is_busy:
            self._answer, self._follower.tally = None, Tally(self.session)
        stored: asyncio.Future[None] | None = None
        if message_id is not None:
            stored = self._prompts.expect(message_id, text if self._follower.is_running else "")
        turn = self._start_task(send_call(self.client, self.session.id), self._turn_tasks)
        self._handle_change()
        # The call ends first if the prompt was refused, and never stored.
        if stored is not None:
            futures: set[asyncio.Future[Any]] = {turn, stored}
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)

    def abort(self) -> None:
        """Ask the server to end the turn that runs."""
        self._start_task(
            self.client.call(ABORT, SessionId(session_id=self.session.id)), self._background_tasks
        )

    def _start_task(
        self, call: Coroutine[Any, Any, Any], group: set[asyncio.Task[Any]]
    ) -> asyncio.Task[Any]:
        task = asyncio.create_task(call)
        group.add(task)
        task.add_done_callback(lambda task: self._handle_result(task, group))
        return task

    def _handle_result(self, task: asyncio.Task[Any], group: set[asyncio.Task[Any]]) -> None:
        group.discard(task)
        report_failure(task, self._on_failure)
        if group is self._background_tasks or task.cancelled():
            return
        if task.exception() is None and isinstance(task.result(), MessageWithParts):
            self._answer = task.result()
        # The event that ends the turn may be lost with the connection;
        # without a check the prompt would never return.
        if not self._turn_tasks and self._follower.is_running:
            self._start_task(self._follower.confirm_end(), self._background_tasks)
        self._handle_change()

    def _handle_change(self) -> None:
        """Sum up a turn that is over, and report that the session has started
        or stopped working.
        """
        code = exit_codes.DONE
        if self.is_busy:
            self._start_time = self._start_time or time.monotonic()
        elif not self._follower.tally.is_empty:
            code = self._sum_up()
        self._on_change(code)

    def _sum_up(self) -> int:
        ending = read_ending(self._answer, self._answerer.refusal)
        # The user has caused the abort, and the error was shown when it came: neither is repeated.
        if ending.reason == "aborted" or ending.message == self._prompts.error:
            ending = ending._replace(message="")
        seconds = time.monotonic() - self._start_time if self._start_time is not None else 0.0
        outcome = self._follower.tally.make_outcome(
            ending, session_id=self.session.id, seconds=seconds
        )
        self._follower.tally = Tally(self.session)
        # The next turn begins anew.
        self._answer, self._start_time = None, None
        self._prompts.error = self._answerer.refusal = ""
        self._view.finish(outcome)
        return outcome.exit_code


class _PromptDisplay:
    """Shows queued prompts when their turn comes, prompts of other clients,
    and errors of the session.

    `session`: the session as last seen. `error`: the error of the present turn that was shown;
    "": none.
    """

    def __init__(self, session: Session, show_text: Callable[[str, TextStyle], object]) -> None:
        self.session = session
        self.agent_changes = 0
        self.error = ""
        self._show_text = show_text
        # Our prompts that wait for the model, by message id.
        self._waiting_texts: dict[str, str] = {}
        self._stored_futures: dict[str, asyncio.Future[None]] = {}
        self._prompts_of_others: set[str] = set()
        self._shown_ids: set[str] = set()

    def expect(self, message_id: str, text: str) -> asyncio.Future[None]:
        """Return a future that is done when the prompt of this id is stored.

        `text`: the text to show when its turn comes; "": the user has just typed it,
        and it is not shown again.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stored_futures[message_id] = future
        self._waiting_texts[message_id] = text
        return future

    def handle_event(self, event: Event) -> None:
        """Take in an event of the session."""
        match event:
            case SessionUpdated(properties=p):
                self.agent_changes += p.info.agent != self.session.agent
                self.session = p.info
            case SessionDeleted():
                self._show_text(
                    f"The session {self.session.id} was deleted. /new starts another one.", "yellow"
                )
            case MessageUpdated(properties=p) if isinstance(p.info, UserMessage):
                future = self._stored_futures.pop(p.info.id, None)
                if future is not None and not future.done():
                    future.set_result(None)
                elif future is None and p.info.id not in self._waiting_texts:
                    self._prompts_of_others.add(p.info.id)
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage):
                # The first answer to a queued prompt: its turn has come.
                if text := self._waiting_texts.get(p.info.parent_id):
                    self._waiting_texts[p.info.parent_id] = ""
                    self._show_text(f"> {text}", "cyan")
            case PartUpdated(properties=p) if self._waiting_texts.get(p.part.message_id):
                # A queued prompt may still be edited, by `/queue edit` or by another client.
                if isinstance(p.part, TextPart) and not p.part.synthetic:
                    self._waiting_texts[p.part.message_id] = p.part.text
            case PartUpdated(properties=p) if (
                p.part.message_id in self._prompts_of_others and p.part.id not in self._shown_ids
            ):
                self._shown_ids.add(p.part.id)
                self._show_prompt_part(p.part)
            case SessionErrored(properties=p):
                self.error = get_error_message(p.error)
                self._show_text(self.error, "red")
            case _:
                pass

    def _show_prompt_part(self, part: object) -> None:
        """Show a part of another client's prompt."""
        match part:
            case TextPart(text=text) if not part.synthetic:
                self._show_text("\n".join(f"> {line}" for line in text.splitlines()), "cyan")
            case FilePart(filename=name, url=url):
                self._show_text(f"> [{name or url[:80]}]", "cyan")
            case _:
                pass
