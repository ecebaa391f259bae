"""Bodies that are large, packed, or both."""

import gzip
import zlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.tool.tool import ToolFailure
from codeloop.tool.web.body import Body, read_body


async def chunks(data: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def bare(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


TEXT = b"some text " * 500


@pytest.mark.parametrize("size", [1, 2, 7, 100_000])
@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("gzip", gzip.compress(TEXT)),
        ("X-GZIP", gzip.compress(TEXT)),
        ("gzip", gzip.compress(TEXT[:3000]) + gzip.compress(TEXT[3000:])),
        ("gzip", gzip.compress(TEXT) + b"\0\0\0 padding"),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", bare(TEXT)),
    ],
    # A packed text holds the second in which it was packed: no name for a test,
    # which each worker makes anew.
    ids=[
        "plain",
        "identity",
        "gzip",
        "x-gzip",
        "two gzips",
        "padded gzip",
        "deflate",
        "bare deflate",
    ],
)
async def test_every_packing_is_undone_however_it_is_split(
    encoding: str, data: bytes, size: int
) -> None:
    assert await read_body(chunks(data, size), encoding, 10_000) == Body(TEXT)


async def test_a_body_of_exactly_the_limit_is_whole_and_one_byte_more_is_cut() -> None:
    assert await read_body(chunks(b"x" * 5000), "", 5000) == Body(b"x" * 5000)
    assert await read_body(chunks(b"x" * 5001), "", 5000) == Body(b"x" * 5000, is_cut=True)
    assert await read_body(chunks(gzip.compress(b"x" * 5000)), "gzip", 5000) == Body(b"x" * 5000)


@pytest.mark.slow
async def test_a_bomb_is_cut_without_being_unpacked() -> None:
    import tracemalloc

    bomb = gzip.compress(bytes(200_000_000), 1)
    tracemalloc.start()
    body = await read_body(chunks(bomb, 65536), "gzip", 1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert body == Body(bytes(1_000_000), is_cut=True)
    assert peak < 10_000_000


async def test_members_without_content_do_not_go_on_for_ever() -> None:
    async def endless() -> AsyncIterator[bytes]:
        member = gzip.compress(b"")
        while True:
            yield member * 50

    assert await read_body(endless(), "gzip", 100_000) == Body(b"", is_cut=True)


@pytest.mark.parametrize(
    ("encoding", "data"), [("br", b"xx"), ("zstd", b"xx"), ("gzip, gzip", b"xx")]
)
async def test_a_packing_that_was_not_asked_for_is_named(encoding: str, data: bytes) -> None:
    with pytest.raises(ToolFailure, match=encoding):
        await read_body(chunks(data), encoding, 100)


@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate"]))
async def test_broken_packing_is_an_error_or_text(data: bytes, encoding: str) -> None:
    try:
        body = await read_body(chunks(data, 11), encoding, 1000)
    except ToolFailure:
        return
    assert len(body.data) <= 1000
