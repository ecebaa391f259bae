"""Offers Python functions of a program to the model as tools of a session,
and calls them when the model does.
"""

import asyncio
import logging
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import dropwhile
from pathlib import Path
from threading import Event as Flag
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

import msgspec

from codeloop.client.client import Client
from codeloop.extend.functions import (
    FunctionResult,
    FunctionTool,
    WrongArguments,
    make_function_tool,
    wait_in_thread,
)
from codeloop.extension import READ_ONLY_ATTRIBUTE, TOOL_ATTRIBUTE
from codeloop.kit.asyncio_tasks import cancel_all
from codeloop.library.errors import ToolRefused
from codeloop.library.event_feed import EventFeed, Listener
from codeloop.library.options import SessionOptions
from codeloop.schema.api.client_tools import (
    TOOL_ANSWER,
    TOOL_ASK,
    TOOL_REPORT,
    TOOLS_OFFER,
    TOOLS_WITHDRAW,
    AnswerToolCall,
    AskForToolCall,
    ClientTool,
    OfferTools,
    ReportToolCall,
    WithdrawTools,
)
from codeloop.schema.api.session_inputs import FilePartInput
from codeloop.schema.bounds.extension import CLIENT_TOOLS
from codeloop.schema.errors import CodeloopError
from codeloop.schema.event import Event
from codeloop.schema.live_events import ClientToolChanged
from codeloop.schema.operation_table import OPERATIONS
from codeloop.schema.permission import parse_profile
from codeloop.schema.resources import ClientToolCall

_LOG = logging.getLogger("codeloop.library")
# Without a handler, Python prints warnings to stderr in programs that configure no logging.
_LOG.addHandler(logging.NullHandler())
_LOG_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}
_LIBRARY_FILES = (
    "codeloop/extend/functions.py",
    "asyncio/threads.py",
    "concurrent/futures/thread.py",
)
"""Files whose stack frames are between the library and the program's function;
tracebacks leave them out.
"""
# The innermost frames of a traceback that the model reads.
_MAX_FRAMES = 10
T = TypeVar("T")


def make_function_tools(functions: Sequence[Callable[..., object]]) -> dict[str, FunctionTool]:
    """Return functions as tools, by name. Raises CodeloopError, which says what to change,
    if one can't be a tool.
    """
    function_tools: dict[str, FunctionTool] = {}
    for function in functions:
        # Set by the decorator `codeloop.extension.tool`.
        name_and_description: tuple[str | None, str | None] = getattr(
            function, TOOL_ATTRIBUTE, (None, None)
        )
        name, description = name_and_description
        tool = make_function_tool(function, name=name, description=description)
        if tool.name in function_tools:
            raise CodeloopError(
                f"Two tools are named {tool.name}. Give one another name: @codeloop.extension.tool(name=...)."
            )
        function_tools[tool.name] = tool
    return function_tools


def list_read_only_warnings(options: SessionOptions) -> tuple[str, ...]:
    """Return a warning that names the functions that the profile `read-only` hides from the model,
    if there are any.
    """
    if parse_profile(options.get("profile")) != "read-only":
        return ()
    tools = make_function_tools(options.get("tools", ())).values()
    names = ", ".join(
        each.name for each in tools if not getattr(each.function, READ_ONLY_ATTRIBUTE, False)
    )
    if not names:
        return ()
    advice = "Mark those that only read with @codeloop.extension.tool(read_only=True)."
    return (
        f"The profile read-only does not offer these functions to the model: {names}. {advice}",
    )


class RunningFunctionCall(NamedTuple):
    """A call of a function that has no result yet."""

    call: "FunctionCall"
    task: asyncio.Task[None]


