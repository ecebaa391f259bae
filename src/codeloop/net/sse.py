"""Server-sent events: bytes as they come from the network in, the data of each complete event out."""

from codeloop.schema.limits import MODEL_ANSWER

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventTooLong(Exception):
    """One event is longer than `model.answer` allows."""


class EventStream:
    """An incremental parser of `text/event-stream`.

    Bytes may be split anywhere, also within a character or between CR and LF. Lines end with LF, CR or CRLF. Comments
    and the fields `event`, `id` and `retry` are left out: both protocols repeat the event's name inside the data.
    An event that the end of the stream cuts off is never given.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._started = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes; give the data of the events they complete (several lines are joined with LF).

        Raises EventTooLong.
        """
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        elif chunk:
            self._after_cr = False
        if not self._ends_event(chunk):
            self._size += len(chunk)
            if self._size > MODEL_ANSWER.value:
                raise EventTooLong
            self._pieces.append(chunk)
            return []
        self._pieces.append(chunk)
        blocks = b"".join(self._pieces).split(b"\n\n")
        rest = blocks.pop()
        self._pieces = [rest]
        self._size = len(rest)
        if not self._started:
            self._started = True
            blocks[0] = blocks[0].removeprefix(BYTE_ORDER_MARK)
        found: list[bytes] = []
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block:
                found.append(block[6:])
            elif (data := _data(block)) is not None:
                found.append(data)
        return found

    def _ends_event(self, chunk: bytes) -> bool:
        if b"\n\n" in chunk:
            return True
        if not chunk.startswith(b"\n"):
            return False
        last = next((piece for piece in reversed(self._pieces) if piece), b"")
        return last.endswith(b"\n")


def _data(block: bytes) -> bytes | None:
    found = [line[5:].removeprefix(b" ") for line in block.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(found) if found else None
