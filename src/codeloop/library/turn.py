"""Runs one turn of a session: sends its prompt, converts the events of the server,
and makes the answer.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import ExitStack, suppress
from typing import Literal

from codeloop.client.client import Client
from codeloop.library.errors import LimitReached, TurnFailed
from codeloop.library.event_feed import EventFeed, Listener
from codeloop.library.events import (
    Answer,
    FilesChanged,
    Notice,
    RetryWaiting,
    SessionEvent,
    StepEnded,
    TextAdded,
    ThinkingAdded,
    ToolEnded,
    ToolReported,
    ToolStarted,
    ToolUse,
    TurnDone,
)
from codeloop.library.options import TurnLimits
from codeloop.schema.api.session_inputs import ABORT, PROMPT, MessageWithParts, Prompt
from codeloop.schema.api.session_requests import SESSION_GET, SessionId
from codeloop.schema.errors import CodeloopError, OperationError, get_error_message
from codeloop.schema.event import Event, MessageUpdated, PartUpdated, SessionUpdated, get_session_id
from codeloop.schema.limits import TURN_EVENTS_TIME
from codeloop.schema.live_events import (
    Busy,
    PartDelta,
    Retry,
    SessionIdle,
    StatusChanged,
    ToastShown,
)
from codeloop.schema.message import NO_TOKENS, AssistantMessage, Session, measure_growth
from codeloop.schema.part import (
    Part,
    PatchPart,
    ReasoningPart,
    StepFinishPart,
    TextPart,
    ToolPart,
    ToolStateCompleted,
    ToolStateError,
    ToolStatePending,
    ToolStateRunning,
)
from codeloop.schema.wire import replace

# Between two attempts to stop a turn: while its prompt is still being stored,
# there is nothing to stop yet.
_STOP_RETRY_SECONDS = 0.01


class TurnReader:
    """Converts the events of a session to those of the library, and counts the turn's steps,
    files and calls.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.files: dict[str, None] = {}
        self.tool_uses: dict[str, ToolUse] = {}
        self._answers: set[str] = set()
        """The ids of the model's messages; parts of other messages are the user's."""
        self._text_lengths: dict[str, int] = {}
        """The characters of each part that were already yielded, by the part's id."""
        self._thinking: set[str] = set()
        """The ids of parts that are the model's thinking."""

    def convert_event(self, event: Event) -> Iterator[SessionEvent]:
        """Yield the library's events for an event of the session."""
        match event:
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage):
                self._answers.add(p.info.id)
            case PartDelta(properties=p) if p.part_id in self._text_lengths:
                self._text_lengths[p.part_id] += len(p.delta)
                yield ThinkingAdded(p.delta) if p.part_id in self._thinking else TextAdded(p.delta)
            case PartUpdated(properties=p) if p.part.message_id in self._answers:
                yield from self._read_part(p.part)
            case StatusChanged(properties=p) if isinstance(p.status, Retry):
                yield RetryWaiting(p.status.message, p.status.attempt, p.status.next)
            case ToastShown(properties=p):
                yield Notice(p.message, p.variant)
            case _:
                pass

    def _read_part(self, part: Part) -> Iterator[SessionEvent]:
        match part:
            case TextPart(synthetic=None | False) | ReasoningPart():
                length = self._text_lengths.get(part.id, 0)
                self._text_lengths[part.id] = max(len(part.text), length)
                if isinstance(part, ReasoningPart):
                    self._thinking.add(part.id)
                # The part has the whole text; its beginning was already yielded by deltas.
                if new_text := part.text[length:]:
                    yield (
                        ThinkingAdded(new_text)
                        if isinstance(part, ReasoningPart)
                        else TextAdded(new_text)
                    )
            case ToolPart():
                yield from self._read_tool_part(part)
            case PatchPart(files=files):
                self.files.update(dict.fromkeys(files))
                yield FilesChanged(tuple(files))
            case StepFinishPart(cost=cost, tokens=tokens):
                self.steps += 1
                yield StepEnded(self.steps, cost, tokens)
            case _:
                pass

    def _read_tool_part(self, part: ToolPart) -> Iterator[SessionEvent]:
        use, previous_use = make_tool_use(part), self.tool_uses.get(part.id)
        if use is None or use == previous_use:
            return
        self.tool_uses[part.id] = use
        if previous_use is None:
            # A call may have ended before its first event arrives.
            yield ToolStarted(
                use if use.state == "running" else replace(use, state="running", output="")
            )
        if use.state != "running":
            yield ToolEnded(use)
        elif previous_use is not None:
            yield ToolReported(use)


