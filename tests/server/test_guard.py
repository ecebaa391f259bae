"""Nobody gets past the guard without being asked for, from the right place,
with the right credential.
"""

import asyncio
import base64
import logging
import re
import socket
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from starlette.routing import Route, WebSocketRoute

from codeloop.app.app import App
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.bounds.server import SERVER_ADDRESSES, SERVER_DELAY, SERVER_MAX_DELAYED
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import replace
from codeloop.server import password_attempts
from codeloop.server.application import make_application
from codeloop.server.events.hub import Hub
from codeloop.server.guard import parse_origin
from codeloop.server.openapi.operations import ALL_OPERATIONS
from codeloop.server.password_attempts import PasswordAttempts
from codeloop.server.server import ListenOptions, UnprotectedServer
from tests.server.support.raw import UPGRADE, Answered, ask, basic, port_of, request
from tests.server.support.serving import PASSWORD, Served, served
from tests.support.scripted_project import wait_until

PAGE = "https://app.example:8443"
CONFIGURED = ListenOptions(password=PASSWORD, origins=(PAGE,))
UPLOAD = ("content-type: application/json", "content-length: 10000000")


@asynccontextmanager
async def guarded(tmp_path: Path, listening: ListenOptions | None = None) -> AsyncGenerator[Served]:
    async with served(tmp_path, [ScriptedAnswer(text="Hello.")], listening) as it:
        yield it


def asked(
    it: Served, method: str = "GET", path: str = "/session", *lines: str, host: str | None = ""
) -> bytes:
    return request(it.url, method, path, *lines, host=host)


async def status(
    it: Served, *lines: str, path: str = "/session", host: str | None = "", method: str = "GET"
) -> int:
    return (await ask(it.url, asked(it, method, path, *lines, host=host))).status


def routes_of(app: App) -> Iterator[tuple[str, str]]:
    """Yield method and path of everything that the site answers;
    a WebSocket has the method "WS".
    """
    for row in ALL_OPERATIONS:
        yield row.method, row.path
    for route in make_application(app, Hub(app)).routes:
        assert isinstance(route, Route | WebSocketRoute), (
            f"{route}: a kind of route that this test does not know"
        )
        methods = (route.methods or {"GET"}) if isinstance(route, Route) else {"WS"}
        yield from ((method, route.path) for method in methods)


async def every_route(it: Served, *lines: str) -> dict[str, Answered]:
    """Ask each route for something; the body of 10 MB that is announced never comes."""
    answers: dict[str, Answered] = {}
    found = sorted(set(routes_of(it.app)))
    assert len(found) > 90
    assert ("WS", "/pty/{ptyID}/connect") in found
    for method, path in found:
        real = re.sub(r"\{[^}]*\}", "x", path)
        data = (
            asked(it, "GET", real, *UPGRADE, *lines)
            if method == "WS"
            else asked(it, method, real, *UPLOAD, *lines)
        )
        answers[f"{method} {path}"] = await ask(it.url, data)
    return answers


@pytest.mark.slow
async def test_every_route_needs_the_credential_before_its_body_is_read(tmp_path: Path) -> None:
    async with guarded(tmp_path) as it:
        answers = await every_route(it)
    assert {name: a.status for name, a in answers.items() if a.status != 401} == {}
    # Clients of version 2 read errors by their tags.
    assert {name for name, a in answers.items() if a.body and " /api/" not in name} == set()
    assert {a.headers["www-authenticate"] for a in answers.values()} == {
        'Basic realm="Secure Area"'
    }


@pytest.mark.slow
async def test_every_route_refuses_a_foreign_page_even_with_the_credential(tmp_path: Path) -> None:
    async with guarded(tmp_path, CONFIGURED) as it:
        answers = await every_route(it, "origin: https://evil.example", basic())
    assert {name: a.status for name, a in answers.items() if a.status != 403} == {}
    assert {
        name for name, a in answers.items() if any("access-control" in key for key in a.headers)
    } == set()


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:3000",
        "null",
        "http://127.0.0.1",
        "https://127.0.0.1",
        "http://127.0.0.1.evil.example",
    ],
)
async def test_no_page_but_its_own_may_ask_a_default_server(tmp_path: Path, origin: str) -> None:
    async with guarded(tmp_path) as it:
        for method in ("GET", "POST", "OPTIONS"):
            answer = await ask(it.url, asked(it, method, "/session", f"origin: {origin}", basic()))
            assert answer.status == 403
            assert not any("access-control" in key for key in answer.headers)
        assert await status(it, f"origin: {it.url}", basic()) == 200
        assert await status(it, f"origin: {it.url}", f"origin: {it.url}", basic()) == 403


async def test_a_configured_page_may_ask_and_read(tmp_path: Path) -> None:
    async with guarded(tmp_path, CONFIGURED) as it:
        answer = await ask(it.url, asked(it, "GET", "/session", f"origin: {PAGE}", basic()))
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, PAGE)
        assert answer.headers["vary"] == "Origin"
        refused = await ask(it.url, asked(it, "GET", "/session", f"origin: {PAGE}"))
        assert (refused.status, refused.headers["access-control-allow-origin"]) == (401, PAGE)
        own = await ask(it.url, asked(it, "GET", "/session", f"origin: {it.url}", basic()))
        assert "access-control-allow-origin" not in own.headers


