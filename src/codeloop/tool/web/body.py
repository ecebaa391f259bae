"""Reads the body of an HTTP response up to a limit,
because it may be endless or a decompression bomb.
"""

from collections.abc import AsyncIterator, Callable

from msgspec import Struct

from codeloop.tool.tool import ToolFailure

CONTENT_ENCODINGS = ("gzip", "x-gzip", "deflate")
ACCEPT_ENCODING = "gzip, deflate"
_GZIP_MAGIC = b"\x1f\x8b"


class Body(Struct, frozen=True):
    """A decompressed response body. `is_cut`: only its beginning was read."""

    data: bytes
    is_cut: bool = False


async def read_body(chunks: AsyncIterator[bytes], encoding: str, limit: int) -> Body:
    """Read a body until `limit` bytes were received, or `limit` bytes were decompressed.

    Raises ToolFailure for an encoding that was not requested, and for invalid compression.
    """
    unpack = _make_decoder(encoding)
    unpacked = bytearray()
    received_bytes = 0
    async for chunk in chunks:
        received_bytes += len(chunk)
        unpacked += unpack(chunk, limit + 1 - len(unpacked))
        if len(unpacked) > limit or received_bytes > limit:
            return Body(bytes(unpacked[:limit]), is_cut=True)
    return Body(bytes(unpacked))


def _make_decoder(encoding: str) -> Callable[[bytes, int], bytes]:
    """Return the decoder of a content encoding. It takes a chunk,
    and the most bytes that it may return.
    """
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return lambda chunk, max_bytes: chunk[:max_bytes]
    if name not in CONTENT_ENCODINGS:
        raise ToolFailure(
            f"The server compressed its response as {name[:40]}, which was not requested and can't be read."
        )
    return _Inflater().feed


class _Inflater:
    """Decompresses gzip (also with several members), zlib and raw deflate."""

    def __init__(self) -> None:
        self._decompressor = None
        self._pending = b""
        self._has_member = self._is_over = False

    def feed(self, chunk: bytes, max_bytes: int) -> bytes:
        """Return at most `max_bytes` decompressed bytes of a chunk;
        the rest is dropped: the reader stops there.
        """
        import zlib

        data = self._pending + chunk
        out = bytearray()
        self._pending = b""
        while data and len(out) < max_bytes and not self._is_over:
            if self._decompressor is None:
                # The format shows in the first two bytes.
                if len(data) < 2:
                    self._pending = data
                    break
                # Padding or trailing data, which all HTTP clients ignore.
                if self._has_member and data[:2] != _GZIP_MAGIC:
                    self._is_over = True
                    break
                self._decompressor = zlib.decompressobj(wbits=_choose_window_bits(data))
            try:
                out += self._decompressor.decompress(data, max_bytes - len(out))
            except zlib.error as error:
                raise ToolFailure(
                    f"The server's response is not validly compressed ({error})."
                ) from None
            data = (
                self._decompressor.unused_data
                if self._decompressor.eof
                else self._decompressor.unconsumed_tail
            )
            if self._decompressor.eof:
                self._decompressor, self._has_member = None, True
        return bytes(out)


def _choose_window_bits(data: bytes) -> int:
    """Return zlib's `wbits` for the format that the first two bytes show.

    "deflate" means zlib's format, but some servers send raw deflate, which has no header.
    """
    # zlib (RFC 1950): the method 8 in the low bits,
    # and both bytes as a number are a multiple of 31.
    has_header = data[:2] == _GZIP_MAGIC or (
        data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
    )
    # 32 + 15 detects gzip and zlib; a negative number is raw deflate.
    return 47 if has_header else -15
