"""An extension host: one process that runs extensions,
started at first use and again after a crash.
"""

import asyncio
import itertools
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from msgspec import Struct

from codeloop.extend.hooks.hooks import HookFailed, retrieve_exception
from codeloop.extend.host.back_off import BackOff
from codeloop.extend.host.extension import CallListener
from codeloop.extend.host.host_callbacks import ProcessCallbacks
from codeloop.extend.host.host_stream import (
    BrokenStream,
    convert_error,
    encode_request,
    make_error_answer,
    parse_offer,
    read_messages,
)
from codeloop.extend.host.pending_request import PendingRequest, ReceivePiece
from codeloop.extend.host.protocol import (
    AnswerError,
    AnswerResult,
    CallProgress,
    CancelRequest,
    EventsTaken,
    ExtensionOffer,
    FetchChunk,
    FetchHead,
    FromHost,
    HostMessage,
    HostQuestion,
    HostReady,
    LoadRequest,
    LoadSpec,
    LogLine,
    OperationCall,
    encode,
    encode_line,
)
from codeloop.kit.program import Program
from codeloop.schema.bounds.extension import HOST_LOAD, HOST_START, HOST_STOP
from codeloop.schema.errors import OperationError

# The greeting has no id of its own; it is kept among the requests under a number
# that is never given to one.
_GREETING_ID = 0


class _Process(Struct):
    """One run of the program. `loaded`: the offers of its extensions, by name."""

    program: Program
    reading: "asyncio.Task[None]"
    loaded: dict[str, "asyncio.Task[ExtensionOffer]"]


