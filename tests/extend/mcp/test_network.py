"""The way to remote servers: proxies and authorities as for models, each host by its own."""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from codeloop.extend.mcp.transport.failures import ServerFailed
from codeloop.net.tls import load_service_tls_context, load_tls_context
from tests.extend.mcp.remote import serving
from tests.extend.mcp.world import World, world

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(scope="module")
def server() -> Generator[str]:
    with serving("http") as url:
        yield url


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    load_tls_context.cache_clear()
    load_service_tls_context.cache_clear()
    yield
    load_tls_context.cache_clear()
    load_service_tls_context.cache_clear()


async def piped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def listening(
    port: int, seen: list[str], context: ssl.SSLContext | None = None
) -> AsyncGenerator[int]:
    """Listen, and pass on what comes to a port: a proxy that notes what it is asked for,
    or the end of TLS.
    """

    async def came(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        line = head.split(b"\r\n")[0].decode()
        seen.append(line)
        is_tunnel = line.startswith("CONNECT ")
        target = int(line.split()[1].rpartition(":")[2]) if is_tunnel else port
        there, back = await asyncio.open_connection("127.0.0.1", target)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" if is_tunnel else b"")
        back.write(b"" if is_tunnel else head)
        await asyncio.gather(piped(reader, back), piped(there, writer))

    listener = await asyncio.start_server(came, "127.0.0.1", 0, ssl=context)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        listener.close()


async def added(it: World) -> str:
    await it.server().connect()
    return (await it.call("add", a=1, b=2)).output


@pytest.mark.slow
async def test_a_proxy_of_the_environment_is_used_unless_the_host_is_excepted(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = urlsplit(server).port or 0
    seen: list[str] = []
    async with listening(port, seen) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy}")
        async with world(tmp_path, {"p": {"type": "remote", "url": server}}) as it:
            assert await added(it) == "3"
        assert seen[0] == f"POST {server} HTTP/1.1"
        seen.clear()
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        async with world(tmp_path, {"p": {"type": "remote", "url": server}}) as it:
            assert await added(it) == "3"
        assert seen == []


@pytest.mark.slow
async def test_an_authority_of_the_environment_is_trusted_also_through_a_proxy(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs the program openssl to make a certificate")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    names = [
        "-subj",
        "/CN=mcp",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-keyout",
        str(key),
        "-out",
        str(cert),
    ]
    await asyncio.to_thread(subprocess.run, [*make, *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    tunnels: list[str] = []
    async with (
        listening(urlsplit(server).port or 0, [], context) as secure,
        listening(0, tunnels) as proxy,
    ):
        servers = {"p": {"type": "remote", "url": f"https://127.0.0.1:{secure}/mcp"}}
        async with world(tmp_path, servers) as it:
            with pytest.raises(ServerFailed, match="certificate verify failed"):
                await it.server().connect()
            monkeypatch.setenv("SSL_CERT_FILE", str(cert))
            load_tls_context.cache_clear()
            load_service_tls_context.cache_clear()
            assert await added(it) == "3"
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy}")
        async with world(tmp_path, servers) as it:
            assert await added(it) == "3"
        assert tunnels[0] == f"CONNECT 127.0.0.1:{secure} HTTP/1.1"
