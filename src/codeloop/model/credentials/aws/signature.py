"""Amazon's Signature Version 4 of a request. Pure."""

import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from msgspec import Struct

from codeloop.net.origin import host_header

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED_HEADERS = frozenset(
    {"accept", "user-agent", "connection", "keep-alive", "te", "trailer", "upgrade", "expect", "transfer-encoding"}
    | {"proxy-authenticate", "proxy-authorization", "x-amzn-trace-id", "traceparent", "tracestate", "baggage"}
)
"""Headers that a proxy may change, or that are added later."""


class AwsKeys(Struct, frozen=True):
    """An access key with its secret; `token` comes with temporary ones, which hold until `expires` (0: for ever)."""

    access: str
    secret: str
    token: str = ""
    expires: float = 0.0
    """Seconds since the epoch."""

    def __repr__(self) -> str:
        """Return the text that may be shown."""
        return f"AwsKeys({self.access[:4]}…)"


def sign(
    keys: AwsKeys, url: str, headers: Mapping[str, str], body: bytes, *, region: str, service: str, moment: str
) -> dict[str, str]:
    """Return the headers that authorise a POST of `body` to `url`; `moment` is UTC as `YYYYMMDDTHHMMSSZ`."""
    parts = urlsplit(url)
    own_headers = {"x-amz-date": moment, **({"x-amz-security-token": keys.token} if keys.token else {})}
    signed_headers = {
        "host": host_header(parts),
        **{name.lower(): value for name, value in headers.items()},
        **own_headers,
    }
    signed_headers = {
        name: " ".join(value.split()) for name, value in sorted(signed_headers.items()) if name not in UNSIGNED_HEADERS
    }
    names = ";".join(signed_headers)
    canonical = "\n".join(
        (
            "POST",
            quote(_normal_path(parts.path), safe="/-_.~"),  # encoded once more than it is sent
            _query(parts.query),
            *(f"{name}:{value}" for name, value in signed_headers.items()),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        )
    )
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    text = "\n".join((ALGORITHM, moment, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{keys.secret}".encode()
    for step in (moment[:8], region, service, "aws4_request"):
        key = hmac.new(key, step.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    authorization = f"{ALGORITHM} Credential={keys.access}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**own_headers, "authorization": authorization}


def _normal_path(path: str) -> str:
    """Return a path as the service reads it: without `.`, `..` and slashes in a row."""
    segments: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del segments[-1:]
        elif part not in {"", "."}:
            segments.append(part)
    return f"/{'/'.join(segments)}{'/' if segments and path.endswith('/') else ''}"


def _query(query: str) -> str:
    pairs = [pair.partition("=")[::2] for pair in query.split("&") if pair]
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))
