"""Lists the models that are deployed at an Azure resource,
for `codeloop auth login azure` and /connect.

Azure serves a model by the name of its deployment, which the user has chosen.
"""

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from codeloop.kit.wildcard import matches
from codeloop.model.base_url import parse_origin
from codeloop.model.catalog.vendors import NON_CHAT_MODELS
from codeloop.model.credentials.key_check import describe_refusal
from codeloop.model.errors import ModelUnavailable
from codeloop.net.errors import NetworkError
from codeloop.net.hosts import require_reachable
from codeloop.net.tls import load_service_tls_context
from codeloop.schema.bounds.tui import SERVER_MODELS
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import DISCOVER_BYTES
from codeloop.schema.wire import DECODE_ERRORS, JSON, decode_json

DEPLOYMENTS_PATH = "/openai/deployments?api-version=2023-03-15-preview"
"""Only this old version of the API lists deployments;
since then the management API does, which needs another key.
"""
# The list has deployments of every kind; the names of their models tell apart those that
# can't hold a conversation.
_UNLISTED_MODELS = (
    *NON_CHAT_MODELS,
    "dall-e*",
    "*image*",
    "sora*",
    "*realtime*",
    "*audio*",
    "*transcribe*",
    "flux*",
)
_UNAUTHORIZED_STATUS = 401
_MAX_MESSAGE_LENGTH = 300
"""Characters of an error message that are shown."""


class Deployment(Struct, frozen=True):
    """A deployment by its name, and the model that it serves."""

    name: str
    model: str


class KeyRefused(ModelUnavailable):
    """The resource does not accept the key."""


class _DeploymentRow(Struct):
    id: str
    model: str = ""
    status: str = "succeeded"


class _DeploymentList(Struct):
    data: list[_DeploymentRow]


async def list_deployments(url: str, headers: Mapping[str, str]) -> list[Deployment]:
    """Return the deployments at the resource of a base URL. `headers`: with the key.

    Raises KeyRefused, and ModelUnavailable where the resource lists nothing; its message says why.
    """
    import httpx2

    try:
        require_reachable(urlsplit(url).hostname or "")
        async with httpx2.AsyncClient(
            verify=load_service_tls_context(), timeout=SERVER_MODELS.seconds
        ) as http:
            answer = await http.get(f"{parse_origin(url)}{DEPLOYMENTS_PATH}", headers=dict(headers))
    except (
        NetworkError,
        CodeloopError,
        httpx2.HTTPError,
        httpx2.InvalidURL,
        OSError,
        ValueError,
    ) as error:
        raise ModelUnavailable(str(error)[:_MAX_MESSAGE_LENGTH] or type(error).__name__) from None
    if not answer.is_success:
        message = f"HTTP {answer.status_code}: {describe_refusal(answer.text, headers)}"
        raise (
            KeyRefused(message)
            if answer.status_code == _UNAUTHORIZED_STATUS
            else ModelUnavailable(message)
        )
    try:
        rows = decode_json(answer.content[: DISCOVER_BYTES.value], _DeploymentList).data
    except DECODE_ERRORS:
        raise ModelUnavailable("its answer is not a list of deployments") from None
    return [
        Deployment(row.id, row.model or row.id)
        for row in rows
        if row.status == "succeeded"
        and row.id.isprintable()
        and not _is_non_chat_model(row.model or row.id)
    ]


def make_model_entries(deployments: Iterable[Deployment]) -> dict[str, JSON]:
    """Return the entries of `provider.azure.models`: by model,
    further deployments of the same model by their name.
    """
    entries: dict[str, JSON] = {}
    # Deployments that are named like their model come first, so that they get its name.
    for each in sorted(deployments, key=lambda each: each.name != each.model):
        if each.model in entries:
            entries[each.name] = {}
        else:
            entries[each.model] = {} if each.name == each.model else {"id": each.name}
    return entries


def _is_non_chat_model(model: str) -> bool:
    return any(matches(model.lower(), pattern) for pattern in _UNLISTED_MODELS)
