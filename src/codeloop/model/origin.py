"""Where a key may go: the origin of a URL."""

import re
from urllib.parse import urlsplit

from codeloop.model.unavailable import ModelUnavailable

_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9_.-]+|[0-9a-f:.]+")
_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")


def origin(url: str) -> str:
    """Give `scheme://host[:port]` of an HTTP(S) URL: lower case, without the scheme's own port.

    Raises `ModelUnavailable` for anything that two readers could take for different hosts: user names, backslashes,
    blanks, control characters, letters outside ASCII.
    """
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme.lower(), parts.hostname, parts.port
    except ValueError:
        raise _bad(url) from None
    plain = url.isascii() and url.isprintable() and not re.search(r"[\s\\]", url)
    if not plain or scheme not in _PORTS or not host or "@" in parts.netloc or not _HOST.fullmatch(host):
        raise _bad(url)
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}" if port in {None, _PORTS[scheme]} else f"{scheme}://{shown}:{port}"


def is_loopback(url: str) -> bool:
    """Tell whether the URL's host is this machine by its name or address."""
    return _LOOPBACK.fullmatch(urlsplit(url).hostname or "") is not None


def _bad(url: str) -> ModelUnavailable:
    shown = url.encode("unicode_escape").decode()
    if "@" in shown:
        shown = "***@" + shown.rpartition("@")[2]
    return ModelUnavailable(
        f"`{shown[:200]}` is no base URL that a key may go to. Write it like https://host/v1, without a user name."
    )
