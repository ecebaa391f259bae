"""Asks the server at an address that the user has typed for its models."""

from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from codeloop.model.errors import ModelUnavailable
from codeloop.model.origin import displayable_url, likely_base, origin
from codeloop.net.http1 import NetworkError
from codeloop.net.offline import check_reach
from codeloop.net.origin import is_loopback
from codeloop.net.tls import service_tls_context
from codeloop.schema.bounds.tui import SERVER_MODELS
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import DISCOVER_BYTES

if TYPE_CHECKING:
    import httpx2

_NEEDS_KEY = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class ServerAnswer(Struct, frozen=True):
    """A server's answer: the base URL that answered, the ids of its models (perhaps none), whether it needs a key.

    `needs_key`: it refused the request, for want of a key or because the key is wrong.
    """

    base_url: str
    models: tuple[str, ...] = ()
    needs_key: bool = False


class _ListedModel(Struct):
    id: str


class _Models(Struct):
    data: list[_ListedModel]


async def ask_models(url: str, key: str = "") -> ServerAnswer:
    """Request `<url>/models`; if that is not there, try the base URL that the user probably meant (`likely_base`).

    Redirects are not followed, since the key is for this address. Raises ModelUnavailable: nothing answers there, or
    `url` is no base URL.
    """
    import httpx2

    url = url if "://" in url else f"{_scheme(url)}://{url}"
    origin(url)
    try:
        check_reach(urlsplit(url).hostname or "")
        trust = service_tls_context()
    except (NetworkError, CodeloopError) as error:
        raise ModelUnavailable(f"{displayable_url(url)} can't be reached: {error}.") from None
    base = displayable_url(url).rstrip("/")
    headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    try:
        async with httpx2.AsyncClient(verify=trust, timeout=SERVER_MODELS.seconds) as http:
            for at in filter(None, (base, likely_base(base))):
                async with http.stream("GET", f"{at}/models", headers=headers) as response:
                    if response.status_code in _NEEDS_KEY:
                        return ServerAnswer(at, needs_key=True)
                    if response.is_redirect:
                        there = displayable_url(response.headers.get("location", ""))
                        raise ModelUnavailable(f"{at} redirects to {there}. Enter the address that answers itself.")
                    if response.is_success and (models := await _read(response)) is not None:
                        return ServerAnswer(at, models)
    except (httpx2.ConnectError, httpx2.TimeoutException) as error:
        raise ModelUnavailable(f"Nothing answers at {base} ({error or 'too late'}). Is the server running?") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError) as error:
        raise ModelUnavailable(f"{base} can't be reached: {error or type(error).__name__}.") from None
    return ServerAnswer(base)


def _scheme(address: str) -> str:
    return "http" if is_loopback(urlsplit(f"//{address}").hostname or "") else "https"


async def _read(response: "httpx2.Response") -> tuple[str, ...] | None:
    """Return the ids that an answer lists; None: it is no list of models."""
    body = bytearray()
    async for data in response.aiter_bytes():
        body += data
        if len(body) > DISCOVER_BYTES.value:
            return None
    try:
        models = msgspec.json.decode(body, type=_Models).data
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return tuple(dict.fromkeys(model.id for model in models if model.id and model.id.isprintable()))
