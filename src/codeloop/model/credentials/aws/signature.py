"""Signs a request to Amazon by Signature Version 4. Pure."""

import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from msgspec import Struct

from codeloop.net.hosts import format_host_header

# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED_HEADERS = frozenset(
    {
        "accept",
        "user-agent",
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "transfer-encoding",
    }
    | {
        "proxy-authenticate",
        "proxy-authorization",
        "x-amzn-trace-id",
        "traceparent",
        "tracestate",
        "baggage",
    }
)
"""Headers that are not signed, since a proxy may change them, or they are added later."""


class AwsKeys(Struct, frozen=True):
    """An access key with its secret; `session_token` belongs to temporary keys,
    which are valid until `expires_at`.
    """

    access_key: str
    secret_key: str
    session_token: str = ""
    expires_at: float = 0.0
    """Seconds since the epoch; 0: for ever."""

    def __repr__(self) -> str:
        """Return a text without secrets."""
        return f"AwsKeys({self.access_key[:4]}…)"


def make_signature_headers(
    keys: AwsKeys,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    region: str,
    service: str,
    moment: str,
) -> dict[str, str]:
    """Return the headers that authorise a POST of `body` to `url`;
    `moment` is UTC as `YYYYMMDDTHHMMSSZ`.
    """
    parts = urlsplit(url)
    added_headers = {"x-amz-date": moment}
    if keys.session_token:
        added_headers["x-amz-security-token"] = keys.session_token
    signed_headers = {
        "host": format_host_header(parts),
        **{name.lower(): value for name, value in headers.items()},
        **added_headers,
    }
    signed_headers = {
        name: " ".join(value.split())
        for name, value in sorted(signed_headers.items())
        if name not in UNSIGNED_HEADERS
    }
    names = ";".join(signed_headers)
    canonical_request = "\n".join(
        (
            "POST",
            # Encoded once more than it is sent: all services but S3 want that.
            quote(_normalize_path(parts.path), safe="/-_.~"),
            _sort_query(parts.query),
            *(f"{name}:{value}" for name, value in signed_headers.items()),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        )
    )
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    text = "\n".join(
        (ALGORITHM, moment, scope, hashlib.sha256(canonical_request.encode()).hexdigest())
    )
    key = f"AWS4{keys.secret_key}".encode()
    # The key is bound to day, region and service, so that a leaked one is of little use.
    for step in (moment[:8], region, service, "aws4_request"):
        key = hmac.new(key, step.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    authorization = f"{ALGORITHM} Credential={keys.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**added_headers, "authorization": authorization}


def _normalize_path(path: str) -> str:
    """Return a path as the service reads it: without `.`, `..` and slashes in a row."""
    segments: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del segments[-1:]
        elif part not in {"", "."}:
            segments.append(part)
    return f"/{'/'.join(segments)}{'/' if segments and path.endswith('/') else ''}"


def _sort_query(query: str) -> str:
    pairs = [pair.partition("=")[::2] for pair in query.split("&") if pair]
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))