class FunctionOffer(Listener):
    """Offers functions to one session while its turns run, and calls them when the model does.

    The offer is a lease that has to be renewed, so that it ends if this program ends.
    """

    def __init__(
        self, client: Client, feed: EventFeed, session_id: str, tools: Mapping[str, FunctionTool]
    ) -> None:
        self._client = client
        self._feed = feed
        self._session_id = session_id
        self._tools = tools
        self._lease_id = uuid4().hex
        self._running_calls: dict[str, RunningFunctionCall] = {}
        """By the id of the request that the call makes of this program."""
        self._renew_task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def offer(self) -> AsyncGenerator[None]:
        """Offer the functions while the block runs. Raises CodeloopError."""
        await self._send_offer()
        self._renew_task = asyncio.create_task(self._renew_lease())
        try:
            yield
        finally:
            # Shielded, so that the offer is also withdrawn if the turn's task is cancelled.
            await asyncio.shield(asyncio.ensure_future(self.close()))

    async def close(self) -> None:
        """Withdraw the offer, and cancel the running calls."""
        if self._renew_task is None:
            return
        running_calls = [*self._running_calls.values()]
        tasks = [self._renew_task, *(running.task for running in running_calls)]
        self._renew_task = None
        for running in running_calls:
            running.call.abort.set()
        await cancel_all(tasks)
        with suppress(CodeloopError):
            await self._client.call(
                TOOLS_WITHDRAW, WithdrawTools(session_id=self._session_id, lease_id=self._lease_id)
            )

    def on_event(self, event: Event) -> None:
        """Start a call that the model has made, or cancel one whose result is no longer needed."""
        if isinstance(event, ClientToolChanged) and event.properties.lease_id == self._lease_id:
            if event.properties.state == "called":
                self._start_call(event.properties)
            elif (running := self._running_calls.get(event.properties.request_id)) is not None:
                # `abort` is for a function that runs in a thread, which can't be cancelled.
                running.call.abort.set()
                running.task.cancel()

    def on_resume(self) -> None:
        """Offer the functions again, which returns the calls that were made meanwhile."""
        self._feed.start_background(self._send_offer(), lambda _: None)

    async def _renew_lease(self) -> None:
        while True:
            # Early enough that one request may fail without the end of the lease.
            await asyncio.sleep(CLIENT_TOOLS.seconds / 3)
            with suppress(CodeloopError):
                await self._send_offer()

    async def _send_offer(self) -> None:
        """Offer the functions for the time of the lease, and start the calls that wait."""
        client_tools = [
            ClientTool(
                name=each.name,
                description=each.description,
                parameters=each.parameters,
                read_only=getattr(each.function, READ_ONLY_ATTRIBUTE, False),
            )
            for each in self._tools.values()
        ]
        offer_tools = OfferTools(
            session_id=self._session_id, lease_id=self._lease_id, tools=client_tools
        )
        for call in (await self._client.call(TOOLS_OFFER, offer_tools)).calls:
            self._start_call(call)

    def _start_call(self, client_tool_call: ClientToolCall) -> None:
        # A renewed offer returns the waiting calls, also those that run here already.
        if (
            client_tool_call.request_id in self._running_calls
            or client_tool_call.tool not in self._tools
        ):
            return
        call = FunctionCall(self._client, self._session_id, client_tool_call)
        task = asyncio.create_task(self._call_function(call))
        self._running_calls[client_tool_call.request_id] = RunningFunctionCall(call, task)
        task.add_done_callback(lambda _: self._running_calls.pop(client_tool_call.request_id, None))

    async def _call_function(self, call: "FunctionCall") -> None:
        """Call the function, and send its result or its exception."""
        tool = self._tools[call.client_tool_call.tool]
        function_task = asyncio.create_task(tool.call(call.client_tool_call.arguments, call))
        try:
            await asyncio.wait([function_task])
        finally:
            function_task.cancel()
        answer = call.make_answer(function_task)
        try:
            await self._client.call(TOOL_ANSWER, answer)
        # Such as a result that is too large, or a call that has ended meanwhile.
        except CodeloopError as error:
            failure = call.make_failure(f"The result of {tool.name} could not be sent: {error}")
            with suppress(CodeloopError):
                await self._client.call(TOOL_ANSWER, failure)


