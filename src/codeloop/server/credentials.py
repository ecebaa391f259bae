"""Reads credentials from requests: passwords in headers and queries, and the tokens of links."""

import base64
import binascii
from collections.abc import Mapping

from starlette.types import Scope

from codeloop.server.browser.pages import SESSION_PATH

Headers = list[tuple[bytes, bytes]]
"""The headers of a request or an answer, as ASGI passes them."""


def list_values(headers: Headers, name: bytes) -> list[str]:
    """Return the values of all headers with this name."""
    return [value.decode("latin-1") for key, value in headers if key == name]


def encode_credential(text: str) -> bytes:
    """Return a credential in the form in which they are compared."""
    return text.encode("utf-8", "surrogateescape")


def read_header_credentials(headers: Headers, username: str) -> list[bytes]:
    """Return the `user:password` of the first authorization header;
    [] if there is none, or one of a link.

    Further headers are ignored, so that one request is one guess.
    """
    credentials: list[bytes] = []
    for header in list_values(headers, b"authorization")[:1]:
        scheme, _, value = header.partition(" ")
        if scheme.lower() == "basic":
            credentials.append(_decode_base64(value.strip()))
        elif scheme.lower() == "bearer":
            credentials.append(encode_credential(username) + b":" + value.strip().encode("latin-1"))
        elif scheme.lower() != "link":
            # An unknown scheme counts as a wrong password, so that it is delayed as well.
            credentials.append(b"")
    return credentials


def read_link_tokens(scope: Scope) -> list[str]:
    """Return the token of the one-time link in a request for a session;
    [] for other requests, which can't use one.
    """
    if scope["type"] != "http" or (scope["method"], scope["path"]) != ("POST", SESSION_PATH):
        return []
    pairs = [value.partition(" ") for value in list_values(scope["headers"], b"authorization")[:1]]
    return [token.strip() for scheme, _, token in pairs if scheme.lower() == "link"]


def read_query_credentials(query: Mapping[str, list[str]]) -> list[bytes]:
    """Return the `user:password` of the first `auth_token` in a query; [] if there is none."""
    # A `+` of base64 that the client did not percent-encode arrives as a space.
    return [_decode_base64(token.replace(" ", "+")) for token in query.get("auth_token", ())[:1]]


def _decode_base64(text: str) -> bytes:
    """Decode base64 of either alphabet, padded or not;
    b"" for anything else, which matches no credential.
    """
    plain = text.translate(str.maketrans("-_", "+/")).rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""
