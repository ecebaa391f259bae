"""Asks an Azure resource which models are deployed there, and under which names."""

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from codeloop.kit.wildcard import matches
from codeloop.model.catalog.vendors import NOT_FOR_CHAT
from codeloop.model.credentials.key_check import describe_refusal
from codeloop.model.errors import ModelUnavailable
from codeloop.model.origin import origin
from codeloop.net.http1 import NetworkError
from codeloop.net.offline import check_reach
from codeloop.net.tls import service_tls_context
from codeloop.schema.bounds.tui import SERVER_MODELS
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import DISCOVER_BYTES
from codeloop.schema.wire import JSON

PATH = "/openai/deployments?api-version=2023-03-15-preview"
"""Only this old version lists deployments; later ones have the list at the management API, which takes other keys."""
_NOT_FOR_CHAT = (*NOT_FOR_CHAT, "dall-e*", "*image*", "sora*", "*realtime*", "*audio*", "*transcribe*", "flux*")
_UNAUTHORIZED = 401
_MESSAGE_LENGTH = 300
"""Characters of an error message that are shown."""


class Deployment(Struct, frozen=True):
    """A deployment by its name, and the model that it serves."""

    name: str
    model: str


class KeyRefused(ModelUnavailable):
    """The resource does not accept the key."""


class _Row(Struct):
    id: str
    model: str = ""
    status: str = "succeeded"


class _Rows(Struct):
    data: list[_Row]


async def list_deployments(url: str, headers: Mapping[str, str]) -> list[Deployment]:
    """Return the deployments at the resource of a base URL. `headers`: with the key.

    Raises KeyRefused, and ModelUnavailable where the resource lists nothing; its message says why.
    """
    import httpx2

    try:
        check_reach(urlsplit(url).hostname or "")
        async with httpx2.AsyncClient(verify=service_tls_context(), timeout=SERVER_MODELS.seconds) as http:
            answer = await http.get(f"{origin(url)}{PATH}", headers=dict(headers))
    except (NetworkError, CodeloopError, httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        raise ModelUnavailable(str(error)[:_MESSAGE_LENGTH] or type(error).__name__) from None
    if not answer.is_success:
        message = f"HTTP {answer.status_code}: {describe_refusal(answer.text, headers)}"
        raise KeyRefused(message) if answer.status_code == _UNAUTHORIZED else ModelUnavailable(message)
    try:
        rows = msgspec.json.decode(answer.content[: DISCOVER_BYTES.value], type=_Rows).data
    except msgspec.MsgspecError:
        raise ModelUnavailable("its answer is no list of deployments") from None
    return [
        Deployment(row.id, row.model or row.id)
        for row in rows
        if row.status == "succeeded" and row.id.isprintable() and not _is_other_kind(row.model or row.id)
    ]


def make_entries(deployments: Iterable[Deployment]) -> dict[str, JSON]:
    """Return the entries of `provider.azure.models`: by model, further deployments of the same model by their name."""
    entries: dict[str, JSON] = {}
    for each in sorted(deployments, key=lambda each: each.name != each.model):
        if each.model in entries:
            entries[each.name] = {}
        else:
            entries[each.model] = {} if each.name == each.model else {"id": each.name}
    return entries


def _is_other_kind(model: str) -> bool:
    return any(matches(model.lower(), pattern) for pattern in _NOT_FOR_CHAT)
