"""The guard before every route: checks the Host,
Origin and credential of a request before its body is read.

`server.py` wraps the application in it. docs/security.md has the attacks that it is for.
"""

import hmac
import ipaddress
import re
import socket
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from codeloop.net.hosts import add_brackets, is_loopback
from codeloop.schema.errors import CodeloopError
from codeloop.server.browser.sessions import BrowserSessions
from codeloop.server.credentials import (
    Headers,
    encode_credential,
    list_values,
    read_header_credentials,
    read_link_tokens,
    read_query_credentials,
)
from codeloop.server.http_protocol import ADMIT_EXTENSION
from codeloop.server.password_attempts import PasswordAttempts
from codeloop.server.refusals import RequestRefused, send_refusal

ALLOWED_METHODS = "GET, HEAD, PUT, PATCH, POST, DELETE"
PREFLIGHT_SECONDS = "86400"
"""The seconds for which a browser may reuse the answer to a preflight request: a day."""
RETRY_SECONDS = "2"
"""The seconds after which a client with too many wrong passwords may try again: the longest delay,
`SERVER_DELAY`.
"""
BASIC_CHALLENGE = 'Basic realm="Secure Area"'
SESSION_KEY_HEADER = b"x-codeloop-key"
"""The request header that holds the key of a browser's session."""
CSP_HEADER = b"content-security-policy"
# An answer that a browser is made to open as a page (an error,
# a file's text) must not load or run anything.
_DENY_ALL_CSP = (CSP_HEADER, b"default-src 'none'; frame-ancestors 'none'")
TICKET_ONLY_KEY = "ticketed"
"""Key of `scope["state"]`: True when a WebSocket to a terminal has a ticket
instead of a credential.

The route then must check the ticket, since only the project knows its tickets,
and answer 403 if it is not valid.
No other route accepts a ticket.
"""

# A Host header, such as `localhost:4096` or `[::1]`: its name and its port.
_AUTHORITY_PATTERN = r"(\[[0-9a-f:.]+\]|[^\s:/@\[\]?#\\]+)(?::(\d{1,5}))?"
_CONNECT_PATH = r"(?:/api)?/pty/[^/]+/connect"
# What a preflight request asks for, such as `content-type, authorization`.
_HEADER_NAMES_PATTERN = rb"[\w!#$%&'*+.^`|~, -]{1,4096}"
_DEFAULT_PORTS = {"http": 80, "https": 443}


class AccessPolicy(Struct, frozen=True, kw_only=True):
    """Who may send requests.

    `names`: the accepted host names of the Host header. `origins`: origins of other sites whose
    pages may send requests. `accepts_any_ip`: the Host header may be any IP address, for a server
    that other machines reach. `password` None: no credential is needed. `pages`: paths that need no
    credential, the files of the browser UI.
    """

    port: int
    names: frozenset[str]
    accepts_any_ip: bool = False
    origins: frozenset[str] = frozenset()
    username: str = "opencode"
    password: str | None = None
    pages: frozenset[str] = frozenset()


def list_host_names(host: str, *, is_foreign: bool) -> frozenset[str]:
    """Return the names that the Host header may have, for a server that listens on `host`.

    `is_foreign`: other machines may reach it.
    """
    names = {"localhost", "127.0.0.1", "[::1]", add_brackets(host).lower()}
    return frozenset(names | {socket.gethostname().lower()} if is_foreign else names)


def parse_origin(text: str) -> str:
    """Return an origin as browsers write it. Raises CodeloopError for anything else,
    `*` and `null` too.
    """
    try:
        parts = urlsplit(text.strip().lower())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    host = parts.hostname or ""
    is_origin = (
        bool(parts.scheme and host)
        and parts.path in {"", "/"}
        and not (parts.query or parts.fragment)
    )
    if not is_origin or "*" in text or parts.username is not None:
        raise CodeloopError(
            f"{text!r} is not an origin. Write it as scheme://host:port, such as http://localhost:3000."
        )
    host_text = add_brackets(host)
    # Browsers leave the default port out of the Origin header, with which this text is compared.
    is_default = port is None or _DEFAULT_PORTS.get(parts.scheme) == port
    return f"{parts.scheme}://{host_text}" if is_default else f"{parts.scheme}://{host_text}:{port}"


