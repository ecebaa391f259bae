"""Device-code sign-in (RFC 8628): a code typed on the service's page, and the resulting token.

A service gives such codes to a program that it knows by a client id. codeloop has none of its own
there: the id of an application that the user, or their organisation,
has registered is an option of the provider.
"""

import asyncio
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple
from urllib.parse import urlencode

from codeloop.model.credentials.cloud_request import CloudAnswer, send_request
from codeloop.model.credentials.renewal_lock import acquire_renewal_lock
from codeloop.model.credentials.store import Credentials
from codeloop.model.errors import ModelUnavailable
from codeloop.schema.bounds.cloud import CLOUD_RENEWAL_LEAD, DEVICE_CODE_TIME
from codeloop.schema.wire import JSON

_FORM_HEADERS = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_POLL_STEP_SECONDS = 5
"""Seconds between polls, and added to that when the service asks to slow down."""
_MAX_SECONDS = 1e9
"""The longest time of a service that counts: about thirty years."""
_FAILURE_REASONS = {
    "access_denied": "it was refused on the page",
    "expired_token": "the code has run out",
}
CLIENT_ID_KEY = "client"
"""The key of a stored sign-in for the client id that it was made with;
sign-ins of plugins don't have it.
"""


class DeviceService(NamedTuple):
    """A service that signs in by a code: its name, addresses, and the requested scope."""

    name: str
    base_url: str
    start_path: str
    exchange_path: str
    scope: str
    missing_client_advice: str
    """What the user can do if no client id is configured, in sentences."""


DEVICE_SERVICES: dict[str, DeviceService] = {
    "github-copilot": DeviceService(
        name="GitHub",
        base_url="https://github.com",
        start_path="/login/device/code",
        exchange_path="/login/oauth/access_token",
        scope="read:user",
        missing_client_advice=(
            "It is a fine-grained token with the permission Copilot Requests. GitHub has no client id for codeloop, so "
            "signing in on its page needs one of yours: provider.github-copilot.options.clientId."
        ),
    )
}
"""By provider."""


class DeviceSignIn(NamedTuple):
    """How to sign in at a provider: its service, the user's client id,
    and the service's address as configured.
    """

    service: DeviceService
    client_id: str
    base_url: str


class DeviceCode(NamedTuple):
    """A code for the user to type: its page, its expiry (monotonic clock),
    and the seconds between polls.
    """

    page_url: str
    user_code: str
    device_code: str
    expires_at: float
    poll_seconds: float


def make_device_sign_in(provider_id: str, options: Mapping[str, Any]) -> DeviceSignIn | None:
    """Return how to sign in by a code; None: unsupported, or no client id is configured."""
    service, client_id = (
        DEVICE_SERVICES.get(provider_id),
        str(options.get("clientId") or "").strip(),
    )
    if service is None or not client_id:
        return None
    return DeviceSignIn(
        service, client_id, str(options.get("signInURL") or service.base_url).rstrip("/")
    )


def find_stored_sign_in(
    sign_in: DeviceSignIn | None, provider_id: str, credentials: Credentials
) -> JSON | None:
    """Return the stored sign-in for this client id, or None."""
    if sign_in is None:
        return None
    stored = credentials.find_sign_in(provider_id)
    return stored if stored is not None and stored.get(CLIENT_ID_KEY) == sign_in.client_id else None


async def request_code(sign_in: DeviceSignIn) -> DeviceCode:
    """Ask for a code. Raises `ModelUnavailable`: the service gives none."""
    answer = await _post_form(sign_in, sign_in.service.start_path, {"scope": sign_in.service.scope})
    match answer.json:
        case {
            "device_code": str(secret),
            "user_code": str(code),
            "verification_uri": str(page),
            **more,
        }:
            # A service could name any time: the dialog waits for ours at most.
            lifetime = min(
                _read_seconds(more.get("expires_in")) or DEVICE_CODE_TIME.seconds,
                DEVICE_CODE_TIME.seconds,
            )
            return DeviceCode(
                page_url=page,
                user_code=code,
                device_code=secret,
                expires_at=time.monotonic() + lifetime,
                poll_seconds=_read_seconds(more.get("interval")) or _POLL_STEP_SECONDS,
            )
        case _:
            raise ModelUnavailable(
                f"{sign_in.service.name} gives no code for this client id: {answer.describe_error()}. "
                "The application needs the device flow enabled."
            )


