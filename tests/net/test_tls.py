"""Tests of trusted authorities and client certificates, against real TLS servers."""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from codeloop.net.client import OriginClient
from codeloop.net.errors import NetworkError
from codeloop.net.tls import load_service_tls_context, load_tls_context

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="needs the program openssl to make certificates"
)
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@pytest.fixture(autouse=True)
def fresh_contexts() -> Iterator[None]:
    # Before the test too: an earlier one in this process may have made contexts
    # from its own environment.
    load_tls_context.cache_clear()
    load_service_tls_context.cache_clear()
    yield
    load_tls_context.cache_clear()
    load_service_tls_context.cache_clear()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make two certificates that sign themselves, one for a server and one for a client;
    the client's key is locked.
    """
    folder = tmp_path_factory.mktemp("certificates")
    for name, lock in (("server", ["-nodes"]), ("client", ["-passout", "pass:open"])):
        files = ["-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.pem")]
        kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", *lock]
        names = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"]
        subprocess.run(["openssl", "req", *kind, *names, *files], check=True, capture_output=True)
    return folder


@asynccontextmanager
async def serving(folder: Path, *, asks: bool) -> AsyncGenerator[tuple[str, list[str]]]:
    """Serve one line over TLS; yield the URL, and the names in the certificates of clients."""
    names: list[str] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(folder / "client.pem")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        shown = writer.get_extra_info("peercert") or {}
        names.extend(value for row in shown.get("subject", ()) for _, value in row)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", names
    finally:
        server.close()


async def post(url: str) -> bytes:
    client = OriginClient(url, 60, 60)
    try:
        return await (await client.post("/", {}, b"")).read_some(60, 60)
    finally:
        await client.aclose()


async def test_further_authorities_are_trusted_beside_the_systems(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(folder, asks=False) as (url, _):
        with pytest.raises(NetworkError) as refused:
            await post(url)
        assert refused.value.kind == "certificate"
        load_tls_context.cache_clear()
        load_service_tls_context.cache_clear()
        monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(folder / "server.pem"))
        assert await post(url) == b"ok"


async def test_a_service_that_asks_sees_the_client_certificate(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(folder / "server.pem"))
    monkeypatch.setenv("CODELOOP_CLIENT_CERT", str(folder / "client.pem"))
    monkeypatch.setenv("CODELOOP_CLIENT_KEY", str(folder / "client.key"))
    monkeypatch.setenv("CODELOOP_CLIENT_KEY_PASSPHRASE", "open")
    async with serving(folder, asks=True) as (url, names):
        assert await post(url) == b"ok"
    assert names == ["client"]
    assert load_service_tls_context() is not load_tls_context()


@pytest.mark.parametrize(
    "variables",
    [
        {"CODELOOP_CLIENT_CERT": "/nowhere.pem"},
        {"NODE_EXTRA_CA_CERTS": "/nowhere.pem"},
        {"CODELOOP_CLIENT_CERT": "client.pem", "CODELOOP_CLIENT_KEY": "client.key"},
    ],
)
async def test_a_file_that_cannot_be_used_is_named(
    folder: Path, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(NetworkError, match=f"{next(iter(variables))} .*can't be used") as refused:
        await post("https://127.0.0.1:1")
    assert refused.value.kind == "certificate"
