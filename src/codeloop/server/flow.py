"""How quickly a client takes its answer: one that takes nothing for long is gone, and must not fill the memory."""

import asyncio

from uvicorn.protocols.http.flow_control import FlowControl

from codeloop.schema.limits import SERVER_WRITE


class BoundedFlow(FlowControl):
    """The flow of one connection. While the client is behind, it must take something in each `SERVER_WRITE`."""

    _look: asyncio.TimerHandle | None = None

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        self._output = transport

    def pause_writing(self) -> None:
        """Take notice that the client is behind."""
        super().pause_writing()
        self._watch(self._output.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Take notice that the client has caught up, or that the connection has ended."""
        super().resume_writing()
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _watch(self, left: int) -> None:
        self._look = asyncio.get_running_loop().call_later(SERVER_WRITE.seconds, self._check, left)

    def _check(self, before: int) -> None:
        left = self._output.get_write_buffer_size()
        if left < before:
            self._watch(left)
        else:
            self._output.abort()
