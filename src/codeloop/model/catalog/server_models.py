"""Requests the list of models from a server whose address the user has typed."""

from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from codeloop.model.base_url import guess_base_url, parse_origin, redact_url
from codeloop.model.errors import ModelUnavailable
from codeloop.net.errors import NetworkError
from codeloop.net.hosts import find_url_host, is_loopback, require_reachable
from codeloop.net.tls import load_service_tls_context
from codeloop.schema.bounds.tui import SERVER_MODELS
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import DISCOVER_BYTES
from codeloop.schema.wire import DECODE_ERRORS, decode_json

if TYPE_CHECKING:
    import httpx2

_KEY_REFUSED_STATUSES = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class ServerAnswer(Struct, frozen=True):
    """A server's answer: the base URL that answered, and the ids of its models (perhaps none).

    `needs_key`: it refused the request, because there was no key or a wrong one.
    """

    base_url: str
    models: tuple[str, ...] = ()
    needs_key: bool = False


class _ListedModel(Struct):
    id: str


class _ModelList(Struct):
    data: list[_ListedModel]


async def request_server_models(url: str, key: str = "") -> ServerAnswer:
    """Request `<url>/models`; if that is not there, try the base URL that the user probably
    meant (`guess_base_url`).

    Redirects are not followed, since the key is for this address. Raises ModelUnavailable: nothing
    answers there, or `url` is not a base URL.
    """
    import httpx2

    # People type `localhost:8000`; a scheme for other hosts must not be one that
    # sends a key in the clear.
    url = url if "://" in url else f"{_choose_scheme(url)}://{url}"
    # Raises for an invalid or ambiguous URL.
    parse_origin(url)
    try:
        require_reachable(urlsplit(url).hostname or "")
        trust = load_service_tls_context()
    except (NetworkError, CodeloopError) as error:
        raise ModelUnavailable(f"{redact_url(url)} can't be reached: {error}.") from None
    typed_url = redact_url(url).rstrip("/")
    headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    try:
        async with httpx2.AsyncClient(verify=trust, timeout=SERVER_MODELS.seconds) as http:
            for base_url in filter(None, (typed_url, guess_base_url(typed_url))):
                async with http.stream("GET", f"{base_url}/models", headers=headers) as response:
                    if response.status_code in _KEY_REFUSED_STATUSES:
                        return ServerAnswer(base_url, needs_key=True)
                    if response.is_redirect:
                        target = redact_url(response.headers.get("location", ""))
                        raise ModelUnavailable(
                            f"{base_url} redirects to {target}. Enter the address that answers itself."
                        )
                    if (
                        response.is_success
                        and (models := await _read_model_ids(response)) is not None
                    ):
                        return ServerAnswer(base_url, models)
    except (httpx2.ConnectError, httpx2.TimeoutException) as error:
        raise ModelUnavailable(
            f"Nothing answers at {typed_url} ({error or 'too late'}). Is the server running?"
        ) from None
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError) as error:
        raise ModelUnavailable(
            f"{typed_url} can't be reached: {error or type(error).__name__}."
        ) from None
    return ServerAnswer(typed_url)


def _choose_scheme(address: str) -> str:
    # A malformed address is refused later, with the scheme.
    return "http" if is_loopback(find_url_host(f"//{address}")) else "https"


async def _read_model_ids(response: "httpx2.Response") -> tuple[str, ...] | None:
    """Return the ids that an answer lists; None: it is not a list of models."""
    body = bytearray()
    async for data in response.aiter_bytes():
        body += data
        if len(body) > DISCOVER_BYTES.value:
            return None
    try:
        models = decode_json(body, _ModelList).data
    except DECODE_ERRORS:
        return None
    return tuple(dict.fromkeys(model.id for model in models if model.id and model.id.isprintable()))