async def test_a_browser_may_ask_first_without_the_credential(tmp_path: Path) -> None:
    async with guarded(tmp_path, CONFIGURED) as it:
        wants = (
            "access-control-request-method: POST",
            "access-control-request-headers: authorization, content-type",
        )
        answer = await ask(it.url, asked(it, "OPTIONS", "/session", f"origin: {PAGE}", *wants))
        assert (answer.status, answer.body) == (204, b"")
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert (
            answer.headers["access-control-allow-methods"] == "GET, HEAD, PUT, PATCH, POST, DELETE"
        )
        assert answer.headers["access-control-allow-headers"] == "authorization, content-type"
        assert answer.headers["access-control-max-age"] == "86400"
        assert await status(it, method="OPTIONS") == 401, (
            "no page asks: this is a request like any other"
        )


async def test_a_request_for_another_host_is_refused(tmp_path: Path) -> None:
    async with guarded(tmp_path) as it:
        port = port_of(it.url)
        bad = [
            "evil.example",
            f"127.0.0.1.nip.io:{port}",
            f"localhost:{port + 1}",
            "127.0.0.1:x",
            "localhost.",
            "10.0.0.1",
        ]
        bad += ["127.0.0.1@evil.example", "", "[::1", "127.1", "0", socket.gethostname()]
        for extra in ((basic(),), (basic(), *UPGRADE)):
            for host in bad:
                assert await status(it, f"host: {host}", *extra, host=None) == 421, host
            assert await status(it, *extra, host=None) == 421
            twice = await status(it, "host: localhost", *extra)
            assert twice in {400, 421}, "two Hosts"
        for host in (
            "localhost",
            "LOCALHOST",
            f"localhost:{port}",
            "127.0.0.1",
            f"[::1]:{port}",
            "[::1]",
        ):
            assert await status(it, basic(), host=host) == 200, host
        assert (
            await ask(it.url, b"GET /session HTTP/1.0\r\n" + basic().encode() + b"\r\n\r\n")
        ).status == 421


async def test_every_form_of_the_credential_is_taken(tmp_path: Path) -> None:
    async with guarded(tmp_path, ListenOptions(password="pa:ss?>~\u00fc", username="me")) as it:
        password = "pa:ss?>~\u00fc"
        whole = f"me:{password}".encode()
        standard, safe = base64.b64encode(whole).decode(), base64.urlsafe_b64encode(whole).decode()
        assert standard != safe
        assert await status(it, basic(password, "me")) == 200
        assert await status(it, basic(password, "me").replace("Basic", "bASIC")) == 200
        assert (
            await status(it, "authorization: Bearer " + password.encode().decode("latin-1")) == 200
        )
        for token in (
            standard,
            safe,
            safe.rstrip("="),
            standard.replace("+", "%2B").replace("/", "%2F"),
        ):
            assert await status(it, path=f"/session?auth_token={token}") == 200, token
        assert await status(it, path=f"/session?directory=/&auth_token={safe}") == 200


async def test_what_is_not_quite_the_credential_is_not_taken(tmp_path: Path) -> None:
    async with guarded(tmp_path) as it:
        wrong = [
            basic(PASSWORD + "x"),
            basic(PASSWORD[:-1]),
            basic(PASSWORD, "other"),
            basic(""),
            basic(PASSWORD, ""),
        ]
        wrong += [
            "authorization: Basic !!!",
            "authorization: Bearer",
            "authorization: ",
            f"authorization: {PASSWORD}",
        ]
        guesses = [status(it, line) for line in wrong]
        guesses.append(status(it, path=f"/session?auth_token={PASSWORD.replace(' ', '')}"))
        right = base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()
        guesses.append(status(it, path=f"/session?auth_token=eDp5&auth_token={right}"))
        guesses.append(status(it, basic("x"), basic()))
        assert set(await asyncio.gather(*guesses)) == {401, 429}
        assert await status(it, path="/session?ticket=x") == 401
        assert await status(it, *UPGRADE, path="/event?ticket=x") == 401


async def test_a_ticket_leads_to_a_terminals_websocket_and_nowhere_else(tmp_path: Path) -> None:
    async with guarded(tmp_path) as it:
        assert await status(it, *UPGRADE, path="/pty/pty_x/connect?ticket=guessed") == 403
        assert await status(it, path="/pty/pty_x/connect?ticket=guessed") == 401
        assert await status(it, *UPGRADE, path="/pty/pty_x/connect?ticket=") == 401
        assert await status(it, *UPGRADE, path="/pty/pty_x/connect/more?ticket=guessed") == 401
        stale = await status(it, *UPGRADE, basic("stale"), path="/pty/pty_x/connect?ticket=guessed")
        assert stale == 401, "a wrong credential is not made good by a ticket"
        foreign = await status(
            it, *UPGRADE, "origin: https://evil.example", path="/pty/pty_x/connect?ticket=guessed"
        )
        assert foreign == 403
        assert (
            await status(
                it, *UPGRADE, path="/pty/pty_x/connect?ticket=guessed", host="evil.example"
            )
            == 421
        )