def make_tool_use(part: ToolPart) -> ToolUse | None:
    """Return a tool call in the form of the library;
    None while the model is still writing its arguments.
    """
    state = part.state
    title, output = "", ""
    status: Literal["running", "completed", "failed"] = "running"
    metadata: Mapping[str, object] = {}
    match state:
        case ToolStatePending():
            return None
        case ToolStateRunning():
            title, metadata = state.title or "", state.metadata or {}
        case ToolStateCompleted():
            status, title, output, metadata = "completed", state.title, state.output, state.metadata
        case ToolStateError():
            status, output, metadata = "failed", state.error, state.metadata or {}
    return ToolUse(
        id=part.call_id,
        tool=part.tool,
        state=status,
        title=title,
        arguments=state.input,
        output=output,
        metadata=metadata,
    )


class SessionGrowth:
    """The dollars and tokens by which a session's sums, which include its subagents,
    have grown since the first `add`.

    Each growth counts: a prompt may make an undo final, which lowers the sums.
    """

    def __init__(self) -> None:
        self.cost = 0.0
        self.tokens = NO_TOKENS
        self.session: Session | None = None
        """The session as it was last seen; None: it was not yet."""

    def add(self, session: Session) -> None:
        """Add what the sums have grown by since they were last seen."""
        if self.session is not None:
            tokens, cost = measure_growth(self.session, session)
            self.cost, self.tokens = self.cost + cost, self.tokens.plus(tokens)
        self.session = session


