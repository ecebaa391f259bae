"""Signing in at MCP servers by the routes, against a provider that really speaks OAuth."""

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from codeloop.extend.mcp.definition import OAuthSettings
from codeloop.extend.mcp.sign_in.callback import get_redirect_target
from codeloop.schema.live_events import McpBrowserOpenFailed
from tests.extend.mcp.remote import led_to, opened, reserving_port, serving
from tests.server.support.serving import Served, served
from tests.support.scripted_project import wait_until


@pytest.fixture(scope="module")
def oauth(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("oauth")
    with serving("oauth", str(folder)) as url:
        yield url, folder


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, int]]:
    folder = tmp_path_factory.mktemp("closed")
    with reserving_port() as port:
        (folder / "callback").write_text(str(port))
        with serving("closed", str(folder)) as url:
            yield url, port


@pytest.fixture(autouse=True)
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 1 10.0.0.2 22")


def remote(url: str, **more: Any) -> dict[str, Any]:
    return {"p": {"type": "remote", "url": url, **more}}


async def begun(it: Served) -> str:
    """Connect, which is refused; begin to sign in and return the address."""
    assert await it.post("/mcp/p/connect") is False
    assert await it.get("/mcp") == {"p": {"status": "needs_auth"}}
    start = await it.post("/mcp/p/auth")
    address = start["authorizationUrl"]
    assert parse_qs(urlsplit(address).query)["state"] == [start["oauthState"]]
    assert await it.post("/mcp/p/auth") == start
    return address


@pytest.mark.slow
@pytest.mark.parametrize("how", ["the code", "the address"])
async def test_a_person_elsewhere_signs_in_with_what_the_browser_shows(
    tmp_path: Path, oauth: tuple[str, Path], how: str
) -> None:
    async with served(tmp_path, mcp=remote(oauth[0])) as it:
        address = await begun(it)
        where = await asyncio.to_thread(led_to, address)
        code = parse_qs(urlsplit(where).query)["code"][0] if how == "the code" else where
        useless = await it.post(
            "/mcp/p/auth/callback", {"code": "https://elsewhere.example/"}, status=400
        )
        assert "paste the whole address" in useless["data"]["message"]
        assert await it.post("/mcp/p/auth/callback", {"code": code}) == {"status": "connected"}
        assert await it.get("/mcp") == {"p": {"status": "connected"}}
        removed = await it.http.delete("/mcp/p/auth")
        assert removed.json() == {"success": True}
        assert (oauth[1] / "revoked").exists()
        assert await it.get("/mcp") == {"p": {"status": "needs_auth"}}
        assert await it.post("/mcp/p/connect") is False


async def test_a_browser_on_the_same_machine_finishes_it_by_the_redirect(
    tmp_path: Path, oauth: tuple[str, Path]
) -> None:
    async with served(tmp_path, mcp=remote(oauth[0])) as it:
        heard: list[str] = []

        async def follow() -> None:
            async for stamped in (await it.project()).store.follow(None):
                if isinstance(stamped.event, McpBrowserOpenFailed):
                    assert stamped.event.properties.mcp_name == "p"
                    heard.append(stamped.event.properties.url)

        following = asyncio.create_task(follow())
        await begun(it)
        waiting = asyncio.create_task(it.post("/mcp/p/auth/authenticate"))
        await wait_until(lambda: bool(heard))
        await asyncio.to_thread(opened, heard[0])
        assert await waiting == {"status": "connected"}
        assert await it.post("/mcp/p/auth/callback", {"code": "late"}) == {"status": "connected"}
        following.cancel()


async def test_a_code_that_the_provider_refuses_leaves_nobody_signed_in(
    tmp_path: Path, oauth: tuple[str, Path]
) -> None:
    async with served(tmp_path, mcp=remote(oauth[0])) as it:
        await begun(it)
        refused = await it.post("/mcp/p/auth/callback", {"code": "made-up"}, status=400)
        assert refused["data"]["message"].startswith(
            "Signing in at p failed: Token exchange failed"
        )
        assert "(invalid_grant" in refused["data"]["message"]
        assert await it.get("/mcp") == {"p": {"status": "needs_auth"}}


async def test_a_redirect_that_another_page_sends_is_not_taken(
    tmp_path: Path, oauth: tuple[str, Path]
) -> None:
    async with served(tmp_path, mcp=remote(oauth[0])) as it:
        address = await begun(it)
        callback = parse_qs(urlsplit(address).query)["redirect_uri"][0]
        for forged in ("?code=x", "?code=x&state=other", "?error=access_denied"):
            answer = await it.anonymous.get(callback + forged)
            assert answer.status_code == 404
        await asyncio.to_thread(opened, address)
        assert await it.post("/mcp/p/auth/callback", {"code": "late"}) == {"status": "connected"}


async def test_what_is_refused_says_why(tmp_path: Path, oauth: tuple[str, Path]) -> None:
    local = {"type": "local", "command": ["true"]}
    servers = {
        "here": local,
        "off": {"type": "remote", "url": oauth[0], "oauth": False},
        **remote(oauth[0]),
    }
    async with served(tmp_path, mcp=servers) as it:
        for name, why in (("here", "is a program"), ("off", "`oauth` is false")):
            for route in ("auth", "auth/authenticate"):
                refused = await it.post(f"/mcp/{name}/{route}", status=400)
                assert why in refused["error"]
        for route in ("auth", "auth/authenticate"):
            missing = await it.post(f"/mcp/no one/{route}", status=404)
            assert (missing["_tag"], missing["name"]) == ("McpServerNotFoundError", "no one")
        await it.post("/mcp/no one/auth/callback", {"code": "x"}, status=404)
        assert (await it.http.delete("/mcp/no one/auth")).status_code == 404
        none = await it.post("/mcp/p/auth/callback", {"code": "x"}, status=400)
        assert "Nobody is signing in at p" in none["data"]["message"]
        assert (await it.http.delete("/mcp/p/auth")).json() == {"success": True}


@pytest.mark.slow
async def test_a_server_that_registers_nobody_says_what_to_configure(
    tmp_path: Path, closed: tuple[str, int]
) -> None:
    async with served(tmp_path, mcp=remote(closed[0])) as it:
        assert await it.post("/mcp/p/connect") is False
        now = (await it.get("/mcp"))["p"]
        assert now["status"] == "needs_client_registration"
        assert 'set `"oauth": {"clientId": "..."}` in mcp.p' in now["error"]
        refused = await it.post("/mcp/p/auth", status=400)
        assert "http://127.0.0.1:19876/mcp/oauth/callback" in refused["data"]["message"]
        assert (await it.get("/mcp"))["p"]["status"] == "needs_client_registration"


@pytest.mark.slow
async def test_a_client_that_is_registered_by_hand_signs_in(
    tmp_path: Path, closed: tuple[str, int]
) -> None:
    assert get_redirect_target(OAuthSettings(client_id="known")).port == 19876
    url, port = closed
    oauth = {"clientId": "known", "scope": "read", "callbackPort": port}
    async with served(tmp_path, mcp=remote(url, oauth=oauth)) as it:
        address = await begun(it)
        asked = parse_qs(urlsplit(address).query)
        assert (asked["client_id"], asked["scope"]) == (["known"], ["read"])
        where = await asyncio.to_thread(led_to, address)
        assert await it.post("/mcp/p/auth/callback", {"code": where}) == {"status": "connected"}
