"""A conversation with the agent."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, overload

from msgspec import Struct

from codeloop.client.client import Client
from codeloop.client.undo_redo import redo_last, undo_last
from codeloop.library.budget import Budget, add_cost, share_of
from codeloop.library.errors import WrongResult
from codeloop.library.events import Answer, SessionEvent, ToolUse, TurnDone
from codeloop.library.following import EventFeed, Listener
from codeloop.library.functions import FunctionOffer, tools_from, warn_of_plan
from codeloop.library.options import SessionOptions, TurnLimits
from codeloop.library.questions import Questions
from codeloop.library.result_type import ResultType
from codeloop.library.turn import RunningTurn, text_of, use_of
from codeloop.schema.api.session_inputs import FilePartInput, PartInput, Prompt, RunLimits, TextPartInput
from codeloop.schema.api.session_requests import ForkSession, ListMessages, SessionId
from codeloop.schema.errors import UsageProblem
from codeloop.schema.ids import new_id
from codeloop.schema.message import AssistantMessage, ModelRef, Session, parse_model_name
from codeloop.schema.operation import (
    ABORT,
    PROMPT_ASYNC,
    SESSION_DELETE,
    SESSION_FORK,
    SESSION_GET,
    SESSION_MESSAGES,
)
from codeloop.schema.part import ToolPart
from codeloop.schema.wire import JSON, replace

T = TypeVar("T")
Files = Sequence["str | os.PathLike[str]"]
"""Names of files that go along with a prompt."""


class SessionTarget(Struct, frozen=True):
    """What a session works with: client, events, how a file is attached to a prompt, and what may be spent.

    `is_remote`: on a server, which counts the budget itself.
    """

    client: Client
    feed: EventFeed
    attach: Callable[[Path], FilePartInput]
    budget: Budget | None
    is_remote: bool


class SaidMessage(Struct, frozen=True, kw_only=True):
    """A message of a session's history."""

    id: str
    role: Literal["user", "assistant"]
    text: str
    tools: tuple[ToolUse, ...] = ()


