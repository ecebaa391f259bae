"""Asks an Azure resource which models are deployed there, and under which names."""

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from codeloop.kit.wildcard import matches
from codeloop.model.catalog.vendors import NOT_FOR_CHAT
from codeloop.model.credentials.key_check import words_of
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
"""The list has this version alone; later ones have it at the management API, which takes no key of a resource."""
_OTHER_ENDS = (*NOT_FOR_CHAT, "dall-e*", "*image*", "sora*", "*realtime*", "*audio*", "*transcribe*", "flux*")
_REFUSED = 401
_SHOWN = 300
"""Characters of what a service says."""


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
        raise ModelUnavailable(str(error)[:_SHOWN] or type(error).__name__) from None
    if not answer.is_success:
        said = f"HTTP {answer.status_code}: {words_of(answer.text, headers)}"
        raise KeyRefused(said) if answer.status_code == _REFUSED else ModelUnavailable(said)
    try:
        rows = msgspec.json.decode(answer.content[: DISCOVER_BYTES.value], type=_Rows).data
    except msgspec.MsgspecError:
        raise ModelUnavailable("its answer is no list of deployments") from None
    return [
        Deployment(row.id, row.model or row.id)
        for row in rows
        if row.status == "succeeded" and row.id.isprintable() and not _is_for_other_ends(row.model or row.id)
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


def _is_for_other_ends(model: str) -> bool:
    return any(matches(model.lower(), pattern) for pattern in _OTHER_ENDS)
