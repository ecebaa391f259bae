"""The redirect that ends a browser sign-in: a local listener,
or the address that the user pastes.
"""

import asyncio
import html
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from codeloop.extend.mcp.definition import OAuthSettings
from codeloop.extend.mcp.sign_in.registration import CALLBACK_PATH, CALLBACK_PORT
from codeloop.schema.errors import CodeloopError

_LOOPBACK_HOSTS = frozenset(("127.0.0.1", "localhost", "::1"))


class RedirectTarget(Struct, frozen=True):
    """The target of the redirect. `port` and `path`: where to listen; 0: any free port.
    `address`: as configured.
    """

    port: int
    path: str
    address: str = ""


def get_redirect_target(settings: OAuthSettings) -> RedirectTarget:
    """Return where the redirect leads: as configured;
    a client that was registered by hand has a fixed port.
    """
    port = settings.callback_port or (CALLBACK_PORT if settings.client_id else 0)
    if not settings.redirect_uri:
        return RedirectTarget(port, CALLBACK_PATH)
    url = urlsplit(settings.redirect_uri)
    # The port of an address elsewhere says nothing about the ports of this machine.
    port = (url.port or 0) if url.hostname in _LOOPBACK_HOSTS else 0
    return RedirectTarget(settings.callback_port or port, url.path, settings.redirect_uri)


class CallbackServer:
    """Listens on the loopback interface for the redirect that carries the code.
    `answer` is its query.

    Only the redirect with `state` counts: any page in the browser can send others here.
    """

    def __init__(self, redirect: RedirectTarget) -> None:
        self.state = ""
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._redirect = redirect
        self._server: asyncio.Server | None = None

    @asynccontextmanager
    async def listen(self) -> "AsyncGenerator[CallbackServer]":
        """Listen for as long as it is needed. Raises CodeloopError when the port can't be had."""
        port = self._redirect.port
        try:
            self._server = await asyncio.start_server(self._handle, "127.0.0.1", port)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise CodeloopError(
                f"Port {port} of this machine can't be listened on ({reason}). End what uses it, or set another one "
                "that is registered: `oauth`: callbackPort."
            ) from error
        try:
            yield self
        finally:
            self._server.close()

    @property
    def url(self) -> str:
        """The redirect URI for the provider."""
        if self._redirect.address:
            return self._redirect.address
        port = (
            self._server.sockets[0].getsockname()[1]
            if self._server is not None
            else self._redirect.port
        )
        return f"http://127.0.0.1:{port}{self._redirect.path}"

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # "GET /mcp/oauth/callback?code=...&state=... HTTP/1.1"
        method, _, rest = (await reader.readline()).decode("latin-1").partition(" ")
        target = urlsplit(rest.partition(" ")[0])
        query = parse_qs(target.query)
        # The state is a secret of this sign-in: a page that sends a code of its
        # own does not know it.
        is_redirect = (
            target.path == self._redirect.path
            and method == "GET"
            and self.state in query.get("state", [])
        )
        # Whether the code is worth a token is not known yet.
        text = (
            "Close this page: codeloop goes on, and says whether you are signed in."
            if is_redirect
            else "Not here."
        )
        if is_redirect and "error" in query:
            # The text comes from the address, so anyone can choose it.
            text = f"It was refused: {html.escape(query['error'][0])}."
        body = f"<!doctype html><meta charset=utf-8><title>codeloop</title><p>{text}</p>".encode()
        status = b"200 OK" if is_redirect else b"404 Not Found"
        head = b"content-type: text/html; charset=utf-8\r\nconnection: close\r\ncontent-length: "
        writer.write(
            b"HTTP/1.1 " + status + b"\r\n" + head + str(len(body)).encode() + b"\r\n\r\n" + body
        )
        await writer.drain()
        writer.close()
        if is_redirect and not self.answer.done():
            self.answer.set_result(target.query)


class AuthorizationCode(Struct, frozen=True):
    """The code of a redirect. `issuer`: its claimed issuer, if any."""

    code: str
    issuer: str | None = None


def parse_redirect(text: str, state: str | None = None) -> AuthorizationCode:
    """Parse a redirect's query, its whole address, or the code alone.
    Raises CodeloopError when it is unusable.

    `state`: must equal its state, if it has one; None: not checked.
    """
    text = text.strip()
    query = parse_qs(urlsplit(text).query if "?" in text else text)
    if "error" in query:
        description = f": {query['error_description'][0]}" if "error_description" in query else ""
        raise CodeloopError(f"the provider refused it ({query['error'][0]}{description})")
    if "code" not in query:
        # A code alone has none of these; an address without a code is the wrong one.
        if not text or "://" in text or "=" in text.rstrip("="):
            raise CodeloopError(
                "there is no code in what was pasted; paste the whole address that the browser shows"
            )
        return AuthorizationCode(text)
    if state is not None and query.get("state", [state])[0] != state:
        raise CodeloopError(
            "what was pasted is of another sign-in; open the address that was shown last"
        )
    return AuthorizationCode(query["code"][0], query.get("iss", [None])[0])


async def read_pasted_line() -> str:
    """Wait for a line on the terminal."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(sys.stdin, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
        return sys.stdin.readline()
    finally:
        loop.remove_reader(sys.stdin)