class AgentSession:
    """One conversation; it is stored, and can be resumed by its id. `project.session()` makes it.

    Prompts of one session are answered one after the other, those of several sessions side by side.
    """

    def __init__(self, session_target: SessionTarget, session: Session, options: SessionOptions) -> None:
        self._target = session_target
        self._session = session
        self.warnings = warn_of_plan(options)
        """What is ignored of its options, and why."""
        self._options = options
        self._model = model_of(options.get("model"))
        tools = tools_from(options.get("tools", ()))
        self._offer = FunctionOffer(session_target.client, session_target.feed, session.id, tools) if tools else None
        self._turn = asyncio.Lock()

    def __repr__(self) -> str:
        """Return its id and title."""
        return f"<AgentSession {self.id} {self.title!r}>"

    @property
    def id(self) -> str:
        """Its id: `project.session(id)` resumes it, also in another process."""
        return self._session.id

    @property
    def title(self) -> str:
        """Its title, as last seen."""
        return self._session.title

    @property
    def cost(self) -> float:
        """What it has cost in all, in dollars, as last seen."""
        return self._session.cost or 0.0

    @overload
    async def ask(self, prompt: str, *, files: Files = (), limits: TurnLimits | None = None) -> Answer[None]: ...
    @overload
    async def ask(
        self, prompt: str, *, result: type[T], files: Files = (), limits: TurnLimits | None = None
    ) -> Answer[T]: ...
    async def ask(
        self,
        prompt: str,
        *,
        result: type[Any] | None = None,
        files: Files = (),
        limits: TurnLimits | None = None,
    ) -> Answer[Any]:
        """Send a prompt, wait until the agent is done, and return its answer.

        `result`, which may be left out: the type of a value to get as `answer.result`: a dataclass, a TypedDict, a
        msgspec Struct, a pydantic model, or a plain type such as `list[str]`. `files` go along with the prompt.
        `limits` stand in for those of the session. When the task is cancelled, the turn is stopped.

        Raises TurnFailed, LimitReached, WrongResult; other CodeloopErrors say what to do.
        """
        kind = ResultType(cast("type[object]", result)) if result is not None else None
        turn = self._make_turn(prompt, files, limits, kind.schema if kind is not None else None)
        async with aclosing(self._events(turn)) as events:
            answer = [event.answer async for event in events if isinstance(event, TurnDone)][-1]
        if kind is None:
            return answer
        info = turn.message.info if turn.message is not None else None
        value: object = info.structured if isinstance(info, AssistantMessage) else None
        try:
            return replace(answer, result=kind.read(value))
        except ValueError as error:
            name = getattr(result, "__name__", str(result))
            raise WrongResult(
                f"The answer is not a valid {name}: {error}. Ask again, or describe the fields of {name}.", answer
            ) from error

    async def stream(
        self, prompt: str, *, files: Files = (), limits: TurnLimits | None = None
    ) -> AsyncGenerator[SessionEvent, None]:
        """Send a prompt and yield what happens, as it happens; the last event is `TurnDone`, with the answer.

        Leaving the loop early stops the turn. Arguments and errors as for `ask`.
        """
        async with aclosing(self._events(self._make_turn(prompt, files, limits, None))) as events:
            async for event in events:
                yield event

    async def send(self, prompt: str) -> None:
        """Add a prompt to the turn that runs, which takes it up at its next step. It is not waited for."""
        await self._target.client.call(PROMPT_ASYNC, self._prompt(prompt, (), TurnLimits(), None))

    async def stop(self) -> None:
        """Stop what the session does, and wait until what there was is stored."""
        await self._target.client.call(ABORT, SessionId(session_id=self.id))

    async def messages(self) -> list[SaidMessage]:
        """Return the messages so far, oldest first."""
        messages = await self._target.client.call(SESSION_MESSAGES, ListMessages(session_id=self.id))
        return [
            SaidMessage(
                id=message.info.id,
                role="assistant" if isinstance(message.info, AssistantMessage) else "user",
                text=text_of(message.parts),
                tools=tuple(
                    use for part in message.parts if isinstance(part, ToolPart) and (use := use_of(part)) is not None
                ),
            )
            for message in messages
        ]

    async def fork(self) -> "AgentSession":
        """Return a copy of the session, which goes its own way from here."""
        session = await self._target.client.call(SESSION_FORK, ForkSession(session_id=self.id))
        return AgentSession(self._target, session, self._options)

    async def undo(self) -> list[str]:
        """Take back the last turn: what was said, and what it did to files. Return what was done, in lines."""
        lines: list[str] = []
        await undo_last(self._target.client, await self._refresh(), dry_run=False, say=lines.append, warn=lines.append)
        return lines

    async def redo(self) -> list[str]:
        """Do again what was undone last. Return what was done, in lines."""
        lines: list[str] = []
        await redo_last(self._target.client, await self._refresh(), dry_run=False, say=lines.append, warn=lines.append)
        return lines

    async def delete(self) -> None:
        """Delete the session with everything in it; the files of the project stay as they are."""
        await self._target.client.call(SESSION_DELETE, SessionId(session_id=self.id))

    async def _refresh(self) -> Session:
        self._session = await self._target.client.call(SESSION_GET, SessionId(session_id=self.id))
        return self._session

    def _make_turn(self, prompt: str, files: Files, limits: TurnLimits | None, schema: JSON | None) -> RunningTurn:
        """Return the turn of a prompt, before it is sent."""
        limits = limits or self._options.get("limits") or TurnLimits()
        sent_prompt = self._prompt(prompt, files, limits, schema)
        return RunningTurn(self._target.client, self._target.feed, sent_prompt, limits)

    async def _events(self, turn: RunningTurn) -> AsyncGenerator[SessionEvent, None]:
        """Yield the events of a turn, once those before it have ended."""
        client, feed = self._target.client, self._target.feed
        callbacks = self._options.get("on_permission"), self._options.get("on_question")
        listeners: list[Listener] = [turn, Questions(client, feed, self.id, callbacks, turn.on_failure)]
        async with self._turn, AsyncExitStack() as stack:
            await feed.start()
            if self._offer is not None:
                listeners.append(self._offer)
                await stack.enter_async_context(self._offer.offer())
            for listener in listeners:
                stack.enter_context(feed.listen(listener))
            try:
                async with aclosing(turn.events(await self._refresh())) as events:
                    async for event in events:
                        yield event
            finally:
                if self._target.budget is not None and self._target.is_remote and turn.after is not None:
                    add_cost(self._target.budget, (turn.after.cost or 0.0) - self.cost)
                self._session = turn.after or self._session

    def _prompt(self, text: str, files: Files, limits: TurnLimits, schema: JSON | None) -> Prompt:
        check_prompt(text)
        parts: list[PartInput] = [
            TextPartInput(text=text),
            *(self._target.attach(Path(file)) for file in files),
        ]
        return Prompt(
            session_id=self.id,
            message_id=new_id("msg"),
            parts=parts,
            model=self._model,
            agent=self._options.get("agent"),
            system=self._options.get("system"),
            format=None if schema is None else {"type": "json_schema", "schema": schema},
            limits=RunLimits(
                steps=limits.steps,
                cost=limits.cost,
                tokens=limits.tokens,
                budget=share_of(self._target.budget),
                attended="on_question" in self._options,
            ),
        )


def check_prompt(text: str) -> None:
    """Raise UsageProblem when a prompt says nothing."""
    if not text.strip():
        raise UsageProblem("The prompt is empty. Say what is to be done.")


def model_of(name: str | None) -> ModelRef | None:
    """Return the model that `provider/model` names. Raises UsageProblem for a name of another form."""
    if name is None:
        return None
    if (model := parse_model_name(name)) is None:
        raise UsageProblem(f"model is PROVIDER/MODEL, not {name!r}. `codeloop models` lists them.")
    return model
