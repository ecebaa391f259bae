"""A person signs in at a server: found out where, registered there, with a code that comes back by a redirect."""

import asyncio
import html
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from codeloop.extend.mcp.known.definition import OAuthSettings, RemoteDefinition, ServerDefinition
from codeloop.extend.mcp.link.failures import RegistrationNeeded, cause, request_errors, words_of
from codeloop.extend.mcp.link.transport import http_client, quiet
from codeloop.extend.mcp.sign_in.store import ServerSignIn, SignIns
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import MCP_SIGN_IN
from codeloop.schema.wire import JSON

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider

_PATH = "/mcp/oauth/callback"
_HELLO: JSON = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "codeloop", "version": "1"}},
}
Show = Callable[[str], None]
Paste = Callable[[], Awaitable[str]]


class CallbackServer:
    """Listens on this machine alone for the redirect that brings the code. `answer` is its query."""

    def __init__(self, port: int) -> None:
        self._wanted = port
        self._server: asyncio.Server | None = None
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @asynccontextmanager
    async def listening(self) -> "AsyncGenerator[CallbackServer]":
        """Listen for as long as it is needed. Raises OSError."""
        self._server = await asyncio.start_server(self._came, "127.0.0.1", self._wanted)
        try:
            yield self
        finally:
            self._server.close()

    @property
    def url(self) -> str:
        """Where the redirect leads."""
        port = self._server.sockets[0].getsockname()[1] if self._server is not None else self._wanted
        return f"http://127.0.0.1:{port}{_PATH}"

    async def _came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode("latin-1").split(" ")
        target = urlsplit(line[1] if len(line) > 1 else "")
        is_it = target.path == _PATH and line[0] == "GET"
        said = "You are signed in. Close this page and go on in codeloop." if is_it else "Not here."
        error = parse_qs(target.query).get("error", [""])[0]
        said = f"It was refused: {html.escape(error)}." if is_it and error else said
        body = f"<!doctype html><meta charset=utf-8><title>codeloop</title><p>{said}</p>".encode()
        status = b"200 OK" if is_it else b"404 Not Found"
        head = b"content-type: text/html; charset=utf-8\r\nconnection: close\r\ncontent-length: "
        writer.write(b"HTTP/1.1 " + status + b"\r\n" + head + str(len(body)).encode() + b"\r\n\r\n" + body)
        await writer.drain()
        writer.close()
        if is_it and not self.answer.done():
            self.answer.set_result(target.query)


async def sign_in(definition: ServerDefinition, sign_ins: SignIns, show: Show, paste: Paste | None) -> str:
    """Have a person sign in, and store what comes of it. Returns what was done, in words.

    `show` is given the address to open; `paste` waits for what a person pastes: the address that the browser was led
    to, or its code. Raises CodeloopError.
    """
    how = definition.how
    if not isinstance(how, RemoteDefinition) or how.oauth is False:
        raise CodeloopError(f"{definition.name} is not a server that one signs in at by OAuth.")
    settings = how.oauth or OAuthSettings()
    try:
        async with CallbackServer(settings.callback_port).listening() as callback, asyncio.timeout(MCP_SIGN_IN.seconds):
            flow = _Flow(how.url, settings, callback, show, paste)
            return await flow.run(definition.name, sign_ins)
    except TimeoutError as error:
        raise CodeloopError(f"Nobody signed in within {MCP_SIGN_IN.seconds / 60:.0f} minutes.") from error
    except OSError as error:
        raise CodeloopError(f"Port {settings.callback_port} can't be listened on: {error.strerror}.") from error


class _Flow:
    """One sign-in. It is the storage that the package's flow asks, too."""

    def __init__(
        self, url: str, settings: OAuthSettings, callback: CallbackServer, show: Show, paste: Paste | None
    ) -> None:
        self._url = url
        self._settings = settings
        self._callback = callback
        self._show = show
        self._paste = paste
        self._tokens: Any = None
        self._client: Any = None

    async def run(self, name: str, sign_ins: SignIns) -> str:
        quiet()
        provider = self._provider()
        async with http_client(self._url, {}, provider, lambda _status: None) as client:
            try:
                headers = {"accept": "application/json, text/event-stream"}
                async with client.stream("POST", self._url, json=_HELLO, headers=headers) as answer:
                    status = answer.status_code
            except (*request_errors(), *_flow_errors()) as error:
                raise _failure(name, error) from error
        if self._tokens is None:
            raise CodeloopError(f"{name} asks nobody to sign in: it answered {status} without it.")
        context = provider.context
        metadata = context.oauth_metadata
        entry = ServerSignIn(
            url=self._url,
            access="",
            token_endpoint=str(metadata.token_endpoint) if metadata else "",
            resource=context.get_resource_url() if context.should_include_resource_param("2025-06-18") else "",
            client=self._client.model_dump(mode="json", exclude_none=True) if self._client else {},
        )
        sign_ins.put(name, entry.renewed(self._tokens.model_dump(mode="json", exclude_none=True)))
        return f"Signed in at {name}."

    def _provider(self) -> "OAuthClientProvider":
        from mcp.client.auth import OAuthClientProvider
        from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata
        from pydantic import AnyUrl

        settings = self._settings
        redirect = AnyUrl(settings.redirect_uri or self._callback.url)
        method = "client_secret_post" if settings.client_secret else "none"
        about = OAuthClientMetadata(
            redirect_uris=[redirect],
            client_name="codeloop",
            scope=settings.scope or None,
            token_endpoint_auth_method=method,
        )
        if settings.client_id:
            self._client = OAuthClientInformationFull(
                client_id=settings.client_id,
                client_secret=settings.client_secret or None,
                redirect_uris=[redirect],
                token_endpoint_auth_method=method,
            )
        return OAuthClientProvider(self._url, about, self, self._redirected, self._called_back)

    async def get_tokens(self) -> Any:
        return self._tokens

    async def set_tokens(self, tokens: Any) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> Any:
        return self._client

    async def set_client_info(self, client_info: Any) -> None:
        self._client = client_info

    async def _redirected(self, url: str) -> None:
        self._show(url)

    async def _called_back(self) -> Any:
        from mcp.shared.auth import AuthorizationCodeResult

        state = ""
        waiting: set[asyncio.Future[str]] = {self._callback.answer}
        if self._paste is not None:
            waiting.add(asyncio.ensure_future(self._paste()))
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting - {self._callback.answer}:
                each.cancel()
        text = next(iter(done)).result().strip()
        query = parse_qs(urlsplit(text).query or text)
        if "error" in query:
            raise CodeloopError(f"It was refused: {query['error'][0]}.")
        state = query.get("state", [""])[0]
        return AuthorizationCodeResult(code=query.get("code", [""])[0], state=state, iss=query.get("iss", [None])[0])


def _flow_errors() -> tuple[type[Exception], ...]:
    from mcp.client.auth import OAuthFlowError

    return (OAuthFlowError,)


def _failure(name: str, error: BaseException) -> CodeloopError:
    from mcp.client.auth import OAuthRegistrationError

    if isinstance(cause(error), OAuthRegistrationError):
        why = words_of(error)
        return RegistrationNeeded(
            f"{name} registers no clients by itself ({why}). Register codeloop there, and set its `oauth`: clientId."
        )
    return CodeloopError(f"Signing in at {name} failed: {words_of(error)}")


async def pasted() -> str:
    """Wait for a line on the terminal."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(sys.stdin, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
        return sys.stdin.readline()
    finally:
        loop.remove_reader(sys.stdin)