class Guard:
    """Wraps the site: checks Host, Origin and credential, in this order,
    of every request and WebSocket handshake.
    """

    def __init__(self, site: ASGIApp, policy: AccessPolicy, browsers: BrowserSessions) -> None:
        self._site = site
        self._policy = policy
        self._browsers = browsers
        self._attempts = PasswordAttempts()
        self._credential = (
            encode_credential(f"{policy.username}:{policy.password}")
            if policy.password is not None
            else None
        )

    def end_delays(self) -> None:
        """Answer the requests that are being delayed at once,
        so that they don't hold up a shutdown.
        """
        self._attempts.end_delays()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is refused, or pass it on."""
        headers: Headers = scope["headers"]
        send = _send_with_csp(send)
        try:
            self._check_host(headers)
            origin = self._check_origin(headers)
        except RequestRefused as refusal:
            await send_refusal(scope, send, refusal)
            return
        if origin is not None and origin in self._policy.origins:
            send = _send_with_allowed_origin(origin, send)
        # Before the credential is checked: browsers send preflight requests without one.
        if origin is not None and scope["type"] == "http" and scope["method"] == "OPTIONS":
            await _answer_preflight(headers, send)
            return
        try:
            await self._check_credential(scope)
        except RequestRefused as refusal:
            await send_refusal(scope, send, refusal)
            return
        if ADMIT_EXTENSION in scope.get("extensions", {}):
            scope["extensions"][ADMIT_EXTENSION]["call"]()
        await self._site(scope, receive, send)

    def _check_host(self, headers: Headers) -> None:
        """Check the Host header, against DNS rebinding.

        A web page can make its own host name resolve to this server,
        but its browser still sends that name.
        """
        hosts = list_values(headers, b"host")
        if len(hosts) != 1:
            raise RequestRefused(
                HTTPStatus.MISDIRECTED_REQUEST,
                f"{len(hosts)} Host headers",
                "One Host header is needed.",
            )
        parts = re.fullmatch(_AUTHORITY_PATTERN, hosts[0].lower())
        name, port = parts.groups() if parts else ("", None)
        is_known = name in self._policy.names or (
            self._policy.accepts_any_ip and _is_ip_address(name)
        )
        if not is_known or (port is not None and int(port) != self._policy.port):
            names = ", ".join(sorted(self._policy.names))
            raise RequestRefused(
                HTTPStatus.MISDIRECTED_REQUEST,
                f"for the host {hosts[0]}",
                f"This server is not {hosts[0]}. Ask it as one of {names}, port {self._policy.port}.",
            )

    def _check_origin(self, headers: Headers) -> str | None:
        """Return the origin of the web page that sends the request; None: no page does.

        Raises RequestRefused for pages of other sites.
        """
        origins = list_values(headers, b"origin")
        if not origins:
            if _is_cross_site(headers):
                raise RequestRefused(
                    HTTPStatus.FORBIDDEN,
                    "for another site's page",
                    "Pages of other sites can't send requests here.",
                )
            return None
        # `_check_host` made sure that there is exactly one.
        (host,) = list_values(headers, b"host")
        origin = origins[0].lower()
        if len(origins) == 1 and (
            _is_same_origin(origin, host.lower()) or origin in self._policy.origins
        ):
            return origin
        raise RequestRefused(
            HTTPStatus.FORBIDDEN,
            f"from the page {origins[0]}",
            f"Pages of {origins[0]} can't send requests here. `codeloop serve --cors ORIGIN` lets them.",
        )

    async def _check_credential(self, scope: Scope) -> None:
        """Check the password, session or link of a request; a ticket is left to its route.
        Raises RequestRefused.

        The answer to a wrong one is delayed, so that guessing takes long.
        """
        if self._credential is None or self._is_page(scope) or self._is_signed_in(scope["headers"]):
            return
        credential = self._credential
        query = parse_qs(scope["query_string"].decode("latin-1"))
        credentials = [
            *read_header_credentials(scope["headers"], self._policy.username),
            *read_query_credentials(query),
        ]
        links = read_link_tokens(scope)
        address = str((scope.get("client") or ("",))[0])
        # Guesses must not run in parallel, so they are refused before they are compared. Not on
        # loopback, where all users of the machine share one address and could lock the owner out.
        if (
            (credentials or links)
            and not is_loopback(address)
            and self._attempts.has_too_many_delayed(address)
        ):
            raise _make_attempts_refusal()
        matches = [hmac.compare_digest(each, credential) for each in credentials]
        if any(matches) or any(map(self._browsers.use_link, links)):
            return
        credentials = [*credentials, *map(encode_credential, links)]
        if (
            not credentials
            and scope["type"] == "websocket"
            and "ticket" in query
            and re.fullmatch(_CONNECT_PATH, scope["path"])
        ):
            scope.setdefault("state", {})[TICKET_ONLY_KEY] = True
            return
        if credentials and not await self._attempts.delay_answer(address):
            raise _make_attempts_refusal()
        why = "with a wrong credential" if credentials else "without a credential"
        # Our own page shows its own form; after a challenge the browser would open
        # its dialog at each request.
        challenge = (
            {}
            if list_values(scope["headers"], SESSION_KEY_HEADER)
            else {"www_authenticate": BASIC_CHALLENGE}
        )
        raise RequestRefused(HTTPStatus.UNAUTHORIZED, why, **challenge)

    def _is_page(self, scope: Scope) -> bool:
        """Return whether a file of the browser UI is requested; those hold no private data."""
        return (
            scope["type"] == "http"
            and scope["method"] in {"GET", "HEAD"}
            and scope["path"] in self._policy.pages
        )

    def _is_signed_in(self, headers: Headers) -> bool:
        """Return whether the request comes from our own page in a browser that has a session."""
        keys, (host,) = list_values(headers, SESSION_KEY_HEADER), list_values(headers, b"host")
        # The cookie alone proves little: browsers send it with requests of pages on other
        # ports of this host, too.
        is_own = all(
            _is_same_origin(origin.lower(), host.lower())
            for origin in list_values(headers, b"origin")
        )
        return (
            len(keys) == 1
            and is_own
            and self._browsers.is_valid("; ".join(list_values(headers, b"cookie")), keys[0], host)
        )


def _make_attempts_refusal() -> RequestRefused:
    message = "Too many wrong passwords. Wait, then ask again with the right one."
    return RequestRefused(
        HTTPStatus.TOO_MANY_REQUESTS,
        "after too many wrong credentials",
        message,
        retry_after=RETRY_SECONDS,
    )


def _is_ip_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _is_same_origin(origin: str, host: str) -> bool:
    """Return whether an origin is that of the host, both lower-case;
    either may omit the default port, 80.
    """
    return origin.removesuffix(":80") == "http://" + host.removesuffix(":80")


def _is_cross_site(headers: Headers) -> bool:
    """Return whether a page of another site sends the request, by the Sec-Fetch headers.

    Browsers send no Origin header with requests for images, frames and scripts.
    """
    # A link on another site may open our page. Pages on other ports of one host are
    # "same-site" to a browser.
    is_navigation = list_values(headers, b"sec-fetch-mode") == ["navigate"]
    return (
        bool(set(list_values(headers, b"sec-fetch-site")) & {"cross-site", "same-site"})
        and not is_navigation
    )


async def _answer_preflight(headers: Headers, send: Send) -> None:
    """Answer a CORS preflight request."""
    answer: Headers = [
        (b"access-control-allow-methods", ALLOWED_METHODS.encode()),
        (b"access-control-max-age", PREFLIGHT_SECONDS.encode()),
    ]
    requests = [value for name, value in headers if name == b"access-control-request-headers"]
    if len(requests) == 1 and re.fullmatch(_HEADER_NAMES_PATTERN, requests[0]):
        answer.append((b"access-control-allow-headers", requests[0]))
    await send({"type": "http.response.start", "status": 204, "headers": answer})
    await send({"type": "http.response.body", "body": b""})


def _send_with_csp(send: Send) -> Send:
    """Wrap `send` so that each answer without a content security policy gets
    one that allows nothing.
    """

    async def send_restricted(message: Message) -> None:
        if message["type"] in {"http.response.start", "websocket.http.response.start"}:
            headers: Headers = [*message.get("headers", ())]
            if all(name.lower() != CSP_HEADER for name, _ in headers):
                message = {**message, "headers": [*headers, _DENY_ALL_CSP]}
        await send(message)

    return send_restricted


def _send_with_allowed_origin(origin: str, send: Send) -> Send:
    """Wrap `send` so that pages of `origin` may read the answers."""

    async def send_allowed(message: Message) -> None:
        if message["type"] in {"http.response.start", "websocket.http.response.start"}:
            header = (b"access-control-allow-origin", origin.encode("latin-1"))
            message = {**message, "headers": [*message.get("headers", ()), header]}
        await send(message)

    return send_allowed