async def test_another_sites_image_or_frame_is_refused_a_link_is_not(tmp_path: Path) -> None:
    async with guarded(tmp_path, ListenOptions()) as it:
        assert await status(it, "sec-fetch-site: cross-site", "sec-fetch-mode: no-cors") == 403
        assert await status(it, "sec-fetch-site: same-site", "sec-fetch-mode: no-cors") == 403
        assert await status(it, "sec-fetch-site: cross-site", "sec-fetch-mode: navigate") == 200
        assert await status(it, "sec-fetch-site: same-origin", "sec-fetch-mode: cors") == 200


async def test_without_a_password_host_and_origin_still_count(tmp_path: Path) -> None:
    async with guarded(tmp_path, ListenOptions()) as it:
        assert await status(it) == 200
        assert await status(it, host="evil.example") == 421
        assert await status(it, "origin: http://localhost:3000") == 403


async def test_wrong_passwords_wait_ever_longer_and_the_right_one_never(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    async with guarded(tmp_path) as it:
        begun = time.monotonic()
        for _ in range(2):
            assert await status(it, basic("a wrong guess")) == 401
        assert time.monotonic() - begun > 0.25
        monkeypatch.setattr(
            password_attempts, "SERVER_DELAY", replace(SERVER_DELAY, value=3_600_000)
        )
        flood = [
            asyncio.create_task(status(it, basic("a wrong guess")))
            for _ in range(SERVER_MAX_DELAYED.value * 3)
        ]
        await wait_until(lambda: sum(task.done() for task in flood) == SERVER_MAX_DELAYED.value * 2)
        assert await status(it, basic()) == 200
        waiting = [task for task in flood if not task.done()]
        assert len(waiting) == SERVER_MAX_DELAYED.value, (
            "those that wait still do when the right one is answered"
        )
        assert {task.result() for task in flood if task.done()} == {429}
        it.server._guard.end_delays()
        assert set(await asyncio.gather(*waiting)) == {401}
        assert "with a wrong credential" in caplog.text
        assert "a wrong guess" not in caplog.text
        assert PASSWORD not in caplog.text
        assert base64.b64encode(b"opencode:a wrong guess").decode() not in caplog.text


async def test_no_part_of_a_query_is_logged_nor_a_line_break_of_a_path(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with guarded(tmp_path) as it:
        for more in ((), UPGRADE):
            assert (
                await status(it, *more, path="/a%0aforged?auth_token=c2VjcmV0OnF1ZXJ5&ticket=tttt")
                == 401
            )
            await status(it, *more, basic(), path="/b?auth_token=c2VjcmV0OnF1ZXJ5&ticket=tttt")
        assert "c2VjcmV0" not in caplog.text
        assert "tttt" not in caplog.text
        assert "\nforged" not in caplog.text


async def test_the_table_of_guessers_is_bounded() -> None:
    attempts = PasswordAttempts()
    attempts.end_delays()
    waiting = [
        asyncio.create_task(attempts.delay_answer(f"192.0.2.{n}"))
        for n in range(SERVER_ADDRESSES.value + 50)
    ]
    await asyncio.gather(*waiting)
    assert len(attempts._attempts_by_address) == SERVER_ADDRESSES.value


async def test_other_machines_are_only_served_with_a_password(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "0", "no-such-host.invalid", ""):
        with pytest.raises((UnprotectedServer, CodeloopError)):
            async with guarded(tmp_path, ListenOptions(host=host)):
                pass
    async with guarded(tmp_path, ListenOptions(host="0.0.0.0", password=PASSWORD)) as it:
        port = port_of(it.url)
        for host in (f"192.0.2.77:{port}", socket.gethostname(), f"0.0.0.0:{port}", "[fd00::1]"):
            assert await status(it, basic(), host=host) == 200, host
        assert await status(it, basic(), host="evil.example") == 421
        assert await status(it, basic(), f"origin: http://192.0.2.77:{port}") == 403, (
            "an address that is not asked"
        )
        assert (
            await status(
                it, basic(), f"origin: http://192.0.2.77:{port}", host=f"192.0.2.77:{port}"
            )
            == 200
        )


@pytest.mark.parametrize(
    "text",
    ["*", "null", "example.com", "http://", "http://a/b", "https://*.a.example", "http://a:x"],
)
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(CodeloopError, match="is not an origin"):
        parse_origin(text)


def test_an_origin_is_kept_as_browsers_write_it() -> None:
    assert parse_origin("HTTPS://App.Example:443/") == "https://app.example"
    assert parse_origin("http://localhost:3000") == "http://localhost:3000"
    assert parse_origin("http://[::1]:80") == "http://[::1]"
    assert parse_origin("tauri://localhost") == "tauri://localhost"
