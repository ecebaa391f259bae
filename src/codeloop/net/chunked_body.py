"""Decodes the transfer encoding `chunked` of HTTP/1.1: each chunk of a body comes
after a line with its length.
"""

from codeloop.net.errors import NetworkError

# The length of a chunk takes a few bytes, but extensions may follow it: a bound for broken streams.
MAX_CHUNK_HEAD_BYTES = 4_096
MAX_TRAILER_BYTES = 256 * 1024


class ChunkedBody:
    """Decodes a body of the transfer encoding `chunked`; bytes may be split anywhere."""

    def __init__(self) -> None:
        self.is_done = False
        self._buffer = b""
        """Bytes that are not decoded yet: the beginning of the line before a chunk, or trailers."""
        self._remaining = 0
        """The bytes of the current chunk that are still to come, with the line break after it."""

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; return what they hold of the body.
        Raises NetworkError when they are not chunks.
        """
        buffer = self._buffer + data if self._buffer else data
        size, position, pieces = len(buffer), 0, list[bytes]()
        # The common case, without a search: all of the data belongs to a chunk whose
        # head came earlier. The
        # line break after the chunk, which `_remaining` counts too, is not part of the body.
        if self._remaining:
            pieces.append(buffer[: max(self._remaining - 2, 0)])
            if self._remaining > size:
                self._remaining -= size
                self._buffer = b""
                return pieces[0]
            position, self._remaining = self._remaining, 0
        while (end := buffer.find(b"\r\n", position)) >= 0:
            length = _parse_chunk_length(buffer[position:end])
            if length == 0:
                return self._skip_trailers(buffer, position, end, pieces)
            start = end + 2
            stop = start + length
            pieces.append(buffer[start:stop])
            position = stop + 2
            if position > size:
                self._remaining, position = position - size, size
                break
        self._buffer = buffer[position:]
        if len(self._buffer) > MAX_CHUNK_HEAD_BYTES:
            raise NetworkError("protocol", "a chunk without a length")
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _skip_trailers(self, buffer: bytes, position: int, end: int, pieces: list[bytes]) -> bytes:
        """Look for the empty line that ends the body, after trailers, which are not needed;
        return the body so far.

        `position` and `end`: where the line of the last chunk, whose length is 0, begins and ends.
        """
        if buffer.startswith(b"\r\n", end + 2) or buffer.find(b"\r\n\r\n", end) >= 0:
            self.is_done, self._buffer = True, b""
        else:
            self._buffer = buffer[position:]
            if len(self._buffer) > MAX_TRAILER_BYTES:
                raise NetworkError("protocol", "endless trailers")
        return b"".join(pieces)


def _parse_chunk_length(head: bytes) -> int:
    # Such as `1a3` or `1a3;name=value`, with an extension.
    try:
        length = int(head.partition(b";")[0], 16)
    except ValueError:
        length = -1
    if length < 0:
        raise NetworkError("protocol", "a chunk without a length")
    return length
