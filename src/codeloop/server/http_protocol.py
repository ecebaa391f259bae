"""uvicorn's HTTP protocol with further limits on the size and duration of a request,
and on slow readers.

It overrides undocumented methods of uvicorn's protocol and flow control: docs/decisions/0028.
Only this file does.
"""

import asyncio
from http import HTTPStatus

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from codeloop.schema.bounds.server import (
    SERVER_BODY_IDLE,
    SERVER_CONNECTIONS,
    SERVER_HEADER,
    SERVER_HEADER_TIME,
    SERVER_HEADERS,
    SERVER_URL,
    SERVER_WRITE,
)

CUT_EXTENSION = "codeloop.cut"
"""The extension of a request's scope whose `call` closes the connection at once,
for a client that reads nothing.
"""
ADMIT_EXTENSION = "codeloop.admit"
"""The extension of a request's scope whose `call` marks the client as admitted:
it had a valid credential.

Its connection is no longer closed to make room for others.
"""
_ACCEPTED_FACTOR = 2
"""Connections that are accepted, as a multiple of those that are served.

Those in between are answered with a 503, so that a client learns why;
further ones are closed without an answer.
"""


class HeadTooLong(Exception):
    """The head of a request exceeds a limit."""


class BoundedFlow(FlowControl):
    """The flow control of one connection, which ends it when the client reads
    nothing for `SERVER_WRITE`.

    Such a client is gone or hostile, and the answers that wait for it must not fill the memory.
    """

    _check_timer: asyncio.TimerHandle | None = None

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        self._output = transport

    def pause_writing(self) -> None:
        """Start the timer, since the client reads more slowly than we write."""
        super().pause_writing()
        self._start_timer(self._output.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stop the timer: the client has caught up, or the connection has ended."""
        super().resume_writing()
        if self._check_timer is not None:
            self._check_timer.cancel()
            self._check_timer = None

    def _start_timer(self, unread_bytes: int) -> None:
        self._check_timer = asyncio.get_running_loop().call_later(
            SERVER_WRITE.seconds, self._abort_if_stuck, unread_bytes
        )

    def _abort_if_stuck(self, unread_before: int) -> None:
        # Nothing is written while writing is paused, so any change of the buffer is
        # what the client has read.
        unread_bytes = self._output.get_write_buffer_size()
        if unread_bytes < unread_before:
            self._start_timer(unread_bytes)
        else:
            self._output.abort()


class BoundedProtocol(HttpToolsProtocol):
    """One connection, with limits on the size of a head, on the time that it takes,
    and on pauses in a body.

    While a request is being answered, its body may pause for `SERVER_BODY_IDLE`; at other times a
    head must be complete within `SERVER_HEADER_TIME` of the start of the connection
    or of the next request.

    When there are too many connections, the oldest one without a valid credential is closed:
    clients that have no credential must not keep out those that have one.
    """

    _head_and_trailer_bytes = 0
    """Received bytes since the last that completed a head or belonged to a body: of a head,
    or of trailers.
    """
    _head_bytes = 0
    _is_in_head = True
    _has_request = False
    _is_message_over = True
    _refusal: HTTPStatus | None = None
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Set up the connection, make room for it, and start the deadline of its first head."""
        super().connection_made(transport)
        self.flow = BoundedFlow(transport)
        self.connected_at = self.loop.time()
        self.admitted_event = asyncio.Event()
        if len(self.connections) >= SERVER_CONNECTIONS.value:
            self._make_room()
        if not transport.is_closing():
            self._await_head()

    def _make_room(self) -> None:
        open_connections = [each for each in self.connections if not each.transport.is_closing()]
        unauthenticated = [
            each
            for each in open_connections
            if isinstance(each, BoundedProtocol) and not each.admitted_event.is_set()
        ]
        # More than one: this connection is itself among them,
        # and has had no chance yet to send its credential.
        if len(open_connections) >= SERVER_CONNECTIONS.value and len(unauthenticated) > 1:
            min(unauthenticated, key=lambda each: each.connected_at).transport.abort()
        elif len(open_connections) > SERVER_CONNECTIONS.value * _ACCEPTED_FACTOR:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers of the connection."""
        self._cancel_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, and check that a head or trailers don't go on for ever."""
        self._head_and_trailer_bytes += len(data)
        super().data_received(data)
        # A WebSocket handshake has passed the connection to another protocol,
        # which has limits of its own.
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return
        # httptools hands over a header when it is complete: one that never ends
        # is noticed only here.
        if self._head_and_trailer_bytes > SERVER_HEADER.value + SERVER_URL.value:
            # Trailers: the request is being answered, so no error can be sent any more.
            if not self._is_in_head:
                self.transport.abort()
                return
            self._refusal = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            self.send_400_response("")
        elif self._is_answering:
            self._await_body()
        elif self._deadline is None:
            self._await_head()

    @property
    def _is_answering(self) -> bool:
        return self._has_request and not self.cycle.response_complete and not self._is_in_head

    def on_message_begin(self) -> None:
        """Start a request."""
        self._is_in_head, self._is_message_over, self._head_bytes = True, False, 0
        super().on_message_begin()
        self.scope["extensions"] = {
            CUT_EXTENSION: {"call": self.transport.abort},
            ADMIT_EXTENSION: {"call": self.admitted_event.set},
        }

    def on_url(self, url: bytes) -> None:
        """Add a piece of the URL. Raises HeadTooLong, which ends the connection with a 414."""
        super().on_url(url)
        if len(self.url) > SERVER_URL.value:
            self._refusal = HTTPStatus.REQUEST_URI_TOO_LONG
            raise HeadTooLong

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header. Raises HeadTooLong, which ends the connection with a 431."""
        if not self._is_in_head:
            # A trailer, after the body: the guard has already judged the headers,
            # so none may be added.
            return
        super().on_header(name, value)
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > SERVER_HEADER.value or len(self.headers) > SERVER_HEADERS.value:
            self._refusal = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            raise HeadTooLong

    def on_headers_complete(self) -> None:
        """Start to answer the request; its body follows."""
        self._is_in_head, self._head_and_trailer_bytes = False, 0
        self._cancel_deadline()
        super().on_headers_complete()
        self._has_request = True

    def on_body(self, body: bytes) -> None:
        """Add a piece of the body."""
        self._head_and_trailer_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that all of the request has been received."""
        self._head_and_trailer_bytes, self._is_message_over = 0, True
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """Pass the connection to the WebSocket protocol."""
        # uvicorn's `limit_concurrency` covers plain requests only.
        if len(self.connections) > SERVER_CONNECTIONS.value:
            self._refusal = HTTPStatus.SERVICE_UNAVAILABLE
            self.send_400_response("")
            return
        super().handle_websocket_upgrade()
        # A head that `websockets` finds too long for it is never answered: the connection
        # would stay open for ever.
        owner = self.transport.get_protocol()
        if isinstance(owner, WebSocketsSansIOProtocol) and not owner.handshake_initiated:
            self._refusal = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            self.send_400_response("")

    def on_response_complete(self) -> None:
        """Start a deadline for the rest of the request's body: the request is answered,
        so nobody reads it.
        """
        self._cancel_deadline()
        super().on_response_complete()
        if not self._is_message_over:
            self._await_head()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that is not HTTP or exceeds a limit, and close the connection."""
        if self._refusal is None:
            super().send_400_response(msg)
            return
        head = STATUS_LINE[self._refusal] + b"content-length: 0\r\nconnection: close\r\n\r\n"
        self.transport.write(head)
        self.transport.close()

    def shutdown(self) -> None:
        """End the connection: at once if its answer is a stream that has started,
        else after the answer.

        A connection whose request has not been received completely is closed without an answer.
        """
        if self._is_answering and not self._is_message_over:
            self.transport.abort()
        elif self._is_answering and self.cycle.response_started:
            if self.cycle.chunked_encoding:
                # The last chunk: the client sees an end, not an error.
                self.transport.write(b"0\r\n\r\n")
            self.transport.close()
        else:
            super().shutdown()

    def _await_head(self) -> None:
        self._cancel_deadline()
        self._deadline = self.loop.call_later(SERVER_HEADER_TIME.seconds, self.transport.abort)

    def _await_body(self) -> None:
        self._cancel_deadline()
        if not self._is_message_over:
            self._deadline = self.loop.call_later(SERVER_BODY_IDLE.seconds, self._on_body_timeout)

    def _on_body_timeout(self) -> None:
        # The pause is ours, not the client's: the handler has not read on.
        if self.flow.read_paused:
            self._await_body()
        else:
            self.transport.abort()

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
