"""The page is served to everybody, what it shows only to a browser that signed in,
and nothing of it to other sites.
"""

import gzip
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from codeloop.server.server import ListenOptions
from tests.server.support.raw import UPGRADE, ask, basic, request
from tests.server.support.serving import PASSWORD, Served, served


@asynccontextmanager
async def page(tmp_path: Path, **options: Any) -> AsyncGenerator[Served]:
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html><title>page</title>")
    (folder / "app.js").write_text("let x = 1;" * 100)
    (folder / "worker.js").write_text("0;")
    async with served(
        tmp_path, listening=ListenOptions(password=PASSWORD, pages=folder, **options)
    ) as it:
        yield it


async def signed_in(it: Served) -> list[str]:
    """Return the headers of a browser that used a link."""
    link = f"authorization: Link {it.server.browsers.create_link()}"
    answer = await ask(it.url, request(it.url, "POST", "/web/session", link, "content-length: 0"))
    assert answer.status == 200
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    key = answer.body.decode().split('"')[3]
    return [f"cookie: {cookie.partition(';')[0]}", f"x-codeloop-key: {key}"]


async def status(it: Served, path: str, *lines: str, method: str = "GET") -> int:
    return (await ask(it.url, request(it.url, method, path, *lines))).status


async def test_the_files_need_no_credential_and_hold_a_strict_policy(tmp_path: Path) -> None:
    async with page(tmp_path) as it:
        for path in ("/", "/web/app.js"):
            answer = await it.anonymous.get(path)
            policy = answer.headers["content-security-policy"]
            assert answer.status_code == 200
            assert "script-src 'self';" in policy
            assert "frame-ancestors 'none'" in policy
            assert "require-trusted-types-for 'script'" in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
        assert (await it.anonymous.get("/web/worker.js")).headers["service-worker-allowed"] == "/"


async def test_a_file_is_packed_and_sent_once(tmp_path: Path) -> None:
    async with page(tmp_path) as it:
        raw = await ask(it.url, request(it.url, "GET", "/web/app.js", "accept-encoding: gzip"))
        assert gzip.decompress(raw.body) == b"let x = 1;" * 100
        again = f"if-none-match: {raw.headers['etag']}"
        assert await status(it, "/web/app.js", again) == 304


async def test_nothing_but_the_files_is_served_without_a_credential(tmp_path: Path) -> None:
    async with page(tmp_path) as it:
        for path in (
            "/session",
            "/web/link",
            "/web/../session",
            "/web/%2e%2e/session",
            "/web/other.js",
            "/doc",
        ):
            assert await status(it, path) == 401
        assert await status(it, "/", method="POST") == 401
        assert await status(it, "/web/session", "content-length: 0", method="POST") == 401


async def test_a_link_signs_one_browser_in(tmp_path: Path) -> None:
    async with page(tmp_path) as it:
        session = await signed_in(it)
        assert await status(it, "/session", *session) == 200
        assert await status(it, "/session", session[0]) == 401
        assert await status(it, "/session", session[1]) == 401


async def test_a_used_link_and_one_for_another_route_are_refused(tmp_path: Path) -> None:
    async with page(tmp_path) as it:
        link = f"authorization: Link {it.server.browsers.create_link()}"
        assert await status(it, "/session", link) == 401
        assert await status(it, "/web/session", link, "content-length: 0", method="POST") == 200
        assert await status(it, "/web/session", link, "content-length: 0", method="POST") == 401


async def test_the_password_signs_a_browser_in_too(tmp_path: Path) -> None:
    async with page(tmp_path) as it:
        assert await status(it, "/web/session", basic(), "content-length: 0", method="POST") == 200


@pytest.mark.parametrize("origin", ["https://app.example", "http://127.0.0.1:1", "null"])
async def test_a_session_counts_for_no_other_origin(tmp_path: Path, origin: str) -> None:
    async with page(tmp_path, origins=("https://app.example",)) as it:
        session = await signed_in(it)
        own = f"origin: {it.url}"
        assert await status(it, "/session", *session, own) == 200
        assert await status(it, "/session", *session, f"origin: {origin}") in {401, 403}


async def test_a_web_socket_needs_more_than_the_cookie(tmp_path: Path) -> None:
    async with page(tmp_path) as it:
        cookie, _ = await signed_in(it)
        assert await status(it, "/pty/pty_1/connect", *UPGRADE, cookie, f"origin: {it.url}") == 401
        assert (
            await status(it, "/pty/pty_1/connect", *UPGRADE, cookie, "origin: https://evil.example")
            == 403
        )


async def test_frames_and_scripts_of_other_sites_are_refused(tmp_path: Path) -> None:
    async with page(tmp_path) as it:
        for mode in ("no-cors", "cors"):
            lines = ("sec-fetch-site: cross-site", f"sec-fetch-mode: {mode}")
            assert await status(it, "/web/app.js", *lines) == 403


async def test_a_link_for_another_device_is_made_only_where_others_can_come(tmp_path: Path) -> None:
    async with page(tmp_path) as it:
        assert (await it.post("/web/link")) == {"urls": []}


async def test_without_a_folder_there_is_no_page(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        assert await status(it, "/") == 401
        assert (await it.http.get("/")).status_code == 404