class ExtensionHost:
    """The process of one host, and the requests to the extensions in it."""

    def __init__(self, callbacks: ProcessCallbacks) -> None:
        self.callbacks = callbacks
        self.runtime = ""
        """Its runtime, as reported at the last start."""
        self._process: _Process | None = None
        self._opening: asyncio.Task[_Process] | None = None
        self._requests: dict[int, PendingRequest] = {}
        self._numbers = itertools.count(1)
        self._back_off = BackOff()
        self._stuck: set[int] = set()
        """The requests that did not stop when they were cancelled."""
        self._work: set[asyncio.Task[Any]] = set()

    @property
    def is_busy(self) -> bool:
        """Return whether any request is pending."""
        return bool(self._requests)

    async def load(self, extension: LoadSpec, *, again: bool = False) -> ExtensionOffer:
        """Return an extension's offer; load it first if needed.
        Raises HookFailed, ExtensionRaised.
        """
        process = await self._ensure_running()
        loading = None if again else process.loaded.get(extension.name)
        if loading is None:

            async def request_offer() -> ExtensionOffer:
                answer = await self._send_request(
                    extension.name, lambda number: LoadRequest(number, extension), HOST_LOAD.seconds
                )
                return parse_offer(answer)

            loading = process.loaded[extension.name] = asyncio.create_task(request_offer())
            # Every caller may have been cancelled by the time that the load fails.
            loading.add_done_callback(retrieve_exception)
        # Shielded: the load is shared, so a caller that is cancelled must not
        # end it for the others.
        return await asyncio.shield(loading)

    async def ask(
        self,
        extension: LoadSpec,
        message: Callable[[int], HostMessage],
        seconds: float,
        listener: CallListener | None = None,
        receive_piece: ReceivePiece | None = None,
    ) -> Any:
        """Send an extension a request, which `message` makes from its number; return its answer.

        `seconds`: its deadline. `listener`: gets the questions and the progress of a tool.
        `receive_piece`: gets the pieces of a response as they arrive. Raises HookFailed: the host
        failed, or did not answer in time; ExtensionRaised.
        """
        await self.load(extension)
        return await self._send_request(extension.name, message, seconds, listener, receive_piece)

    def notify(self, line: bytes) -> bool:
        """Send an encoded message without an answer, if the program runs;
        return whether it does.
        """
        with suppress(OSError):
            if self._process is not None:
                self._process.program.write(line)
                return True
        return False

    async def close(self) -> None:
        """End the process; the next request starts it again."""
        opening, self._opening = self._opening, None
        if opening is not None:
            # First the start, which could otherwise create a process after the end.
            opening.cancel()
            await asyncio.wait([opening])
        await self._end("it was ended")
        if work := tuple(self._work):
            for task in work:
                task.cancel()
            await asyncio.wait(work)

    async def _send_request(
        self,
        about: str,
        message: Callable[[int], HostMessage],
        seconds: float,
        listener: CallListener | None = None,
        receive_piece: ReceivePiece | None = None,
    ) -> Any:
        number = next(self._numbers)
        # Encoded before the request is registered: an argument that can't be encoded
        # leaves nothing behind.
        encoded = encode_request(message(number))
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        request = self._requests[number] = PendingRequest(
            answer, about, seconds, listener, receive_piece
        )
        try:
            if not self.notify(encoded):
                raise HookFailed(f"the extension host {self.callbacks.name} is gone")
            async with asyncio.timeout(seconds) as request.deadline:
                # The answer outlives a timeout: the program still answers a cancelled request, and
                # `_cancel` waits for that.
                value = await asyncio.shield(answer)
        except TimeoutError as error:
            self._cancel(number)
            raise HookFailed(f"it did not answer in {seconds:g} s") from error
        except asyncio.CancelledError:
            self._cancel(number)
            raise
        except HookFailed:
            self._forget(number)
            raise
        finally:
            request.deadline = None
            for question in request.questions:
                question.cancel()
        self._forget(number)
        if isinstance(value, AnswerError):
            raise convert_error(value)
        return value

    def _cancel(self, number: int) -> None:
        """Cancel a request in the program; if it does not stop,
        the program is ended once otherwise idle.
        """
        if self._requests[number].answer.done() or not self.notify(
            encode_line(CancelRequest(number))
        ):
            self._forget(number)
            return

        async def wait() -> None:
            await asyncio.wait([self._requests[number].answer], timeout=HOST_STOP.seconds)
            if self._requests[number].answer.done():
                self._forget(number)
                return
            self.callbacks.log(
                f"{self._requests[number].about} does not stop: the host is ended once it has nothing to do"
            )
            self._stuck.add(number)
            self._end_if_stuck()

        self._spawn(wait())

    def _forget(self, number: int) -> None:
        """Remove a request that is answered, or was never sent."""
        self._requests.pop(number, None)
        self._end_if_stuck()

    def _end_if_stuck(self) -> None:
        """End the program when only uncancellable requests are left in it."""
        # Extensions share the process: it can't be killed while another one is still working in it.
        if self._stuck and self._requests.keys() <= self._stuck:
            self._spawn(self._fail("it was ended, since an extension in it did not stop working"))

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    async def _ensure_running(self) -> _Process:
        """Return the running program; start it if needed. Raises HookFailed."""
        if self._process is not None:
            return self._process
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(retrieve_exception)
        opening = self._opening
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if opening.cancelled():
                # Not this caller was cancelled but the start,
                # by `close`: for the caller that is a failure.
                raise HookFailed(f"the extension host {self.callbacks.name} was ended") from None
            raise

    async def _open(self) -> _Process:
        try:
            # A program that dies at each start would otherwise be restarted by
            # every hook of every turn.
            if seconds_left := await self._back_off.pause():
                reason = f"the extension host {self.callbacks.name} has failed {self._back_off.failures} times"
                raise HookFailed(f"{reason} and is started again in {seconds_left:.0f} s")
            began = time.monotonic()
            self._back_off.note_start()
            try:
                program = await self.callbacks.start()
            except OSError as error:
                self._back_off.note_failure()
                self.callbacks.log(f"it can't be started: {error}")
                raise HookFailed(
                    f"the extension host {self.callbacks.name} can't be started: {error}"
                ) from error
            greeting = asyncio.get_running_loop().create_future()
            self._requests[_GREETING_ID] = PendingRequest(greeting, "greeting")
            reading = asyncio.create_task(self._read(program))
            process = self._process = _Process(program, reading, {})
            # A new program has none of the events that the last one had not handled.
            self.callbacks.acknowledge(None)
            self.notify(encode_line(self.callbacks.hello))
            try:
                done, _ = await asyncio.wait([greeting], timeout=HOST_START.seconds)
            finally:
                del self._requests[_GREETING_ID]
            if not done:
                await self._fail(f"it did not greet in {HOST_START.seconds:g} s")
            # The program refuses a greeting when its runtime is too old.
            if not done or isinstance(greeting.result(), AnswerError):
                why = greeting.result().message if done else "it did not greet"
                if self._process is process:
                    self._back_off.note_failure()
                    await self._end(why)
                raise HookFailed(f"the extension host {self.callbacks.name} can't be used: {why}")
            self.runtime = greeting.result()
            self.callbacks.log(f"started in {time.monotonic() - began:.2f} s: {self.runtime}")
            return process
        finally:
            # If `close` has cleared it, another start may be under way, whose task must stay.
            if self._opening is asyncio.current_task():
                self._opening = None

    async def _read(self, program: Program) -> None:
        why = ""
        try:
            async for message in read_messages(program):
                self._handle(message)
        except BrokenStream as error:
            why = str(error)
        if self._process is not None and self._process.program is program:
            # In a task of its own, since `_fail` waits for this reader to end.
            self._spawn(self._fail(why or program.ending or "it closed its connection"))

    def _handle(self, message: FromHost) -> None:
        """Handle a message from the program."""
        match message:
            case HostReady():
                self._settle(_GREETING_ID, message.runtime)
            case AnswerResult():
                self._settle(message.id, message.value)
            case AnswerError():
                self._settle(message.id, message)
            case HostQuestion():
                self._ask_for_call(message)
            case CallProgress():
                request = self._requests.get(message.call)
                if request is not None and request.listener is not None:
                    request.listener.report(message)
            case FetchHead() | FetchChunk():
                request = self._requests.get(message.id)
                if request is not None and request.receive_piece is not None:
                    request.receive_piece(message)
            case OperationCall():
                self._carry_out(message.id, message.operation, self.callbacks.serve(message))
            case EventsTaken():
                self.callbacks.acknowledge(message.count)
            case LogLine():
                extra = f" {encode(message.extra).decode()}" if message.extra else ""
                self.callbacks.log(f"{message.level}: {message.message}{extra}")

    def _settle(self, number: int, value: Any) -> None:
        request = self._requests.get(number)
        if request is not None and not request.answer.done():
            request.answer.set_result(value)

    def _ask_for_call(self, question: HostQuestion) -> None:
        """Pass a question to the caller; it is withdrawn when the call ends."""
        request = self._requests.get(question.call)
        if request is None or request.listener is None:
            error = OperationError("BadRequest", "Only a tool can ask, while its call goes on.")
            self.notify(encode_line(make_error_answer(question.id, "The question", error)))
            return
        asking = self._carry_out(question.id, "The question", request.listener.ask(question))

        def finish_question(_: object) -> None:
            request.questions.remove(asking)
            request.reschedule()

        # While the user is asked, the extension's time does not run.
        request.questions.append(asking)
        request.reschedule()
        asking.add_done_callback(finish_question)

    def _carry_out(
        self, number: int, what: str, work: Coroutine[Any, Any, Any]
    ) -> "asyncio.Task[Any]":
        """Run `work`, which the program has requested, and send its result or error."""

        def answer(done: "asyncio.Task[Any]") -> None:
            if done.cancelled():
                message: HostMessage = AnswerError(
                    number, "raised", f"{what} was withdrawn, since its call has ended."
                )
            elif (error := done.exception()) is not None:
                message = make_error_answer(number, what, error)
            else:
                message = AnswerResult(number, done.result())
            self.notify(encode_line(message))

        task = self._spawn(work)
        task.add_done_callback(answer)
        return task

    async def _fail(self, why: str) -> None:
        """Report that the program has ended or can't continue, and end it."""
        if self._process is None:
            return
        self._back_off.note_failure()
        self.callbacks.log(f"failed: {why}")
        self.callbacks.warn(
            f"The extension host {self.callbacks.name} has failed: {why}. It is started again when needed."
        )
        await self._end(why)

    async def _end(self, why: str) -> None:
        """End the program, if it runs; pending requests fail with the reason."""
        process, self._process = self._process, None
        if process is None:
            return
        # Nobody waits for these any more; the others get an error as their answer.
        for number in self._stuck:
            self._requests.pop(number, None)
        self._stuck.clear()
        for request in self._requests.values():
            if not request.answer.done():
                # "missing", since `convert_error` makes a HookFailed of that.
                request.answer.set_result(
                    AnswerError(
                        0, "missing", f"the extension host {self.callbacks.name} has failed: {why}"
                    )
                )
        process.reading.cancel()
        try:
            await asyncio.wait([process.reading])
        finally:
            await process.program.close()
