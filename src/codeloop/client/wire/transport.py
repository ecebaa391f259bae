"""`HttpTransport`: sends the HTTP client's requests to one server,
and renews its address and its credential.
"""

from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from codeloop.client.client import ServerLost
from codeloop.client.wire.connection_state import ConnectionState
from codeloop.net.hosts import is_loopback
from codeloop.net.tls import load_service_tls_context
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CLIENT_ANSWER, CLIENT_CONNECT, CLIENT_KEEPALIVE

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

UserAndPassword = tuple[str, str]
"""User name and password."""
Renew = Callable[[], tuple[str, UserAndPassword] | None]
"""Returns the server's present address and credential, or None if the server can't be found."""


class HttpTransport:
    """Sends requests to one server over connections that are kept open."""

    def __init__(
        self, url: str, credential: UserAndPassword | None = None, renew: Renew | None = None
    ) -> None:
        """Open no connection yet. `renew` finds the server again.
        Raises CodeloopError for an invalid `url`.
        """
        self.parts = _parse_address(url)
        self.url = self.parts.geturl().rstrip("/")
        self.connection = ConnectionState()
        self.credential: UserAndPassword | None = credential
        """The credential that the next request carries."""
        self._renew = renew
        self._http: AsyncClient | None = None

    @property
    def sends_in_clear(self) -> bool:
        """Whether a password crosses a network that others may read."""
        is_clear = self.parts.scheme == "http" and not is_loopback(self.parts.hostname or "")
        return self.credential is not None and is_clear

    def renew(self) -> bool:
        """Look for a new address or credential, as after a restart of the server;
        return whether one was found.
        """
        renewal = self._renew() if self._renew is not None else None
        if renewal is None:
            return False
        new_url, new_credential = renewal
        url, is_new_credential = new_url.rstrip("/"), new_credential != self.credential
        self.credential = new_credential
        if url == self.url:
            return is_new_credential
        self.connection.on_report(f"The server was started again at {url}.")
        self.parts, self.url = _parse_address(url), url
        return True

    @property
    def is_renewable(self) -> bool:
        """Whether another credential may be found later."""
        return self._renew is not None

    @asynccontextmanager
    async def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None,
        silence: float | None,
    ) -> AsyncGenerator["Response"]:
        """Send a request and yield its response. The body must be read within this context.

        `silence`: seconds without a byte after which the request fails; None: no limit.
        Raises ServerLost.
        """
        import httpx2

        http = self._http = self._http or self._open_http()
        if self.credential is not None:
            # Arguments and variables may hold bytes that are not UTF-8,
            # which Python keeps as surrogates.
            user_and_password = b64encode(
                ":".join(self.credential).encode("utf-8", "surrogateescape")
            ).decode()
            headers = {**headers, "authorization": f"Basic {user_and_password}"}
        timeout = httpx2.Timeout(None, connect=CLIENT_CONNECT.seconds, read=silence)
        try:
            async with http.stream(
                method, self.url + path, headers=headers, content=body, timeout=timeout
            ) as response:
                yield response
        # No connection was made, so the server can't have seen the request: any
        # request may be sent again.
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise ServerLost(
                f"Nothing answers at {self.url}: {_describe_error(error)}. Start a server there (`codeloop serve`), or "
                "correct the address.",
                f"nothing answers there ({_describe_error(error)})",
                is_unsent=True,
            ) from None
        except httpx2.TimeoutException:
            raise ServerLost(
                f"The server at {self.url} was silent for too long. Check whether it is still running.",
                "it was silent",
            ) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ServerLost(
                f"The connection to {self.url} was lost: {_describe_error(error)}. Check whether the server is still "
                "running.",
                "the server closed it"
                if isinstance(error, httpx2.RemoteProtocolError)
                else _describe_error(error),
            ) from None

    async def read(self, response: "Response") -> bytes:
        """Read the whole body. Raises CodeloopError when it is larger than
        `client.answer` allows.
        """
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > CLIENT_ANSWER.value:
                raise CodeloopError(
                    f"The server at {self.url} sent more than {CLIENT_ANSWER.value} bytes; not read."
                )
        return bytes(body)

    async def close(self) -> None:
        """Drop every connection."""
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    def _open_http(self) -> "AsyncClient":
        import httpx2

        # Without compression: `read` counts the bytes of a response, and a compressed one could
        # unpack to any size. The last header is demanded of a client that asks for a ticket of a
        # terminal; other requests may have it, too.
        headers = {
            "accept": "*/*",
            "accept-encoding": "identity",
            "user-agent": "codeloop",
            "x-opencode-ticket": "1",
        }
        return httpx2.AsyncClient(
            headers=headers,
            # A redirect or a proxy would send the credential to another host than the
            # one that the user named.
            follow_redirects=False,
            trust_env=False,
            verify=load_service_tls_context() if self.parts.scheme == "https" else False,
            # Each prompt holds a connection for as long as its turn takes,
            # so their number has no limit.
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=CLIENT_KEEPALIVE.seconds),
        )


def _parse_address(url: str) -> SplitResult:
    """Split the address of a server into its parts. Raises CodeloopError if it is not one,
    or has a password in it.
    """
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise CodeloopError(
            f"{url} is not the address of a server. Give it as http://HOST:PORT."
        ) from None
    if parts.username is not None or parts.password is not None:
        raise CodeloopError(
            "The address must not hold a password: use --username and --password, or a variable."
        )
    if not is_address or parts.query or parts.fragment:
        raise CodeloopError(f"{url} is not the address of a server. Give it as http://HOST:PORT.")
    return parts


def _describe_error(error: Exception) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__
