"""A session of the library: a conversation with the agent."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, overload

from msgspec import Struct

from codeloop.client.client import Client
from codeloop.client.undo_redo import redo_last, undo_last
from codeloop.library.budget import Budget, add_cost, make_budget_share
from codeloop.library.errors import WrongResult
from codeloop.library.event_feed import EventFeed, Listener
from codeloop.library.events import Answer, SessionEvent, ToolUse, TurnDone
from codeloop.library.functions import FunctionOffer, list_read_only_warnings, make_function_tools
from codeloop.library.options import SessionOptions, TurnLimits
from codeloop.library.request_answerer import RequestAnswerer
from codeloop.library.result_type import ResultType
from codeloop.library.turn import RunningTurn, join_text_parts, make_tool_use
from codeloop.schema.api.session_inputs import (
    ABORT,
    PROMPT_ASYNC,
    FilePartInput,
    PartInput,
    Prompt,
    RunLimits,
    TextPartInput,
)
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.schema.api.session_requests import (
    SESSION_DELETE,
    SESSION_FORK,
    SESSION_GET,
    ForkSession,
    SessionId,
)
from codeloop.schema.errors import UsageProblem
from codeloop.schema.ids import new_id
from codeloop.schema.message import AssistantMessage, ModelRef, Session, parse_model_name
from codeloop.schema.part import ToolPart
from codeloop.schema.wire import JSON, replace

T = TypeVar("T")
Files = Sequence["str | os.PathLike[str]"]
"""The paths of files to attach to a prompt."""


class SessionTarget(Struct, frozen=True):
    """What the sessions of a project share. `attach` turns a file into a part of a prompt.

    `is_remote`: the sessions are on a server, which counts the budget itself.
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
    """A conversation, which is stored and can be resumed by its id.
    `project.session()` creates one.

    The prompts of one session are answered one after the other,
    those of several sessions at the same time.
    """

    def __init__(
        self, session_target: SessionTarget, session: Session, options: SessionOptions
    ) -> None:
        self._target = session_target
        self._session = session
        self.warnings = list_read_only_warnings(options)
        """Warnings about the options: what was ignored, and why."""
        self._options = options
        # Parsed at once, so that a wrong name fails here and not at the first prompt.
        self._model = parse_model_option(options.get("model"))
        tools = make_function_tools(options.get("tools", ()))
        self._offer = (
            FunctionOffer(session_target.client, session_target.feed, session.id, tools)
            if tools
            else None
        )
        # The prompts of one session are answered one after the other.
        self._turn_lock = asyncio.Lock()

    def __repr__(self) -> str:
        """Return the class, the id and the title."""
        return f"<AgentSession {self.id} {self.title!r}>"

    @property
    def id(self) -> str:
        """The id of the session: `project.session(id)` resumes it, also in another process."""
        return self._session.id

    @property
    def title(self) -> str:
        """The title of the session, as of the last turn."""
        return self._session.title

    @property
    def cost(self) -> float:
        """The total cost of the session in dollars, as of the last turn."""
        return self._session.cost or 0.0

    @overload
    async def ask(
        self, prompt: str, *, files: Files = (), limits: TurnLimits | None = None
    ) -> Answer[None]: ...
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

        `result`: the type of the value to return as `answer.result`, if one is wanted: a dataclass,
        a TypedDict, a msgspec Struct, a pydantic model, or a plain type such as `list[str]`.
        `files`: attached to the prompt.
        `limits`: replace those of the session. When the task is cancelled, the turn is stopped.

        Raises TurnFailed, LimitReached, WrongResult, and other CodeloopErrors,
        which say what to do.
        """
        result_type = ResultType(cast("type[object]", result)) if result is not None else None
        turn = self._make_turn(
            prompt, files, limits, result_type.schema if result_type is not None else None
        )
        async with aclosing(self._run_turn(turn)) as events:
            # The last event is TurnDone, unless an exception ends the turn.
            answer = [event.answer async for event in events if isinstance(event, TurnDone)][-1]
        if result_type is None:
            return answer
        info = turn.last_message.info if turn.last_message is not None else None
        value: object = info.structured if isinstance(info, AssistantMessage) else None
        try:
            return replace(answer, result=result_type.convert(value))
        except ValueError as error:
            name = getattr(result, "__name__", str(result))
            raise WrongResult(
                f"The answer is not a valid {name}: {error}. Ask again, or describe the fields of {name}.",
                answer,
            ) from error

    async def stream(
        self, prompt: str, *, files: Files = (), limits: TurnLimits | None = None
    ) -> AsyncGenerator[SessionEvent, None]:
        """Send a prompt and yield the events of its turn;
        the last one is `TurnDone`, which has the answer.

        Leaving the loop early stops the turn. `files`,
        `limits` and the exceptions are those of `ask`.
        """
        async with aclosing(self._run_turn(self._make_turn(prompt, files, limits, None))) as events:
            async for event in events:
                yield event

    async def send(self, prompt: str) -> None:
        """Add a prompt to the running turn, which includes it in its next step.
        Does not wait for the answer.

        If no turn runs, this starts one. Nothing here follows it: it has no limits but the budget,
        functions are not offered to it, and callbacks do not answer what it asks.
        """
        await self._target.client.call(
            PROMPT_ASYNC, self._make_prompt(prompt, (), TurnLimits(), None)
        )

    async def stop(self) -> None:
        """Stop the running turn, and wait until it is stored as far as it came."""
        await self._target.client.call(ABORT, SessionId(session_id=self.id))

    async def messages(self) -> list[SaidMessage]:
        """Return all messages of the session, oldest first."""
        messages = await self._target.client.call(
            SESSION_MESSAGES, ListMessages(session_id=self.id)
        )
        return [
            SaidMessage(
                id=message.info.id,
                role="assistant" if isinstance(message.info, AssistantMessage) else "user",
                text=join_text_parts(message.parts),
                tools=tuple(
                    use
                    for part in message.parts
                    if isinstance(part, ToolPart) and (use := make_tool_use(part)) is not None
                ),
            )
            for message in messages
        ]

    async def fork(self) -> "AgentSession":
        """Return a copy of the session, which can be continued independently."""
        session = await self._target.client.call(SESSION_FORK, ForkSession(session_id=self.id))
        return AgentSession(self._target, session, self._options)

    async def undo(self) -> list[str]:
        """Undo the last turn: its messages, and its changes to files.
        Return lines that say what was done.
        """
        lines: list[str] = []
        await undo_last(
            self._target.client,
            await self._refresh(),
            dry_run=False,
            say=lines.append,
            warn=lines.append,
        )
        return lines

    async def redo(self) -> list[str]:
        """Redo the turn that was undone last. Return lines that say what was done."""
        lines: list[str] = []
        await redo_last(
            self._target.client,
            await self._refresh(),
            dry_run=False,
            say=lines.append,
            warn=lines.append,
        )
        return lines

    async def delete(self) -> None:
        """Delete the session with all its messages; the files of the project are not changed."""
        await self._target.client.call(SESSION_DELETE, SessionId(session_id=self.id))

    async def _refresh(self) -> Session:
        self._session = await self._target.client.call(SESSION_GET, SessionId(session_id=self.id))
        return self._session

    def _make_turn(
        self, prompt: str, files: Files, limits: TurnLimits | None, schema: JSON | None
    ) -> RunningTurn:
        """Return a turn whose prompt is not sent yet."""
        limits = limits or self._options.get("limits") or TurnLimits()
        sent_prompt = self._make_prompt(prompt, files, limits, schema)
        return RunningTurn(self._target.client, self._target.feed, sent_prompt, limits)

    async def _run_turn(self, turn: RunningTurn) -> AsyncGenerator[SessionEvent, None]:
        """Wait until earlier turns of this session have ended;
        then run a turn and yield its events.
        """
        client, feed = self._target.client, self._target.feed
        answerer = RequestAnswerer(
            client,
            feed,
            self.id,
            on_permission=self._options.get("on_permission"),
            on_question=self._options.get("on_question"),
            on_failure=turn.on_failure,
        )
        listeners: list[Listener] = [turn, answerer]
        async with self._turn_lock, AsyncExitStack() as stack:
            # The feed has to run before the prompt is sent,
            # or the first events of the turn would be missed.
            await feed.start()
            if self._offer is not None:
                listeners.append(self._offer)
                await stack.enter_async_context(self._offer.offer())
            for listener in listeners:
                stack.enter_context(feed.listen(listener))
            try:
                async with aclosing(turn.run(await self._refresh())) as events:
                    async for event in events:
                        yield event
            finally:
                # An engine in this process counts each request itself;
                # of one on a server only the total is known.
                if self._target.budget is not None and self._target.is_remote:
                    add_cost(self._target.budget, turn.growth.cost)
                self._session = turn.growth.session or self._session

    def _make_prompt(
        self, text: str, files: Files, limits: TurnLimits, schema: JSON | None
    ) -> Prompt:
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
            variant=self._options.get("variant"),
            agent=self._options.get("agent"),
            system=self._options.get("system"),
            format=None if schema is None else {"type": "json_schema", "schema": schema},
            limits=RunLimits(
                steps=limits.steps,
                cost=limits.cost,
                tokens=limits.tokens,
                budget=make_budget_share(self._target.budget),
                attended="on_question" in self._options,
            ),
        )


def check_prompt(text: str) -> None:
    """Raise UsageProblem if a prompt is empty."""
    if not text.strip():
        raise UsageProblem("The prompt is empty. Say what is to be done.")


def parse_model_option(name: str | None) -> ModelRef | None:
    """Return the model named `provider/model`, or None for None.
    Raises UsageProblem for a name of another form.
    """
    if name is None:
        return None
    if (model := parse_model_name(name)) is None:
        raise UsageProblem(f"model is PROVIDER/MODEL, not {name!r}. `codeloop models` lists them.")
    return model
