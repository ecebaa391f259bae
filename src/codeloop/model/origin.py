"""Base URLs: their origins, to which keys are bound; how they may be shown; what a mistyped one probably means."""

import re
from urllib.parse import urlsplit

from codeloop.model.errors import ModelUnavailable
from codeloop.net.origin import add_brackets

_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9_.-]+|[0-9a-f:.]+")
_REQUEST_PATH = re.compile(r"(?:/(?:chat|completions|messages|responses|models))+$")
_REPEATED_VERSION = re.compile(r"(/v\d\w*)(?:/v\d\w*)+")
_VERSION = re.compile(r"/v\d")


def origin(url: str) -> str:
    """Return `scheme://host[:port]` of an HTTP(S) URL: lower case, without the scheme's own port.

    Raises `ModelUnavailable` for ambiguous URLs: user names, backslashes, blanks, control characters, letters outside
    ASCII.
    """
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme.lower(), parts.hostname, parts.port
    except ValueError:
        raise _invalid(url) from None
    # Programs read such URLs differently: a key could go to another host than the one that was checked.
    plain = url.isascii() and url.isprintable() and not re.search(r"[\s\\]", url)
    if not plain or scheme not in _PORTS or not host or "@" in parts.netloc or not _HOST.fullmatch(host):
        raise _invalid(url)
    shown_host = add_brackets(host)
    return f"{scheme}://{shown_host}" if port in {None, _PORTS[scheme]} else f"{scheme}://{shown_host}:{port}"


def displayable_url(url: str) -> str:
    """Return a URL without user, password, query and fragment, so that it may be shown."""
    scheme, slashes, address = re.split(r"[?#]", url, maxsplit=1)[0].partition("://")
    host, slash, path = address.partition("/")
    return f"{scheme}{slashes}{host.rpartition('@')[2]}{slash}{path}"


def likely_base(url: str) -> str | None:
    """Guess the intended base URL where `url` has no models; None: no guess.

    Users paste a request's whole address, repeat a part, or omit the version that most services need.
    """
    scheme, slashes, address = url.partition("://")
    host, _, path = address.partition("/")
    path = _REQUEST_PATH.sub("", f"/{path}".rstrip("/"))
    path = _REPEATED_VERSION.sub(r"\1", path)
    # Most services have their models below a version.
    if not _VERSION.search(path):
        path += "/v1"
    better = f"{scheme}{slashes}{host}{path}"
    return better if better != url.rstrip("/") else None


def _invalid(url: str) -> ModelUnavailable:
    shown_url = url.encode("unicode_escape").decode()
    if "@" in shown_url:
        shown_url = "***@" + shown_url.rpartition("@")[2]
    shown_url = re.split(r"[?#]", shown_url, maxsplit=1)[0]  # a query may hold a key
    return ModelUnavailable(
        f"`{shown_url[:200]}` is not a valid base URL. Write it like https://host/v1, without a user name."
    )