class FunctionCall:
    """One call of a function; the function gets it as the argument `ctx`."""

    def __init__(self, client: Client, session_id: str, client_tool_call: ClientToolCall) -> None:
        self.client_tool_call = client_tool_call
        self.session_id = client_tool_call.session_id
        self.message_id = client_tool_call.message_id
        self.call_id = client_tool_call.call_id
        self.agent = client_tool_call.agent
        self.directory = Path(client_tool_call.directory)
        self.worktree = Path(client_tool_call.worktree)
        self.options: Mapping[str, Any] = {}
        """Always empty: a plugin has options, a function of a program has none."""
        self.abort = Flag()
        self._client = client
        self._arguments: dict[str, Any] = {
            # The session of the offer; `self.session_id` is that of the call,
            # which may be a subagent's.
            "session_id": session_id,
            "lease_id": client_tool_call.lease_id,
            "request_id": client_tool_call.request_id,
        }
        self._loop = asyncio.get_running_loop()

    async def ask(
        self,
        permission: str,
        patterns: Sequence[str] = ("*",),
        *,
        always: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Return once the rules or the user allow this.
        Raises ToolRefused if they refuse it, which ends the call.
        """
        ask_for_tool_call = AskForToolCall(
            **self._arguments,
            permission=permission,
            patterns=list(patterns),
            always=list(always),
            metadata=dict(metadata or {}),
        )
        answer = await self._client.call(TOOL_ASK, ask_for_tool_call)
        if not answer.allowed:
            raise ToolRefused(answer.message)

    def report(
        self, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Show progress; may be called from any thread."""
        report_tool_call = ReportToolCall(
            **self._arguments, title=title, metadata=dict(metadata or {})
        )
        asyncio.run_coroutine_threadsafe(
            self._client.call(TOOL_REPORT, report_tool_call), self._loop
        )

    async def operation(
        self,
        name: str,
        *,
        path: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
    ) -> Any:
        """Call an operation of the HTTP API by its id; return its answer. Raises CodeloopError."""
        row = next((row for row in OPERATIONS if row.id == name), None)
        if row is None:
            raise CodeloopError(
                f"There is no operation {name}. `codeloop serve` lists them at /doc."
            )
        args = row.convert_arguments(dict(path or {}), dict(query or {}), body)
        return msgspec.to_builtins(await self._client.call(row, args))

    def log(self, message: str, level: str = "info", **extra: Any) -> None:
        """Write a line to Python's log, as the logger `codeloop.library`."""
        _LOG.log(
            _LOG_LEVELS.get(level, logging.INFO),
            "%s: %s %s",
            self.client_tool_call.tool,
            message,
            extra or "",
        )

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Wait for an awaitable of this context, in a function that is not async.
        Raises CodeloopError elsewhere.
        """
        return wait_in_thread(self._loop, awaitable)

    def make_answer(self, function_task: "asyncio.Task[FunctionResult]") -> AnswerToolCall:
        """Return the answer to the call, from the finished task of its function."""
        name = self.client_tool_call.tool
        if function_task.cancelled():
            return self.make_failure(f"{name} was cancelled.")
        error = function_task.exception()
        if isinstance(error, WrongArguments | CodeloopError):
            return self.make_failure(str(error))
        if error is not None:
            _LOG.warning("%s raised", name, exc_info=error)
            return self.make_failure(
                f"{name} raised {type(error).__name__}: {error}\n{format_program_frames(error)}".rstrip()
            )
        result = function_task.result()
        try:
            files = [
                msgspec.convert({"type": "file", **each}, FilePartInput)
                for each in result.attachments
            ]
        except msgspec.ValidationError as wrong:
            return self.make_failure(f"{name} returned invalid attachments: {wrong}.")
        return AnswerToolCall(
            **self._arguments,
            output=result.output,
            title=result.title,
            metadata=result.metadata,
            attachments=files,
        )

    def make_failure(self, why: str) -> AnswerToolCall:
        """Return the answer to a call that has no result; `why` is for the model."""
        return AnswerToolCall(**self._arguments, error=why)


def format_program_frames(error: BaseException) -> str:
    """Return the traceback of an exception as text, without the frames of the library
    that called the function.
    """
    frames = dropwhile(
        lambda frame: frame.filename.endswith(_LIBRARY_FILES),
        traceback.extract_tb(error.__traceback__),
    )
    return "".join(traceback.format_list(list(frames)[-_MAX_FRAMES:]))
