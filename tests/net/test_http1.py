"""Tests of chunked bodies, and of answers that are not HTTP."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.model.wrappers.retrying_model import RetryingModel
from codeloop.net.errors import NetworkError
from codeloop.net.http1 import ChunkedBody, Connection
from codeloop.schema.limits import MODEL_INFLATED


@pytest.mark.slow
@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=8),
    st.sampled_from([b"", b"x-a: b\r\n"]),
    st.data(),
)
def test_chunks_may_be_split_anywhere(
    chunks: list[bytes], trailer: bytes, data: st.DataObject
) -> None:
    raw = (
        b"".join(b"%X;name=value\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
        + b"0\r\n"
        + trailer
        + b"\r\n"
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=10)))
    body = ChunkedBody()
    got = b""
    for start, stop in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        assert not body.is_done or start == stop == len(raw)
        got += body.feed(raw[start:stop])
    assert got == b"".join(chunks)
    assert body.is_done


@pytest.mark.parametrize("raw", [b"xyz\r\n", b"-5\r\n", b"\r\n", b"a" * 5_000])
def test_what_is_no_chunk_is_an_error(raw: bytes) -> None:
    with pytest.raises(NetworkError):
        ChunkedBody().feed(raw)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "did not answer as HTTP"),
        (b"HTTP/1.1 200", "closed the connection"),
        (b"HTT", "closed the connection"),
        (b"HTTP/1.1 200 OK\r\ncontent-type: text/ev", "closed the connection"),
        (b"SSH-2.0-Op", "did not answer as HTTP"),
        (b"", "closed the connection"),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\ndata: {}\n\n",
            "closed the connection",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\n", "closed the connection"),
        (b"HTTP/1.1 \xb2\xb2\xb2 OK\r\n\r\n", "did not answer as HTTP"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: \xb2\r\n\r\n", "closed the connection"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\nno gzip at all",
            "did not answer as HTTP",
        ),
    ],
)
async def test_what_is_no_answer_is_said_to_be_none(
    raw: bytes, says: str, openai: Any, asking: Any
) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    got = await asking(openai(f"http://127.0.0.1:{port}/v1"))
    server.close()
    assert says in got.message


async def test_a_compressed_answer_without_a_length_is_read(openai: Any, asking: Any) -> None:
    import gzip

    data = gzip.compress(
        b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
    )

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\ncontent-encoding: gzip\r\n\r\n" + data)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    got = await asking(openai(f"http://127.0.0.1:{port}/v1"))
    server.close()
    assert (got.text, got.end.reason) == ("hi", "stop")


async def test_chunks_count_where_a_length_is_given_too(openai: Any, asking: Any) -> None:
    event = b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\ntransfer-encoding: chunked\r\n\r\n")
        writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(event), event))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    got = await asking(openai(f"http://127.0.0.1:{port}/v1"))
    server.close()
    assert (got.text, got.end.reason) == ("hi", "stop")


async def test_compressed_data_can_not_fill_the_memory(openai: Any, asking: Any) -> None:
    import gzip

    data = gzip.compress(b"data: " + b" " * (MODEL_INFLATED.value + 1_000_000))
    assert len(data) < 256 * 1024

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\ncontent-encoding: gzip\r\n\r\n" + data)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    got = await asking(openai(f"http://127.0.0.1:{port}/v1"))
    server.close()
    assert "compressed data that becomes more than 16777216 bytes" in got.message


async def test_an_answer_that_is_cut_in_its_headers_is_asked_for_again(
    openai: Any, asking: Any
) -> None:
    asked = list[int]()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.append(1)
        body = b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
        whole = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body
        writer.write(whole if len(asked) > 1 else whole[:30])
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    got = await asking(
        RetryingModel(openai(f"http://127.0.0.1:{port}/v1"), sleep=lambda _: asyncio.sleep(0))
    )
    server.close()
    assert (got.text, len(asked)) == ("hi", 2)


async def test_a_name_that_can_not_be_looked_up_is_an_error_of_the_network() -> None:
    with pytest.raises(NetworkError, match="the name is not known"):
        await Connection.open("a" * 64 + ".example", 80, None)
