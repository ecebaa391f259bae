"""Checks a key with a free request, mostly for the service's list of models,
when the user stores it.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from codeloop.model.wire.error_patterns import extract_message
from codeloop.net.client import join_url
from codeloop.net.errors import NetworkError
from codeloop.net.hosts import require_reachable
from codeloop.net.tls import load_service_tls_context
from codeloop.schema.bounds.tui import SERVER_MODELS
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import decode_json

KEY_CHECK_PATHS = {"openrouter": "/key", "vercel": "/credits"}
"""Other paths than `/models`, by provider, for services whose list of models needs no key."""
_REFUSAL_STATUSES = frozenset({401, 403})
_MAX_MESSAGE_LENGTH = 400
"""Characters of a service's message that are shown."""


class KeyCheck(NamedTuple):
    """The result of a check. `reason`: the service's message, or why the state is unknown;
    never the key.
    """

    state: Literal["accepted", "refused", "unknown"]
    reason: str = ""


async def check_key(provider_id: str, url: str, headers: Mapping[str, str]) -> KeyCheck:
    """Send a request with the key's headers, then one without,
    to see whether the service checks keys at all.
    """
    import httpx2

    check_url = join_url(url, KEY_CHECK_PATHS.get(provider_id, "/models"))
    try:
        require_reachable(urlsplit(url).hostname or "")
        async with httpx2.AsyncClient(
            verify=load_service_tls_context(), timeout=SERVER_MODELS.seconds
        ) as http:
            answer = await http.get(check_url, headers=dict(headers))
            message = describe_refusal(answer.text, headers)
            # Google answers 400 to a wrong key.
            if answer.status_code in _REFUSAL_STATUSES or (
                answer.status_code == 400 and "key" in message.lower()
            ):
                return KeyCheck("refused", f"HTTP {answer.status_code}: {message}")
            if not answer.is_success:
                return KeyCheck("unknown", f"HTTP {answer.status_code}")
            # A service that lists its models without a key has not looked at the key.
            open_answer = await http.get(check_url)
            if open_answer.is_success:
                return KeyCheck("unknown", "it lists its models to everybody")
            return KeyCheck("accepted")
    except (
        NetworkError,
        CodeloopError,
        httpx2.HTTPError,
        httpx2.InvalidURL,
        OSError,
        ValueError,
    ) as error:
        return KeyCheck("unknown", str(error)[:_MAX_MESSAGE_LENGTH] or type(error).__name__)


def describe_refusal(body: str, headers: Mapping[str, str]) -> str:
    """Return the message in the body of an error, without the key of the request's headers."""
    try:
        payload = decode_json(body)
    except (msgspec.DecodeError, RecursionError):
        payload = None
    # Hidden before anything is cut: the beginning of a key would not be found.
    return _hide_values(extract_message(_hide_values(body, headers), payload), headers)[
        :_MAX_MESSAGE_LENGTH
    ]


def _hide_values(text: str, headers: Mapping[str, str]) -> str:
    """Hide the values of a request's headers, with the key, in a text."""
    for value in filter(None, headers.values()):
        text = text.replace(value, "[hidden]")
        if key := value.removeprefix("Bearer "):
            text = text.replace(key, "[hidden]")
    return text
