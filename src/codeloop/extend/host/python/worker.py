"""Runs one extension in a thread with its own event loop,
so that a blocking one does not stop others.
"""

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from codeloop.extend.functions import FunctionTool, WrongArguments, wait_in_thread
from codeloop.extend.host.protocol import (
    AnswerError,
    AnswerResult,
    AskHook,
    CallOrigin,
    CallTool,
    ExtensionOffer,
    HostQuestion,
    LoadSpec,
    OperationCall,
)
from codeloop.extend.host.python.channel import HostChannel
from codeloop.extend.host.python.loading import LoadedFunctions, NotLoadable, load_extension
from codeloop.extend.host.python.program_tool import ProgramFailed, ProgramTool

T = TypeVar("T")


class HostContext:
    """The `ctx` argument of a tool or hook; implements Context.
    `call`: the id of the request that it belongs to.
    """

    def __init__(
        self, channel: HostChannel, call_origin: CallOrigin, options: Mapping[str, Any], call: int
    ) -> None:
        self.session_id = call_origin.session_id
        self.message_id = call_origin.message_id
        self.call_id = call_origin.call_id
        self.agent = call_origin.agent
        self.directory = Path(call_origin.directory)
        self.worktree = Path(call_origin.worktree)
        self.options = options
        self.abort = Event()
        self._channel = channel
        self._call = call
        self._loop = asyncio.get_running_loop()

    async def ask(
        self,
        permission: str,
        patterns: Sequence[str] = ("*",),
        *,
        always: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """See Context."""
        await self._channel.ask(
            HostQuestion,
            call=self._call,
            permission=permission,
            patterns=tuple(patterns),
            always=tuple(always),
            metadata=dict(metadata or {}),
        )

    def report(
        self, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """See Context."""
        self._channel.report(self._call, title, None if metadata is None else dict(metadata))

    async def operation(
        self,
        name: str,
        *,
        path: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
    ) -> Any:
        """See Context."""
        return await self._channel.ask(
            OperationCall,
            operation=name,
            path=None if path is None else dict(path),
            query=None if query is None else dict(query),
            body=body,
        )

    def log(self, message: str, level: str = "info", **extra: Any) -> None:
        """See Context."""
        self._channel.log(message, level, extra or None)

    def wait(self, awaitable: Awaitable[T]) -> T:
        """See Context."""
        return wait_in_thread(self._loop, awaitable)


_MAX_THREADS = 32
# Frames of these paths are left out of tracebacks: they mean nothing to the author of an extension.
_INTERNAL_PATHS = ("codeloop/extend/", "/asyncio/", "/concurrent/futures/", "importlib")


class ExitRefused(Exception):
    """An extension tried to end the process, which is prevented."""


class _RunningRequest(Struct):
    """A request at work. `context`: None for the request to load the extension."""

    task: "asyncio.Task[Any]"
    context: HostContext | None = None


class Worker:
    """The worker of one extension. Its public methods are called from the reading thread."""

    def __init__(self, channel: HostChannel, extension: LoadSpec, call_origin: CallOrigin) -> None:
        self._channel = channel
        self._extension = extension
        self._origin = call_origin
        self._loaded = LoadedFunctions()
        self._running: dict[int, _RunningRequest] = {}
        self._following: asyncio.Task[None] | None = None
        """The task of the newest batch of events, which waits for that of the batch before."""
        self._loop = asyncio.new_event_loop()
        # An executor of its own: a blocked extension must not use up the threads of the others.
        self._loop.set_default_executor(
            ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix=extension.name)
        )
        # A daemon thread does not keep the process alive.
        Thread(target=self._loop.run_forever, name=extension.name, daemon=True).start()

    @property
    def follows_events(self) -> bool:
        """Whether the extension has the hook `event`."""
        return "event" in self._loaded.hooks

    def load(self, number: int) -> None:
        """Import the extension, and answer with its offer."""
        self._loop.call_soon_threadsafe(self._start, number, None, self._load())

    def call(self, message: CallTool) -> None:
        """Call a tool, and answer."""
        tool = self._loaded.tools.get(message.tool)
        if tool is None:
            self._channel.send(AnswerError(message.id, "missing", f"it has no tool {message.tool}"))
            return
        self._loop.call_soon_threadsafe(self._call, message, tool)

    def ask(self, message: AskHook) -> None:
        """Call the hooks of a name in order, and answer."""
        self._loop.call_soon_threadsafe(self._ask, message)

    def cancel(self, number: int) -> None:
        """Cancel a request: cancel its task, and set `ctx.abort` for code in a thread."""
        self._loop.call_soon_threadsafe(self._cancel, number)

    def follow(self, events: tuple[msgspec.Raw, ...], on_done: Callable[[], None]) -> None:
        """Deliver events to followers in order; then call `on_done`."""
        self._loop.call_soon_threadsafe(self._follow, events, on_done)

    async def _load(self) -> ExtensionOffer:
        self._loaded = await load_extension(self._extension)
        return self._loaded.offer

    def _call(self, message: CallTool, tool: FunctionTool | ProgramTool) -> None:
        context = self._make_context(message.context, message.id)
        self._start(message.id, context, tool.call(message.arguments, context))

    def _ask(self, message: AskHook) -> None:
        context = self._make_context(self._origin, message.id)
        self._start(message.id, context, self._ask_hook(message, context))

    async def _ask_hook(self, message: AskHook, context: HostContext) -> Any:
        output: Any = message.output
        for function in self._loaded.hooks.get(message.name, ()):
            result = await _call_hook(function, [message.input, output], context)
            output = output if result is None else result
        return output

    def _make_context(self, call_origin: CallOrigin, number: int) -> HostContext:
        return HostContext(self._channel, call_origin, self._extension.options or {}, number)

    def _start(
        self, number: int, context: HostContext | None, work: Coroutine[Any, Any, Any]
    ) -> None:
        task = self._loop.create_task(_prevent_exit(work))
        self._running[number] = _RunningRequest(task, context)
        task.add_done_callback(partial(self._finish, number))

    def _cancel(self, number: int) -> None:
        running = self._running.get(number)
        if running is not None:
            if running.context is not None:
                # A function in a thread can't be cancelled; it may look at `ctx.abort`.
                running.context.abort.set()
            running.task.cancel()

    def _finish(self, number: int, task: "asyncio.Task[Any]") -> None:
        del self._running[number]
        if task.cancelled():
            self._channel.send(AnswerError(number, "raised", "it was cancelled", "CancelledError"))
            return
        error = task.exception()
        if error is not None:
            self._channel.send(_make_error(number, error))
            return
        try:
            self._channel.send(AnswerResult(number, task.result()))
        except (TypeError, ValueError, RecursionError) as unfit:
            self._channel.send(
                AnswerError(
                    number, "invalid", f"what it returned can't be written as JSON: {unfit}"
                )
            )

    def _follow(self, events: tuple[msgspec.Raw, ...], on_done: Callable[[], None]) -> None:
        self._following = self._loop.create_task(self._handle_events(events, self._following))
        self._following.add_done_callback(lambda _: on_done())

    async def _handle_events(
        self, events: tuple[msgspec.Raw, ...], earlier: "asyncio.Task[None] | None"
    ) -> None:
        # Batches are handled one after the other, so that followers see the events in order.
        if earlier is not None:
            await asyncio.wait([earlier])
        # Events belong to no request, so their context has the number 0, which none has.
        context = self._make_context(self._origin, 0)
        for raw in events:
            event = msgspec.json.decode(raw)
            for function in self._loaded.hooks.get("event", ()):
                # The result is collected instead of raised: one failing follower must not
                # keep events from the next.
                (failure,) = await asyncio.gather(
                    _prevent_exit(_call_hook(function, [event], context)), return_exceptions=True
                )
                if isinstance(failure, BaseException):
                    self._channel.log(
                        f"{self._extension.name} failed at an event: {_describe(failure)}", "error"
                    )


async def _prevent_exit(work: Awaitable[Any]) -> Any:
    """Await `work` and return its value, preventing an exit of the process,
    which would end other extensions.
    """
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as error:
        raise ExitRefused(
            f"it called for the end of the program ({type(error).__name__})"
        ) from error


async def _call_hook(function: Callable[..., Any], values: list[Any], context: HostContext) -> Any:
    """Call a hook with as many of `input`, `output` and `ctx` as it takes;
    a synchronous one in a thread.
    """
    names = inspect.signature(function).parameters
    context_argument = {"ctx": context} if "ctx" in names else {}
    call = partial(function, *values[: len(names) - len(context_argument)], **context_argument)
    value = await call() if inspect.iscoroutinefunction(function) else await asyncio.to_thread(call)
    return await value if inspect.isawaitable(value) else value


def _make_error(number: int, error: BaseException) -> AnswerError:
    kind = (
        "invalid" if isinstance(error, WrongArguments | NotLoadable | ProgramFailed) else "raised"
    )
    name = "" if kind == "invalid" else type(error).__name__
    return AnswerError(number, kind, str(error) or type(error).__name__, name, _format_trace(error))


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _format_trace(error: BaseException) -> str:
    """Return the traceback within the extension's own code."""
    summary = traceback.TracebackException.from_exception(error)
    for each in (summary, summary.__cause__, summary.__context__):
        if each is not None:
            frames = [
                frame
                for frame in each.stack
                if not any(part in frame.filename for part in _INTERNAL_PATHS)
            ]
            each.stack = traceback.StackSummary.from_list(frames)
    return "".join(summary.format())
