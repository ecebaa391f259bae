"""Base URLs of services: parses their origin, to which keys are bound, hides secrets,
and guesses at wrong ones.
"""

import re
from urllib.parse import urlsplit

from codeloop.model.errors import ModelUnavailable
from codeloop.net.hosts import DEFAULT_PORTS, add_brackets

# A host name or IPv4 address, or an IPv6 address.
_HOST_PATTERN = r"[a-z0-9_.-]+|[0-9a-f:.]+"
# `/v1/chat/completions`, `/v1/messages` and so on: the ends of addresses in
# services' documentation.
_REQUEST_PATH_PATTERN = r"(?:/(?:chat|completions|messages|responses|models))+$"
# `/v1/v1`: of a version that was added to an address that had one.
_REPEATED_VERSION_PATTERN = r"(/v\d\w*)(?:/v\d\w*)+"
_VERSION_PATTERN = r"/v\d"


def parse_origin(url: str) -> str:
    """Return `scheme://host[:port]` of an HTTP(S) URL: lower case, without the scheme's own port.

    Raises `ModelUnavailable` for ambiguous URLs: user names, backslashes, blanks, control
    characters, letters outside ASCII.
    """
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme.lower(), parts.hostname, parts.port
    except ValueError:
        raise _make_invalid_error(url) from None
    # Programs read such URLs differently: a key could go to another host than
    # the one that was checked.
    plain = url.isascii() and url.isprintable() and not re.search(r"[\s\\]", url)
    if (
        not plain
        or scheme not in DEFAULT_PORTS
        or not host
        or "@" in parts.netloc
        or not re.fullmatch(_HOST_PATTERN, host)
    ):
        raise _make_invalid_error(url)
    shown_host = add_brackets(host)
    return (
        f"{scheme}://{shown_host}"
        if port in {None, DEFAULT_PORTS[scheme]}
        else f"{scheme}://{shown_host}:{port}"
    )


def redact_url(url: str) -> str:
    """Return a URL without user, password, query and fragment, for messages and logs."""
    # Works for malformed URLs too, which `urlsplit` refuses: these are shown in errors most often.
    scheme, slashes, address = re.split(r"[?#]", url, maxsplit=1)[0].partition("://")
    host, slash, path = address.partition("/")
    return f"{scheme}{slashes}{host.rpartition('@')[2]}{slash}{path}"


def guess_base_url(url: str) -> str | None:
    """Guess the base URL that the user meant, if nothing answers at `url`; None: no guess.

    Users paste a request's whole address, repeat a part,
    or omit the version that most services need.
    """
    scheme, slashes, address = url.partition("://")
    host, _, path = address.partition("/")
    path = re.sub(_REQUEST_PATH_PATTERN, "", f"/{path}".rstrip("/"))
    path = re.sub(_REPEATED_VERSION_PATTERN, r"\1", path)
    # Most services have their models below a version.
    if not re.search(_VERSION_PATTERN, path):
        path += "/v1"
    better = f"{scheme}{slashes}{host}{path}"
    return better if better != url.rstrip("/") else None


def _make_invalid_error(url: str) -> ModelUnavailable:
    # Escaped: control characters could change the terminal,
    # and letters that look alike would not be seen.
    shown_url = url.encode("unicode_escape").decode()
    if "@" in shown_url:
        shown_url = "***@" + shown_url.rpartition("@")[2]
    # A query may hold a key.
    shown_url = re.split(r"[?#]", shown_url, maxsplit=1)[0]
    return ModelUnavailable(
        f"`{shown_url[:200]}` is not a valid base URL. Write it like https://host/v1, without a user name."
    )
