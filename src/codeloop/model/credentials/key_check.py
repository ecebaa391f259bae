"""Checks a key by requesting the service's list of models, which costs nothing."""

from collections.abc import Mapping
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from codeloop.model.wire.error_patterns import readable
from codeloop.net.http1 import NetworkError
from codeloop.net.offline import check_reach
from codeloop.net.tls import service_tls_context
from codeloop.schema.bounds.tui import SERVER_MODELS
from codeloop.schema.errors import CodeloopError

PATHS = {"openrouter": "/key", "vercel": "/credits"}
"""By provider: what is asked where the list of models is public; else `/models`."""
_REFUSED = frozenset({401, 403})
_TOLD = 400
"""Characters of what a service says."""


class KeyCheck(NamedTuple):
    """The result of a check. `reason`: the service's message, or why it was not asked; never the key."""

    state: Literal["accepted", "refused", "unknown"]
    reason: str = ""


async def check_key(provider_id: str, url: str, headers: Mapping[str, str]) -> KeyCheck:
    """Request a base URL with the key's headers; then without, to see whether the service checks keys."""
    import httpx2

    at = f"{url.rstrip('/')}{PATHS.get(provider_id, '/models')}"
    try:
        check_reach(urlsplit(url).hostname or "")
        async with httpx2.AsyncClient(verify=service_tls_context(), timeout=SERVER_MODELS.seconds) as http:
            answer = await http.get(at, headers=dict(headers))
            message = words_of(answer.text, headers)
            if answer.status_code in _REFUSED or (answer.status_code == 400 and "key" in message.lower()):
                return KeyCheck("refused", f"HTTP {answer.status_code}: {message}")
            if not answer.is_success:
                return KeyCheck("unknown", f"HTTP {answer.status_code}")
            response = await http.get(at)
            return (
                KeyCheck("accepted")
                if not response.is_success
                else KeyCheck("unknown", "it lists its models to everybody")
            )
    except (NetworkError, CodeloopError, httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        return KeyCheck("unknown", str(error)[:_TOLD] or type(error).__name__)


def words_of(body: str, headers: Mapping[str, str]) -> str:
    """Return the text of a refusal, without the key of the request's headers."""
    try:
        payload = msgspec.json.decode(body)
    except msgspec.DecodeError:
        payload = None
    message = readable(body, payload)[:_TOLD]
    for value in headers.values():
        message = message.replace(value, "[hidden]").replace(value.removeprefix("Bearer "), "[hidden]")
    return message
