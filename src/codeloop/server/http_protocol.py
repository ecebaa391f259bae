"""uvicorn's HTTP protocol with further limits: the size of a request's head, and its duration."""

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

CUT = "codeloop.cut"
"""The extension of a request's scope whose `call` cuts the connection: for a client that reads nothing."""
ADMIT = "codeloop.let_in"
"""The extension whose `call` says that the client is admitted: its connection is not cut to make room for others."""
_MAX_FACTOR = 2
"""Connections that are accepted, as a multiple of those that are served: the surplus gets a 503, more are cut."""


class TooLong(Exception):
    """A request's head has grown beyond its bounds."""


class BoundedFlow(FlowControl):
    """The flow control of one connection. While the client is behind, it must read something in each `SERVER_WRITE`.

    A client that reads nothing for longer is gone, and must not fill the memory.
    """

    _look: asyncio.TimerHandle | None = None

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        self._output = transport

    def pause_writing(self) -> None:
        """Start to watch, since the client is behind."""
        super().pause_writing()
        self._watch(self._output.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stop watching: the client has caught up, or the connection has ended."""
        super().resume_writing()
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _watch(self, idle_checks: int) -> None:
        self._look = asyncio.get_running_loop().call_later(SERVER_WRITE.seconds, self._check, idle_checks)

    def _check(self, before: int) -> None:
        write_buffer_size = self._output.get_write_buffer_size()
        if write_buffer_size < before:
            self._watch(write_buffer_size)
        else:
            self._output.abort()


class BoundedProtocol(HttpToolsProtocol):
    """One connection. `_unseen` counts bytes since the last that was part of a body or ended a head.

    While a request is not answered yet, its body may be silent for `SERVER_BODY_IDLE`; else a head must end within
    `SERVER_HEADER_TIME`, counted from the connection's or the next request's beginning.

    When there are too many, the oldest of those that nobody was let in through is cut: whoever has no credential
    must not keep out those who have one.
    """

    _unseen = 0
    _head_bytes = 0
    _is_in_head = True
    _has_asked = False
    _is_message_over = True
    _refusal: HTTPStatus | None = None
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin."""
        super().connection_made(transport)
        self.flow = BoundedFlow(transport)
        self.since = self.loop.time()
        self.admitted_event = asyncio.Event()
        if len(self.connections) >= SERVER_CONNECTIONS.value:
            self._make_room()
        if not transport.is_closing():
            self._await_head()

    def _make_room(self) -> None:
        open_connections = [each for each in self.connections if not each.transport.is_closing()]
        unauthenticated = [
            each for each in open_connections if isinstance(each, BoundedProtocol) and not each.admitted_event.is_set()
        ]
        if len(open_connections) >= SERVER_CONNECTIONS.value and len(unauthenticated) > 1:
            min(unauthenticated, key=lambda each: each.since).transport.abort()
        elif len(open_connections) > SERVER_CONNECTIONS.value * _MAX_FACTOR:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._cancel_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take received bytes, and check that they are not too many."""
        self._unseen += len(data)
        super().data_received(data)
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return
        if self._unseen > SERVER_HEADER.value + SERVER_URL.value:
            if not self._is_in_head:  # what follows a body
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
        return self._has_asked and not self.cycle.response_complete and not self._is_in_head

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._is_in_head, self._is_message_over, self._head_bytes = True, False, 0
        super().on_message_begin()
        self.scope["extensions"] = {CUT: {"call": self.transport.abort}, ADMIT: {"call": self.admitted_event.set}}

    def on_url(self, url: bytes) -> None:
        """Take a piece of the URL. Raises TooLong, which ends the connection with a 414."""
        super().on_url(url)
        if len(self.url) > SERVER_URL.value:
            self._refusal = HTTPStatus.REQUEST_URI_TOO_LONG
            raise TooLong

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; those after a body (trailers) are dropped. Raises TooLong, which ends with a 431."""
        if not self._is_in_head:
            return
        super().on_header(name, value)
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > SERVER_HEADER.value or len(self.headers) > SERVER_HEADERS.value:
            self._refusal = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            raise TooLong

    def on_headers_complete(self) -> None:
        """Answer the request."""
        self._is_in_head, self._unseen = False, 0
        self._cancel_deadline()
        super().on_headers_complete()
        self._has_asked = True

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._unseen = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._unseen, self._is_message_over = 0, True
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over; a handshake that its new owner can't read would hang for ever."""
        if len(self.connections) > SERVER_CONNECTIONS.value:
            self._refusal = HTTPStatus.SERVICE_UNAVAILABLE
            self.send_400_response("")
            return
        super().handle_websocket_upgrade()
        owner = self.transport.get_protocol()
        if isinstance(owner, WebSocketsSansIOProtocol) and not owner.handshake_initiated:
            self._refusal = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            self.send_400_response("")

    def on_response_complete(self) -> None:
        """Set the deadline of a head for the rest of an answered request's body, which nobody reads."""
        self._cancel_deadline()
        super().on_response_complete()
        if not self._is_message_over:
            self._await_head()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that is no HTTP, or too long, and close the connection."""
        if self._refusal is None:
            super().send_400_response(msg)
            return
        head = STATUS_LINE[self._refusal] + b"content-length: 0\r\nconnection: close\r\n\r\n"
        self.transport.write(head)
        self.transport.close()

    def shutdown(self) -> None:
        """End the connection: at once if its answer is a stream that has begun, else after the answer.

        What still waits for the rest of its own body is cut.
        """
        if self._is_answering and not self._is_message_over:
            self.transport.abort()
        elif self._is_answering and self.cycle.response_started:
            if self.cycle.chunked_encoding:
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
            self._deadline = self.loop.call_later(SERVER_BODY_IDLE.seconds, self._body_is_late)

    def _body_is_late(self) -> None:
        if self.flow.read_paused:  # it is we who do not read
            self._await_body()
        else:
            self.transport.abort()

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