class RunningTurn(Listener):
    """The turn of a prompt. `run` sends the prompt, and may be called once."""

    def __init__(self, client: Client, feed: EventFeed, prompt: Prompt, limits: TurnLimits) -> None:
        self.last_message: MessageWithParts | None = None
        """The last message of the model; None until the turn has ended."""
        self.growth = SessionGrowth()
        """What the turn has used so far."""
        self._client = client
        self._feed = feed
        self._prompt = prompt
        self._limits = limits
        self._queue: asyncio.Queue[Event | BaseException | None] = asyncio.Queue()
        """The events of the session, then the exception that ends the turn, or None at its end."""
        self._reader = TurnReader()
        self._send_task: asyncio.Task[MessageWithParts] | None = None
        self._is_idle = False
        self._has_timed_out = False
        self._start = 0.0
        """When `run` was called, in monotonic seconds."""

    def on_event(self, event: Event) -> None:
        """Queue an event of the turn's session, or of no session."""
        if get_session_id(event) in {self._prompt.session_id, None}:
            self._queue.put_nowait(event)

    def on_failure(self, error: BaseException) -> None:
        """End the turn with an exception."""
        self._queue.put_nowait(error)

    async def close(self) -> None:
        """Stop the turn, with an error for the reader of its events."""
        self._queue.put_nowait(
            CodeloopError("The project was closed while the turn ran. Open it for as long as that.")
        )
        if self._send_task is not None and not self._send_task.done():
            await self._stop(self._send_task)

    async def run(self, before: Session) -> AsyncGenerator[SessionEvent, None]:
        """Send the prompt and yield the events of the turn, the last of which is TurnDone.

        `before`: the session before the turn. When the generator is closed or cancelled,
        the turn is stopped.
        Raises TurnFailed and other CodeloopErrors.
        """
        self._start = time.monotonic()
        self.growth.add(before)
        loop = asyncio.get_running_loop()
        with ExitStack() as stack:
            send_task = self._send_task = asyncio.create_task(
                self._client.call(PROMPT, self._prompt)
            )
            send_task.add_done_callback(lambda _: self._end_queue(send_task))
            if self._limits.seconds is not None:
                stack.callback(
                    loop.call_later(
                        self._limits.seconds, self._stop_at_time_limit, send_task
                    ).cancel
                )
            try:
                while (item := await self._queue.get()) is not None:
                    if isinstance(item, BaseException):
                        raise item
                    if isinstance(item, SessionUpdated) and item.properties.info.id == before.id:
                        self.growth.add(item.properties.info)
                    for event in self._reader.convert_event(item):
                        yield event
                    if self._note_status(item) and send_task.done():
                        break
                self.last_message = await send_task
            except OperationError as error:
                if not self._has_timed_out:
                    raise
                # The time was over before the prompt was stored.
                text = f"The turn was stopped after {self._limits.seconds:g} s, before anything was sent."
                raise LimitReached(text, self._make_answer("", "", "timeout", before.id)) from error
            finally:
                # Shielded, so that the turn is also stopped if the caller's task is cancelled.
                if not send_task.done():
                    await asyncio.shield(asyncio.ensure_future(self._stop(send_task)))
            yield TurnDone(await self._finish(self.last_message, before))

    def _note_status(self, event: Event) -> bool:
        """Note the session's status if the event reports it;
        return whether the session is idle now.

        The end of an earlier turn may arrive late, so an idle session may become busy again.
        """
        if isinstance(event, SessionIdle):
            self._is_idle = True
        elif isinstance(event, StatusChanged) and isinstance(event.properties.status, Busy):
            self._is_idle = False
        return self._is_idle

    def _end_queue(self, send_task: "asyncio.Task[MessageWithParts]") -> None:
        """End the queue shortly after the answer, so that events which arrive
        after it are still yielded.
        """
        is_over = self._is_idle or send_task.cancelled() or send_task.exception() is not None
        delay = 0 if is_over else TURN_EVENTS_TIME.seconds
        asyncio.get_running_loop().call_later(delay, self._queue.put_nowait, None)

    def _stop_at_time_limit(self, send_task: "asyncio.Task[MessageWithParts]") -> None:
        self._has_timed_out = True
        self._feed.start_background(self._stop(send_task), self.on_failure)

    async def _stop(self, send_task: "asyncio.Task[MessageWithParts]") -> None:
        """Stop the turn, and wait until it is stored as far as it came."""
        with suppress(CodeloopError):
            while not send_task.done():
                await self._client.call(ABORT, SessionId(session_id=self._prompt.session_id))
                await asyncio.wait([send_task], timeout=_STOP_RETRY_SECONDS)
        if not send_task.done():
            send_task.cancel()
        elif not send_task.cancelled():
            # asyncio logs an exception that nobody retrieves.
            send_task.exception()

    async def _finish(self, message: MessageWithParts, before: Session) -> Answer[None]:
        """Return the answer; `before`: the session before the turn.
        Raises TurnFailed if the turn ended early.
        """
        # `idle`: the conversation holds no prompt to answer, which counts as done.
        reason = message.stop.reason if message.stop is not None else "done"
        explanation = message.stop.message if message.stop is not None else ""
        if (
            isinstance(message.info, AssistantMessage)
            and message.info.error is not None
            and reason in {"done", "idle"}
        ):
            reason, explanation = "error", get_error_message(message.info.error)
        if self._has_timed_out:
            reason, explanation = (
                "timeout",
                f"The turn was stopped after {self._limits.seconds:g} s.",
            )
        after = await self._client.call(SESSION_GET, SessionId(session_id=before.id))
        self.growth.add(after)
        ending = "done" if reason == "idle" else reason
        answer = self._make_answer(
            join_text_parts(message.parts), message.info.id, ending, after.id
        )
        if answer.reason == "done":
            return answer
        error_type = LimitReached if answer.reason in {"limit", "timeout"} else TurnFailed
        raise error_type(explanation or f"The turn ended early: {answer.reason}.", answer)

    def _make_answer(
        self, text: str, message_id: str, reason: str, session_id: str
    ) -> Answer[None]:
        return Answer(
            text=text,
            result=None,
            session_id=session_id,
            message_id=message_id,
            reason=reason,
            steps=self._reader.steps,
            cost=self.growth.cost,
            tokens=self.growth.tokens,
            files=tuple(self._reader.files),
            tools=tuple(self._reader.tool_uses.values()),
            duration=time.monotonic() - self._start,
        )


def join_text_parts(parts: "list[Part]") -> str:
    """Join the visible text parts of a message."""
    texts = [
        part.text
        for part in parts
        if isinstance(part, TextPart) and not part.synthetic and not part.ignored
    ]
    return "\n".join(texts).strip()
