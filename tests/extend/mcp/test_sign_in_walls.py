"""Where a remote server can lead codeloop with a sign-in: to no address where it is not itself,
and with no secret.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from codeloop.extend.mcp.definition import RemoteDefinition, parse_definition
from codeloop.extend.mcp.sign_in.login import sign_in
from codeloop.extend.mcp.sign_in.registration import check_registration
from codeloop.extend.mcp.sign_in.tokens import get_sign_ins
from codeloop.extend.mcp.transport.failures import SignInNeeded
from codeloop.extend.mcp.transport.http_client import make_http_client
from codeloop.schema.errors import CodeloopError
from tests.extend.mcp.world import paths_of
from tests.model.local_server import http, serving

ASKED = "the user was asked"
PUBLIC = "https://8.8.8.8/mcp"
ELSEWHERE, HERE = "https://sign-in.example", "http://127.0.0.1:9"


async def test_a_public_server_leads_to_no_address_of_this_machine_or_its_networks() -> None:
    async with serving(http(b"{}")) as (url, heads):
        port = url.rpartition(":")[2]
        for host in (
            "127.0.0.1",
            "localhost",
            "[::1]",
            "10.0.0.1",
            "169.254.169.254",
            "0.0.0.0",
            "[::ffff:7f00:1]",
        ):
            async with make_http_client(PUBLIC, {}, httpx2.Auth(), lambda _status: None) as client:
                with pytest.raises(httpx2.ConnectError, match="only a server that is there itself"):
                    await client.get(f"http://{host}:{port}/.well-known/oauth-protected-resource")
        challenge = f'Bearer resource_metadata="{url}/internal"'
        refusal = SignInNeeded("it wants you to sign in", can_sign_in=True, challenge=challenge)
        await check_registration("p", RemoteDefinition(url=PUBLIC), refusal)
        assert heads == []
        async with make_http_client(url, {}, httpx2.Auth(), lambda _status: None) as client:
            assert (await client.get(f"http://localhost:{port}/")).status_code == 200


@asynccontextmanager
async def serving_a_provider_at(place: str) -> AsyncGenerator[str]:
    """Serve an MCP server that wants a sign-in, whose metadata names another place for it;
    give its address.
    """
    rows = {"authorization_endpoint": f"{place}/authorize", "token_endpoint": f"{place}/token"}

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        answer = http(b"{}", "404 Not Found")
        if b"oauth-authorization-server" in head:
            answer = http(
                json.dumps({"issuer": url, "response_types_supported": ["code"], **rows}).encode()
            )
        elif head.startswith(b"POST"):
            answer = http(b"{}", "401 Unauthorized")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield url


@pytest.mark.slow
async def test_a_configured_secret_goes_to_the_server_or_the_configured_issuer_only(
    tmp_path: Path,
) -> None:
    shown: list[str] = []

    async def paste() -> str:
        raise CodeloopError(ASKED)

    rows = (
        (ELSEWHERE, "", f"is not sent to {ELSEWHERE}"),
        (ELSEWHERE, ELSEWHERE, ASKED),
        (HERE, "", ASKED),
    )
    for place, issuer, expected in rows:
        async with serving_a_provider_at(place) as url:
            redirect = {"clientId": "me", "clientSecret": "very-secret", "callbackPort": 18_765}
            oauth = {**redirect, "issuer": issuer}
            definition = parse_definition("p", {"type": "remote", "url": url, "oauth": oauth})
            with pytest.raises(CodeloopError, match=expected):
                await sign_in(definition, get_sign_ins(paths_of(tmp_path)), shown.append, paste)
    assert [each.partition("/authorize?")[0] for each in shown] == [ELSEWHERE, HERE]
