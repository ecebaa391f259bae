"""The HTTP exchange shared by all protocols: a request,
and a stream of events that always ends with Finished.

The adapters in `model/protocols` derive from `HttpModel`.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol
from urllib.parse import urlsplit

from codeloop.model.base_url import redact_url
from codeloop.model.chat import (
    Finished,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    RetryScheduled,
    UserModelMessage,
)
from codeloop.model.errors import ModelUnavailable
from codeloop.model.quirks import Quirks
from codeloop.model.wire.endpoint import Endpoint
from codeloop.model.wire.response_reader import ResponseReader
from codeloop.net.client import HttpResponse, OriginClient, RequestClient, join_url
from codeloop.net.errors import NetworkError
from codeloop.net.sse import EventTooLong, SseParser
from codeloop.net.wait_hints import find_pause
from codeloop.schema.errors import APIError, MessageError
from codeloop.schema.ids import now_ms
from codeloop.schema.limits import MODEL_ANSWER, MODEL_ERROR_BODY, MODEL_TAIL_TIME

if TYPE_CHECKING:
    from codeloop.model.wire.service_errors import ServiceErrors

# A retry after exactly the time that the service named needs no further pause.
_LEAST_PAUSE_SECONDS = 0.05
_FRAMING_HEADERS = frozenset(("host", "content-length", "transfer-encoding", "connection"))
"""Headers that hooks can't set: they say where a request ends and which host it
is for (request smuggling).
"""


class EventParser(Protocol):
    """Parses events from bytes that come in pieces."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take more bytes; return the payloads of the events that they complete.
        Raises EventTooLong.
        """
        ...


class RequestEncoder(Protocol):
    """Encodes the bodies of requests to one model."""

    def encode(self, request: ModelRequest) -> bytes:
        """Return the JSON body of a request."""
        ...


class HttpModel:
    """A ChatModel behind HTTP. Each protocol has a subclass with its path, headers,
    request body and answer reader.
    """

    encoder_type: ClassVar[Callable[[ModelInfo, Quirks], RequestEncoder]]
    reader_type: ClassVar[type[ResponseReader]]

    def __init__(
        self,
        info: ModelInfo,
        endpoint: Endpoint,
        quirks: Quirks,
        path: str,
        headers: dict[str, str],
    ) -> None:
        self._info = info
        self._endpoint = endpoint
        self._quirks = quirks
        self._http: RequestClient = endpoint.client or OriginClient(
            endpoint.base_url, endpoint.connect, endpoint.first_byte
        )
        self._free_at = 0.0
        """When the service accepts requests again (monotonic seconds)."""
        self._path = path
        self._headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "user-agent": "codeloop",
            # The later take precedence: a user can override everything, the key too.
            **headers,
            **_lowercase_names(quirks.headers),
            **_lowercase_names(info.headers),
            **_lowercase_names(endpoint.headers),
        }
        if endpoint.known_refusals is not None and endpoint.known_refusals.is_file():
            from codeloop.model.wire.known_refusals import apply_known

            self._quirks = apply_known(endpoint.known_refusals, self._address, self._quirks)
        self._encoder = self._make_encoder()

    def _make_encoder(self, left_out: Sequence[str] = ()) -> RequestEncoder:
        """Make the encoder of what the service accepts by `_quirks`, without some more fields."""
        quirks = self._quirks
        if left_out:
            from codeloop.model.wire.refused_fields import leave_out

            for name in left_out:
                quirks = leave_out(quirks, name) or quirks
        return self._create_encoder(quirks)

    def _create_encoder(self, quirks: Quirks) -> RequestEncoder:
        return type(self).encoder_type(self._info, quirks)

    @property
    def _address(self) -> str:
        """The service's address and its name of the model, as known refusals are kept."""
        return f"{redact_url(self._endpoint.base_url)} {self._info.api_id or self._info.id}"

    @cached_property
    def _errors(self) -> "ServiceErrors":
        # Imported late: most requests succeed, and its patterns are many.
        from codeloop.model.wire.service_errors import ServiceErrors

        return ServiceErrors(self._info, self._endpoint, self._path)

    @property
    def info(self) -> ModelInfo:
        """The model's metadata."""
        return self._info

    async def aclose(self) -> None:
        """Close idle connections."""
        await self._http.aclose()

    def _make_parser(self) -> EventParser:
        """Make the parser of an answer's bytes; protocols that don't use server-sent
        events override it.
        """
        return SseParser(MODEL_ANSWER.value)

    def _make_request_headers(self, request: ModelRequest) -> dict[str, str]:
        """Return the headers of one request; for a service that bills by it,
        one of them says who caused the request.

        GitHub Copilot counts the requests of users only, not those that follow from tool calls.
        """
        initiator_header = self._quirks.initiator_header
        if not initiator_header:
            return request.headers
        is_from_user = bool(request.messages) and isinstance(request.messages[-1], UserModelMessage)
        return {initiator_header: "user" if is_from_user else "agent", **request.headers}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Send the request and yield its events until Finished.
        Closing the generator drops the connection.

        When the service refuses an optional field, the request is sent again without it.
        """
        pause = self._free_at - time.monotonic()
        if pause > _LEAST_PAUSE_SECONDS and (wait := self._announce_pause(pause)) is not None:
            yield wait
            await asyncio.sleep(pause)
        # Fields whose value is refused: only this request goes without them.
        left_out: list[str] = []
        # Ends, since each field is left out only once.
        while True:
            encoder = self._make_encoder(left_out) if left_out else self._encoder
            body = encoder.encode(request)
            try:
                response = await self._post(request, body)
            except ModelUnavailable as error:
                yield Finished("error", error=self._errors.from_signing(error))
                return
            except NetworkError as error:
                yield Finished("error", error=self._errors.from_network(error))
                return
            try:
                if response.status != 200:
                    error = await self._read_error(response)
                    if (again := self._leave_out_refused(error, body, left_out)) is not None:
                        yield again
                        continue
                    yield Finished("error", error=error)
                    return
                # The headers say before the answer does that the next request would be refused.
                self._free_at = time.monotonic() + find_pause(response.headers, time.time())
                has_begun, again = False, None
                async with aclosing(self._read_events(response, self.reader_type())) as batches:
                    async for events in batches:
                        # Some gateways report a refusal inside a stream.
                        if not has_begun and events and isinstance(end := events[0], Finished):
                            again = self._leave_out_refused(end.error, body, left_out)
                            if again is not None:
                                break
                        has_begun = has_begun or bool(events)
                        for event in events:
                            yield event
                if again is None:
                    return
                yield again
            finally:
                response.close()

    def _announce_pause(self, pause: float) -> RetryScheduled | None:
        """Return the notice of a pause that the service asks for, in seconds.

        None: a longer wait is not begun: the service refuses the request, and says when to try
        again.
        """
        from codeloop.schema.bounds.cloud import MODEL_RATE_LIMIT_WAIT

        if pause > MODEL_RATE_LIMIT_WAIT.seconds:
            return None
        message = f"{self._host} takes no more requests for now."
        # Not 0, although no attempt failed: clients show the time left from attempt 1 on.
        return RetryScheduled(attempt=1, message=message, at=now_ms() + int(pause * 1000))

    @property
    def _host(self) -> str:
        return urlsplit(self._endpoint.base_url).hostname or ""

    async def _post(self, request: ModelRequest, body: bytes) -> HttpResponse:
        """Send a request. Raises `ModelUnavailable` (its credentials), `NetworkError`."""
        headers = self._headers | {
            name: value
            for name, value in _lowercase_names(self._make_request_headers(request)).items()
            if name not in _FRAMING_HEADERS
        }
        # Signed last, over the final headers and body, and again for each attempt,
        # since signatures expire.
        if self._endpoint.signer is not None:
            url = join_url(self._endpoint.base_url, self._path)
            headers = {**headers, **await self._endpoint.signer.sign(url, headers, body)}
        return await self._http.post(self._path, headers, body)

    def _leave_out_refused(
        self, error: MessageError | None, body: bytes, left_out: list[str]
    ) -> RetryScheduled | None:
        """Leave out what an error says that the service refuses, from now on, and return what is
        told about it; None: it refused no optional field. A field of which it refuses only the
        value is added to `left_out`, the fields that this request goes without.
        """
        if not isinstance(error, APIError):
            return None
        # Imported late: few services refuse anything.
        from codeloop.model.wire import known_refusals, refused_fields

        refused = refused_fields.find_refused_field(body, error)
        if refused is None:
            return None
        quirks = refused_fields.leave_out(self._quirks, refused.name)
        if quirks is None or refused.name in left_out:
            return None
        if refused.is_value:
            left_out.append(refused.name)
        else:
            # What is encoded already holds the field: it is encoded again.
            self._quirks = quirks
            self._encoder = self._make_encoder()
            if refused.is_lasting and self._endpoint.known_refusals is not None:
                known_refusals.remember(self._endpoint.known_refusals, self._address, refused.name)
        message = refused_fields.describe_refusal(
            refused, self._host, self._info.id, error.data.message
        )
        return RetryScheduled(attempt=0, message=message, at=now_ms())

    async def _read_error(self, response: HttpResponse) -> MessageError:
        # The error may be a stream that never ends, so only its beginning is read. That is more
        # than is stored of it: JSON has to be complete to be parsed.
        idle = min(self._endpoint.idle, MODEL_TAIL_TIME.seconds)
        body = await response.read_some(16 * MODEL_ERROR_BODY.value, idle)
        return await self._errors.from_response(response.status, response.headers, body)

    async def _read_events(
        self, response: HttpResponse, reader: ResponseReader
    ) -> AsyncGenerator[list[ModelEvent], None]:
        """Yield the events of a 200 in batches, one for each piece read from the network;
        the last holds Finished.
        """
        error: MessageError | None = None
        idle = self._endpoint.idle
        try:
            first = await self._read_first_piece(response)
            match first[:1]:
                # Some services answer a streaming request with one JSON document.
                case b"{" | b"[":
                    yield reader.read_document(first + await self._read_rest(response))
                # A proxy, a sign-in page, or a base URL that is not an API.
                case b"<":
                    error = self._errors.from_body(first, "a web page, not a model's answer")
                case _:
                    parser = self._make_parser()
                    chunk = first
                    while chunk:
                        if events := reader.feed(parser.feed(chunk)):
                            yield events
                        if reader.is_done:
                            # So that the connection can be used again.
                            await response.finish()
                            break
                        # After the end of the answer only token counts may follow: they are
                        # not worth a long wait.
                        chunk = await response.read(
                            min(idle, MODEL_TAIL_TIME.seconds) if reader.has_ended else idle
                        )
        except NetworkError as failure:
            # A connection that breaks after the end of the answer has cost
            # nothing but token counts.
            error = None if reader.has_ended else self._errors.from_network(failure)
        except EventTooLong:
            error = self._errors.from_body(b"", f"an event of more than {MODEL_ANSWER.value} bytes")
        # What the service says is more precise than how its connection ended.
        if reader.error is not None:
            error = self._errors.from_event(reader.error)
        elif error is None and not reader.has_ended:
            error = self._errors.from_network(NetworkError("cut"))
        yield reader.finish() if error is None else [Finished("error", reader.tokens, error)]

    async def _read_first_piece(self, response: HttpResponse) -> bytes:
        """Return the beginning of the body, without leading blanks: its first byte tells JSON,
        HTML and streams apart.

        b"" if the body is empty. Raises NetworkError.
        """
        first = b""
        while not first:
            chunk = await response.read(self._endpoint.first_byte, kind="first-byte")
            if not chunk:
                return b""
            first = chunk.lstrip()
        return first

    async def _read_rest(self, response: HttpResponse) -> bytes:
        """Return the rest of the body. Raises EventTooLong, NetworkError."""
        pieces, size = list[bytes](), 0
        while data := await response.read(self._endpoint.idle):
            pieces.append(data)
            size += len(data)
            if size > MODEL_ANSWER.value:
                raise EventTooLong
        return b"".join(pieces)


def _lowercase_names(headers: dict[str, str]) -> dict[str, str]:
    """Return the headers with lower-case names, so that later ones replace earlier ones."""
    return {name.lower(): value for name, value in headers.items()}
