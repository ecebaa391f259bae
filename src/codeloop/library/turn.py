"""One turn of a session as events, and as the answer that it ends with."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import ExitStack, suppress
from typing import Literal

from codeloop.client.client import Client
from codeloop.library.errors import LimitReached, TurnFailed
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
from codeloop.library.following import EventFeed, Listener
from codeloop.library.options import TurnLimits
from codeloop.schema.api.session_inputs import MessageWithParts, Prompt
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import CodeloopError, error_message
from codeloop.schema.event import Event, MessageUpdated, PartUpdated, session_of
from codeloop.schema.limits import TURN_SETTLE
from codeloop.schema.live_events import Busy, PartDelta, Retry, SessionIdle, StatusChanged, ToastShown
from codeloop.schema.message import NO_TOKENS, AssistantMessage, Session
from codeloop.schema.operation import ABORT, PROMPT, SESSION_GET
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

_STOP_AGAIN = 0.01
"""Seconds between two tries to stop a turn: while a prompt is being stored there is none yet."""


class TurnReader:
    """Makes the events of a turn from those of its session, and counts."""

    def __init__(self) -> None:
        self.steps = 0
        self.files: dict[str, None] = {}
        self.uses: dict[str, ToolUse] = {}
        self._answers: set[str] = set()
        """Ids of the messages of the model."""
        self._text_lengths: dict[str, int] = {}
        """How much of each part has been told, in characters."""
        self._thinking: set[str] = set()

    def take(self, event: Event) -> Iterator[SessionEvent]:
        """Convert an event of the session to those of the library."""
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
                if more := part.text[length:]:
                    yield ThinkingAdded(more) if isinstance(part, ReasoningPart) else TextAdded(more)
            case ToolPart():
                yield from self._tool(part)
            case PatchPart(files=files):
                self.files.update(dict.fromkeys(files))
                yield FilesChanged(tuple(files))
            case StepFinishPart(cost=cost, tokens=tokens):
                self.steps += 1
                yield StepEnded(self.steps, cost, tokens)
            case _:
                pass

    def _tool(self, part: ToolPart) -> Iterator[SessionEvent]:
        use, tool_use = use_of(part), self.uses.get(part.id)
        if use is None or use == tool_use:
            return
        self.uses[part.id] = use
        if tool_use is None:
            yield ToolStarted(use if use.state == "running" else replace(use, state="running", output=""))
        if use.state != "running":
            yield ToolEnded(use)
        elif tool_use is not None:
            yield ToolReported(use)


def use_of(part: ToolPart) -> ToolUse | None:
    """Return a call as programs see it; None while its arguments are still coming."""
    state = part.state
    title, output = "", ""
    how: Literal["running", "completed", "failed"] = "running"
    metadata: Mapping[str, object] = {}
    match state:
        case ToolStatePending():
            return None
        case ToolStateRunning():
            title, metadata = state.title or "", state.metadata or {}
        case ToolStateCompleted():
            how, title, output, metadata = "completed", state.title, state.output, state.metadata
        case ToolStateError():
            how, output, metadata = "failed", state.error, state.metadata or {}
    return ToolUse(
        id=part.call_id,
        tool=part.tool,
        state=how,
        title=title,
        arguments=state.input,
        output=output,
        metadata=metadata,
    )


class RunningTurn(Listener):
    """A prompt that was sent, until its turn has ended. `events` may be read once."""

    def __init__(self, client: Client, feed: EventFeed, prompt: Prompt, limits: TurnLimits) -> None:
        self.message: MessageWithParts | None = None
        """The last answer, once the turn has ended."""
        self.after: Session | None = None
        """The session, once the turn has ended."""
        self._client = client
        self._feed = feed
        self._prompt = prompt
        self._limits = limits
        self._queue: asyncio.Queue[Event | BaseException | None] = asyncio.Queue()
        """Events, what the turn fails with, or None when there is no more."""
        self._reader = TurnReader()
        self._sending: asyncio.Task[MessageWithParts] | None = None
        self._is_idle = False
        self._is_late = False
        self._start = time.monotonic()

    def on_event(self, event: Event) -> None:
        """Take in an event."""
        if session_of(event) in {self._prompt.session_id, None}:
            self._queue.put_nowait(event)

    def on_failure(self, error: BaseException) -> None:
        """End the turn with an error."""
        self._queue.put_nowait(error)

    async def close(self) -> None:
        """Stop the turn, and tell who reads its events."""
        self._queue.put_nowait(CodeloopError("The project was closed while the turn ran. Open it for as long as that."))
        if self._sending is not None and not self._sending.done():
            await self._stop(self._sending)

    async def events(self, before: Session) -> AsyncGenerator[SessionEvent, None]:
        """Send the prompt and yield what happens; the last event is TurnDone. `before`: the session as it is.

        When the reader goes away, or is cancelled, the turn is stopped. Raises TurnFailed and other CodeloopErrors.
        """
        loop = asyncio.get_running_loop()
        with ExitStack() as stack:
            sending = self._sending = asyncio.create_task(self._client.call(PROMPT, self._prompt))
            sending.add_done_callback(lambda _: self._settle(sending))
            if self._limits.seconds is not None:
                stack.callback(loop.call_later(self._limits.seconds, self._expire, sending).cancel)
            try:
                while (item := await self._queue.get()) is not None:
                    if isinstance(item, BaseException):
                        raise item
                    for event in self._reader.take(item):
                        yield event
                    if self._has_ended(item) and sending.done():
                        break
                self.message = await sending
            finally:
                if not sending.done():
                    await asyncio.shield(asyncio.ensure_future(self._stop(sending)))
            yield TurnDone(await self._answer(self.message, before))

    def _has_ended(self, event: Event) -> bool:
        """Return whether the turn is over as far as events say; an earlier one's end may come late."""
        if isinstance(event, SessionIdle):
            self._is_idle = True
        elif isinstance(event, StatusChanged) and isinstance(event.properties.status, Busy):
            self._is_idle = False
        return self._is_idle

    def _settle(self, sending: "asyncio.Task[MessageWithParts]") -> None:
        """Wait no longer than it takes for the events that may come after the answer."""
        is_over = self._is_idle or sending.cancelled() or sending.exception() is not None
        delay = 0 if is_over else TURN_SETTLE.seconds
        asyncio.get_running_loop().call_later(delay, self._queue.put_nowait, None)

    def _expire(self, sending: "asyncio.Task[MessageWithParts]") -> None:
        self._is_late = True
        self._feed.start_background(self._stop(sending), self.on_failure)

    async def _stop(self, sending: "asyncio.Task[MessageWithParts]") -> None:
        """Stop the turn and wait until what there was is stored."""
        with suppress(CodeloopError):
            while not sending.done():
                await self._client.call(ABORT, SessionId(session_id=self._prompt.session_id))
                await asyncio.wait([sending], timeout=_STOP_AGAIN)
        if not sending.done():
            sending.cancel()
        elif not sending.cancelled():
            sending.exception()  # nobody else asks for it

    async def _answer(self, message: MessageWithParts, before: Session) -> Answer[None]:
        """Make the turn's answer. Raises TurnFailed when the turn did not come to its end."""
        reason = message.stop.reason if message.stop is not None else "done"
        why = message.stop.message if message.stop is not None else ""
        if isinstance(message.info, AssistantMessage) and message.info.error is not None and reason in {"done", "idle"}:
            reason, why = "error", error_message(message.info.error)
        if self._is_late:
            reason, why = "timeout", f"The turn was stopped after {self._limits.seconds:g} s."
        after = self.after = await self._client.call(SESSION_GET, SessionId(session_id=before.id))
        tokens = (after.tokens or NO_TOKENS).plus(before.tokens or NO_TOKENS, -1)
        answer = Answer(
            text=text_of(message.parts),
            result=None,
            session_id=after.id,
            message_id=message.info.id,
            reason="done" if reason == "idle" else reason,
            steps=self._reader.steps,
            cost=max((after.cost or 0.0) - (before.cost or 0.0), 0.0),
            tokens=tokens,
            files=tuple(self._reader.files),
            tools=tuple(self._reader.uses.values()),
            duration=time.monotonic() - self._start,
        )
        if answer.reason == "done":
            return answer
        kind = LimitReached if answer.reason in {"limit", "timeout"} else TurnFailed
        raise kind(why or f"The turn ended early: {answer.reason}.", answer)


def text_of(parts: "list[Part]") -> str:
    """Join the visible text parts of a message."""
    texts = [part.text for part in parts if isinstance(part, TextPart) and not part.synthetic and not part.ignored]
    return "\n".join(texts).strip()
