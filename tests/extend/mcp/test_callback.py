"""The page that a browser shows when a sign-in leads it back."""

import asyncio

from codeloop.extend.mcp.sign_in.callback import CallbackServer, RedirectTarget


async def fetch(url: str) -> str:
    address, _, path = url.removeprefix("http://").partition("/")
    host, _, port = address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET /{path} HTTP/1.1\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    return answer


async def test_the_page_promises_no_sign_in_before_the_code_was_exchanged() -> None:
    async with CallbackServer(RedirectTarget(0, "/callback")).listen() as server:
        server.state = "secret"
        page = await fetch(f"{server.url}?code=abc&state=secret")
        assert (await server.answer) == "code=abc&state=secret"
    assert "200 OK" in page
    assert "Close this page" in page
    assert "You are signed in" not in page


async def test_a_refusal_is_shown_and_other_addresses_are_not_answered() -> None:
    async with CallbackServer(RedirectTarget(0, "/callback")).listen() as server:
        server.state = "secret"
        other = await fetch(f"{server.url}?code=abc&state=guessed")
        assert not server.answer.done()
        refused = await fetch(f"{server.url}?error=%3Cb%3E&state=secret")
    assert "404 Not Found" in other
    assert "It was refused: &lt;b&gt;." in refused
