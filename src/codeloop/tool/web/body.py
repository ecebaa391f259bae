"""Reads a response body with a limit: it may be endless, or a decompression bomb."""

from collections.abc import AsyncIterator, Callable

from msgspec import Struct

from codeloop.tool.tool import ToolFailure

ENCODINGS = ("gzip", "x-gzip", "deflate")
_GZIP = b"\x1f\x8b"


class Body(Struct, frozen=True):
    """A response body. `is_cut`: only its beginning was read."""

    data: bytes
    is_cut: bool = False


async def read_body(chunks: AsyncIterator[bytes], encoding: str, limit: int) -> Body:
    """Read at most `limit` bytes, counted both as they come and after decompression.

    Raises ToolFailure for an encoding that was not asked for and for broken compression.
    """
    unpack = _unpacker(encoding)
    kept = bytearray()
    raw = 0
    async for chunk in chunks:
        raw += len(chunk)
        kept += unpack(chunk, limit + 1 - len(kept))
        if len(kept) > limit or raw > limit:
            return Body(bytes(kept[:limit]), is_cut=True)
    return Body(bytes(kept))


def _unpacker(encoding: str) -> Callable[[bytes, int], bytes]:
    """Return a function that decodes a chunk. Its second argument is the most bytes that it returns."""
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return lambda chunk, room: chunk[:room]
    if name not in ENCODINGS:
        raise ToolFailure(
            f"The server compressed its response as {name[:40]}, which was not requested and can't be read."
        )
    return _Inflater().feed


class _Inflater:
    """Undoes gzip (also of several members), zlib and bare deflate."""

    def __init__(self) -> None:
        self._engine = None
        self._pending = b""
        self._has_member = self._is_over = False

    def feed(self, chunk: bytes, room: int) -> bytes:
        """Return at most `room` decompressed bytes. Further content of the chunk is dropped: the reader stops there."""
        import zlib

        data, out = self._pending + chunk, bytearray()
        self._pending = b""
        while data and len(out) < room and not self._is_over:
            if self._engine is None:
                if len(data) < 2:
                    self._pending = data
                    break
                if self._has_member and data[:2] != _GZIP:
                    self._is_over = True  # padding or trailing data, which every reader ignores
                    break
                self._engine = zlib.decompressobj(wbits=_window(data))
            try:
                out += self._engine.decompress(data, room - len(out))
            except zlib.error as error:
                raise ToolFailure(f"The server's response is not validly compressed ({error}).") from None
            data = self._engine.unused_data if self._engine.eof else self._engine.unconsumed_tail
            if self._engine.eof:
                self._engine, self._has_member = None, True
        return bytes(out)


def _window(data: bytes) -> int:
    """Return zlib's `wbits` by the first two bytes: gzip and zlib have a head, bare deflate has none."""
    has_head = data[:2] == _GZIP or (data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0)
    return 47 if has_head else -15
