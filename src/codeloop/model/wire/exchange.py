"""One request and its streamed answer, the same for every wire protocol: bytes in, events out, always a Finished."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from msgspec import Struct

from codeloop.model.chat import Finished, ModelEvent
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.errors import Failures
from codeloop.model.wire.response import ResponseReader
from codeloop.net.client import HttpResponse, OriginClient
from codeloop.net.http1 import NetworkError
from codeloop.net.sse import EventTooLong, SseParser
from codeloop.schema.errors import MessageError
from codeloop.schema.limits import MODEL_ANSWER, MODEL_ERROR_BODY, MODEL_TAIL


class Exchange(Struct, frozen=True):
    """One request at one service."""

    http: OriginClient
    endpoint: Endpoint
    failures: Failures

    async def run(self, headers: dict[str, str], body: bytes, reader: ResponseReader) -> AsyncGenerator[ModelEvent]:
        """Send the request and give what comes until Finished. Closing the generator drops the connection."""
        try:
            answer = await self.http.post(self.failures.path, headers, body)
        except NetworkError as error:
            yield Finished("error", error=self.failures.network(error))
            return
        try:
            if answer.status != 200:
                said = await answer.read_some(16 * MODEL_ERROR_BODY.value, min(self.endpoint.idle, MODEL_TAIL.seconds))
                yield Finished("error", error=await self.failures.answered(answer.status, answer.headers, said))
                return
            async with aclosing(self._events(answer, reader)) as batches:
                async for events in batches:
                    for event in events:
                        yield event
        finally:
            answer.close()

    async def _events(self, answer: HttpResponse, reader: ResponseReader) -> AsyncGenerator[list[ModelEvent], None]:
        """Yield the events of a 200 in batches, one for each piece that the network gives; the last holds Finished."""
        error: MessageError | None = None
        idle = self.endpoint.idle
        try:
            first = await self._first_piece(answer)
            match first[:1]:
                case b"{" | b"[":
                    yield reader.whole(first + await self._rest(answer))
                case b"<":
                    error = self.failures.unreadable(first, "a web page, not a model's answer")
                case _:
                    parser = SseParser(MODEL_ANSWER.value)
                    chunk = first
                    while chunk:
                        if events := reader.feed(parser.feed(chunk)):
                            yield events
                        if reader.done:
                            await answer.finish()
                            break
                        chunk = await answer.read(min(idle, MODEL_TAIL.seconds) if reader.ended else idle)
        except NetworkError as failure:
            error = None if reader.ended else self.failures.network(failure)
        except EventTooLong:
            error = self.failures.unreadable(b"", f"an event of more than {MODEL_ANSWER.value} bytes")
        if reader.error is not None:
            error = self.failures.said(reader.error)
        elif error is None and not reader.ended:
            error = self.failures.network(NetworkError("cut"))
        yield reader.finish() if error is None else [Finished("error", reader.tokens, error)]

    async def _first_piece(self, answer: HttpResponse) -> bytes:
        """Return the beginning of the body: what it is shows in its first byte that is no blank."""
        first = b""
        while not first:
            chunk = await answer.read(self.endpoint.first_byte, late="first-byte")
            if not chunk:
                return b""
            first = chunk.lstrip()
        return first

    async def _rest(self, answer: HttpResponse) -> bytes:
        pieces, size = list[bytes](), 0
        while data := await answer.read(self.endpoint.idle):
            pieces.append(data)
            size += len(data)
            if size > MODEL_ANSWER.value:
                raise EventTooLong
        return b"".join(pieces)
