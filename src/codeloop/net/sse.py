"""An incremental parser of server-sent events: takes bytes as they come from the network,
returns complete events.
"""

from typing import NamedTuple

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventTooLong(Exception):
    """One event is longer than the reader allows."""


class SseParser:
    """An incremental parser of `text/event-stream`.

    Bytes may be split anywhere, also within a character or between CR and LF. Lines end with LF, CR
    or CRLF. Comments and the fields `event` and `retry` are ignored: the protocols that are read
    here repeat the event's name inside the data. An event that the end of the stream
    cuts off is never returned.
    """

    def __init__(self, max_event_bytes: int) -> None:
        """`max_event_bytes`: how long an event may become before its end has come."""
        self._max_event_bytes = max_event_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._has_ended_event = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes; return the data of the events they complete (several
        lines are joined with LF).

        Raises EventTooLong.
        """
        events: list[bytes] = []
        for block in self._split_events(chunk):
            # Nearly every event of a model's answer is one such line: a slice is cheaper
            # than parsing its fields.
            if block.startswith(b"data: ") and b"\n" not in block:
                events.append(block[6:])
            elif (data := _parse_event(block).data) is not None:
                events.append(data)
        return events

    def feed_with_ids(self, chunk: bytes) -> list[tuple[int | None, bytes]]:
        """Do the same for a stream whose ids are numbers;
        return each event's id too (None: not a number).
        """
        events = map(_parse_event, self._split_events(chunk))
        return [(event.number, event.data) for event in events if event.data is not None]

    def _split_events(self, chunk: bytes) -> list[bytes]:
        """Return the text of each event that these bytes complete."""
        # CR and LF of one line end may come in two chunks: the LF must not count
        # as a second line end.
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        elif chunk:
            self._after_cr = False
        self._pieces.append(chunk)
        # Pieces are only joined when an event ends: joining at each chunk would
        # take quadratic time.
        if not self._ends_event(chunk):
            self._size += len(chunk)
            if self._size > self._max_event_bytes:
                raise EventTooLong
            return []
        *blocks, incomplete = b"".join(self._pieces).split(b"\n\n")
        self._pieces = [incomplete]
        self._size = len(incomplete)
        if not self._has_ended_event:
            self._has_ended_event = True
            blocks[0] = blocks[0].removeprefix(BYTE_ORDER_MARK)
        return blocks

    def _ends_event(self, chunk: bytes) -> bool:
        """Return whether the pieces hold an empty line, which may be split between the
        last two that are not empty.
        """
        if b"\n\n" in chunk:
            return True
        if not chunk.startswith(b"\n"):
            return False
        before = next((piece for piece in reversed(self._pieces[:-1]) if piece), b"")
        return before.endswith(b"\n")


class _ServerSentEvent(NamedTuple):
    number: int | None
    """Its id, if that is a number."""
    data: bytes | None
    """None: it has no data, so it is not an event but a comment, for example."""


def _parse_event(block: bytes) -> _ServerSentEvent:
    number, data = None, list[bytes]()
    for line in block.split(b"\n"):
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif line.startswith(b"id:"):
            text = line[3:].strip()
            # At most 18 digits: such a number fits into 64 bits.
            number = int(text) if text.isdigit() and len(text) < 19 else None
    return _ServerSentEvent(number, b"\n".join(data) if data else None)
