"""Sign-in of browsers: one-time links, and the signed sessions that they are exchanged for."""

import hmac
import secrets
import time
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie

from msgspec import Struct

from codeloop.schema.bounds.server import BROWSER_LINK, BROWSER_LINKS, BROWSER_SESSION


class BrowserSession(Struct, frozen=True):
    """A browser's session: `cookie` (HttpOnly) and `key`, which the page sends with each request.

    Browsers send a host's cookies to all of its ports,
    so neither the cookie nor the key is enough alone.
    """

    cookie: str
    key: str


class BrowserSessions:
    """Makes links and sessions, and checks them. A session is signed, not stored.

    So, with a password, it outlives a restart of the server. It is valid for the host that it was
    made for, until it expires or the server has another password.
    """

    def __init__(self, password: str | None, port: int) -> None:
        # Browsers send a host's cookies to all of its ports: two servers on
        # one host need two names.
        self.cookie_name = f"codeloop_{port}"
        # Derived from the password, so that a new password ends all sessions.
        # Without one it is random.
        self._secret = sha256(
            b"codeloop browser session\0" + (password or secrets.token_hex()).encode()
        ).digest()
        self._links: dict[str, float] = {}

    def create_link(self) -> str:
        """Return the token of a link, which `use_link` accepts once within `BROWSER_LINK`."""
        now = time.monotonic()
        self._links = {token: expiry for token, expiry in self._links.items() if expiry > now}
        while len(self._links) >= BROWSER_LINKS.value:
            del self._links[next(iter(self._links))]
        token = secrets.token_urlsafe(24)
        self._links[token] = now + BROWSER_LINK.seconds
        return token

    def use_link(self, token: str) -> bool:
        """Return whether a link is valid, and forget it: it can be used only once."""
        return self._links.pop(token, 0.0) > time.monotonic()

    def create_session(self, host: str) -> BrowserSession:
        """Return a session for the server under this host name (as the Host header has it)."""
        expires = int(time.time() + BROWSER_SESSION.seconds)
        claim = f"{secrets.token_urlsafe(12)}.{expires}"
        return BrowserSession(
            f"{claim}.{self._sign('cookie', claim, host)}", self._sign("key", claim, host)
        )

    def is_valid(self, cookies: str, key: str, host: str) -> bool:
        """Return whether the Cookie header and the key of a request belong to
        one session for this host.
        """
        try:
            cookie = SimpleCookie(cookies).get(self.cookie_name)
        except CookieError:
            return False
        claim, _, signature = (cookie.value if cookie else "").rpartition(".")
        expires = claim.rpartition(".")[2]
        # Bounded before `int`, since the signature is not checked yet and Python
        # refuses very long numbers.
        if (
            not (expires.isascii() and expires.isdecimal() and len(expires) < 16)
            or int(expires) < time.time()
        ):
            return False
        is_cookie = hmac.compare_digest(
            signature.encode(), self._sign("cookie", claim, host).encode()
        )
        return is_cookie and hmac.compare_digest(
            key.encode(), self._sign("key", claim, host).encode()
        )

    def _sign(self, use: str, claim: str, host: str) -> str:
        return hmac.new(self._secret, f"{use}|{claim}|{host.lower()}".encode(), sha256).hexdigest()
