"""Server-sent events as they come from the network: bytes in, the id and the data of each complete event out."""

from codeloop.schema.limits import CLIENT_EVENT


class TooLong(Exception):
    """One event is longer than `client.event` allows."""


class EventLines:
    """An incremental parser of `text/event-stream`.

    Bytes may be split anywhere, also within a character. Lines end with LF or CRLF. Comments and the fields `event`
    and `retry` are left out. An event that the end of the stream cuts off is never given.
    """

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._size = 0
        self._id: int | None = None
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[tuple[int | None, bytes]]:
        """Take the next bytes; give sequence number (None: it has none) and data of the events that they complete.

        Raises TooLong.
        """
        first, *others = chunk.split(b"\n")
        self._rest.append(first)
        self._size += len(chunk)
        found: list[tuple[int | None, bytes]] = []
        for line in others:
            self._line(b"".join(self._rest), found)
            self._rest = [line]
        if others and not self._data:
            self._size = len(others[-1])
        if self._size > CLIENT_EVENT.value:
            raise TooLong
        return found

    def _line(self, line: bytes, found: list[tuple[int | None, bytes]]) -> None:
        line = line.removesuffix(b"\r")
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif line.startswith(b"id:"):
            number = line[3:].strip()
            self._id = int(number) if number.isdigit() and len(number) < 19 else None
        elif not line:
            if self._data:
                found.append((self._id, self._data[0] if len(self._data) == 1 else b"\n".join(self._data)))
            self._id, self._data = None, []