async def wait_for_tokens(sign_in: DeviceSignIn, code: DeviceCode) -> JSON:
    """Wait until the user has typed the code; return the tokens to store.

    Raises `ModelUnavailable`: it was refused, or ran out.
    """
    interval, form = (
        code.poll_seconds,
        {"device_code": code.device_code, "grant_type": _DEVICE_GRANT},
    )
    while (seconds_left := code.expires_at - time.monotonic()) > 0:
        await asyncio.sleep(min(interval, seconds_left))
        answer = await _post_form(sign_in, sign_in.service.exchange_path, form)
        if (tokens := _parse_tokens(sign_in, answer)) is not None:
            return tokens
        match answer.json.get("error"):
            case "authorization_pending":
                continue
            case "slow_down":
                # RFC 8628, 3.5: five seconds more from now on.
                interval = max(
                    _read_seconds(answer.json.get("interval")), interval + _POLL_STEP_SECONDS
                )
            case reason:
                why = _FAILURE_REASONS.get(str(reason)) or answer.describe_error()
                raise ModelUnavailable(
                    f"Nobody is signed in at {sign_in.service.name}: {why}. Sign in again."
                )
    raise ModelUnavailable(
        f"Nobody is signed in at {sign_in.service.name}: {_FAILURE_REASONS['expired_token']}."
    )


class DeviceSigner:
    """Signs requests with the token of a sign-in;
    when it has expired, one of all processes renews it.
    """

    def __init__(self, sign_in: DeviceSignIn, provider_id: str, credentials: Credentials) -> None:
        self._sign_in = sign_in
        self._provider_id = provider_id
        self._credentials = credentials

    async def sign(self, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the headers with the token. Raises `ModelUnavailable`: it ran
        out and can't be renewed.
        """
        del url, headers, body
        token = _get_valid_token(self._find_stored()) or await self._renew_token()
        return {"authorization": f"Bearer {token}"}

    def _find_stored(self) -> JSON:
        return find_stored_sign_in(self._sign_in, self._provider_id, self._credentials) or {}

    async def _renew_token(self) -> str:
        with ExitStack() as held_lock:
            await acquire_renewal_lock(
                held_lock, self._credentials.path.with_name("auth.renew.lock")
            )
            stored = self._find_stored()
            # Another process was first: a second renewal could make its token invalid.
            if (token := _get_valid_token(stored)) is not None:
                return token
            form = {
                "grant_type": "refresh_token",
                "refresh_token": str(stored.get("refresh") or ""),
            }
            answer = await _post_form(self._sign_in, self._sign_in.service.exchange_path, form)
            tokens = _parse_tokens(self._sign_in, answer, form["refresh_token"])
            if tokens is None:
                raise ModelUnavailable(
                    f"The sign-in at {self._sign_in.service.name} has run out ({answer.describe_error()}). "
                    f"Sign in again: `codeloop auth login {self._provider_id}`."
                )
            await asyncio.to_thread(self._credentials.store_sign_in, self._provider_id, tokens)
            return str(tokens["access"])


def _get_valid_token(sign_in: JSON) -> str | None:
    """Return the token of a stored sign-in; None if there is none, or if it expires soon."""
    token, expires_at = str(sign_in.get("access") or ""), float(sign_in.get("expires") or 0) / 1000
    # 0: the token does not expire, as with GitHub's OAuth applications.
    is_valid = not expires_at or expires_at > time.time() + CLOUD_RENEWAL_LEAD.seconds
    return token if token and is_valid else None


def _parse_tokens(
    sign_in: DeviceSignIn, answer: CloudAnswer, refresh_token: str = ""
) -> JSON | None:
    """Return the tokens of an answer as they are stored; None: it has none.

    `refresh_token`: the one in use, which stays valid if the answer has no new one (RFC 6749, 6).
    """
    data = answer.json
    if answer.status != 200 or not isinstance(token := data.get("access_token"), str) or not token:
        return None
    lifetime = _read_seconds(data.get("expires_in"))
    return {
        "access": token,
        "refresh": str(data.get("refresh_token") or refresh_token),
        "expires": int((time.time() + lifetime) * 1000) if lifetime else 0,
        CLIENT_ID_KEY: sign_in.client_id,
    }


def _read_seconds(value: Any) -> float:
    """Return a time that a service sent, as a number or as text;
    0 if it is not one of at most _MAX_SECONDS.
    """
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return seconds if 0 < seconds <= _MAX_SECONDS else 0


async def _post_form(sign_in: DeviceSignIn, path: str, form: Mapping[str, str]) -> CloudAnswer:
    body = urlencode({"client_id": sign_in.client_id, **form}).encode()
    return await send_request("POST", sign_in.base_url + path, _FORM_HEADERS, body)
