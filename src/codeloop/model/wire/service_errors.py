"""Converts failures of services and networks to the errors stored in messages, without keys.

Each message says what happened and what the user can do next;
`http_model.py` asks `ServiceErrors` for them.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
from msgspec import Struct

from codeloop.model.base_url import guess_base_url, redact_url
from codeloop.model.catalog.vendors import DEPLOYMENT_PROVIDERS
from codeloop.model.chat import ModelInfo
from codeloop.model.credentials.signer import KeySigner
from codeloop.model.wire.endpoint import KEY_HEADERS, Endpoint
from codeloop.model.wire.error_patterns import (
    extract_message,
    find_remedy,
    find_request_id,
    find_status,
    is_key_refusal,
    is_missing_model,
    is_out_of_credit,
    is_overflow,
    is_wrong_path,
)
from codeloop.model.wire.stated_wait import find_retry_after
from codeloop.net.errors import NetworkError
from codeloop.net.wait_hints import is_wait_header
from codeloop.schema.errors import (
    APIError,
    APIErrorData,
    ContextOverflowError,
    MessageError,
    OverflowData,
    ProviderAuthData,
    ProviderAuthError,
)
from codeloop.schema.limits import MODEL_ERROR_BODY
from codeloop.schema.wire import decode_json

RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 529})
"""HTTP statuses below 500 after which another attempt may succeed; from 500 on it always may."""
STORED_HEADERS = frozenset({"content-type", "date", "request-id", "x-request-id"})
"""Response headers that are stored with an error, besides those that say when to ask again."""


class ServiceErrors(Struct, frozen=True):
    """Makes the errors of one model at one service.
    `path`: where its requests go, below the base URL.
    """

    info: ModelInfo
    endpoint: Endpoint
    path: str

    async def from_response(
        self, status: int, headers: Mapping[str, str], body: bytes
    ) -> MessageError:
        """Return the error for an answer whose status is not 200;
        a local server is asked which models it has.
        """
        text = body.decode("utf-8", "replace")
        payload, hints, suggestion = _parse_json(text), self.endpoint.hints, ""
        if hints is not None and is_missing_model(status, payload, text, self._model_name):
            suggestion = await hints.suggest_models()
        return self._make_error(status, headers, text, payload, suggestion=suggestion)

    def from_event(self, payload: Any) -> MessageError:
        """Return the error for an error object inside a stream."""
        text = payload if isinstance(payload, str) else msgspec.json.encode(payload).decode()
        return self._make_error(find_status(payload), {}, text, payload)

    def from_network(self, failure: NetworkError) -> APIError:
        """Return the error for a connection that failed, hung or was cut."""
        provider, host = self.info.provider_id, _format_host(self.endpoint.base_url)
        reason = f" ({detail})" if (detail := self._hide_secrets(str(failure))) else ""
        match failure.kind:
            case "connect" | "refused":
                is_remote = self.endpoint.base_url.startswith("https:")
                check = (
                    f" and {provider}'s base URL"
                    if is_remote
                    else f", and that {provider} runs there"
                )
                message = f"Could not connect to {host}{reason}. Check the network{check}."
            case "connect-timeout":
                seconds = self.endpoint.connect
                message = f"No connection to {host} after {seconds:g} s. Check the network and {provider}'s base URL."
            case "certificate":
                message = (
                    f"No trusted TLS connection with {host}{reason}. NODE_EXTRA_CA_CERTS "
                    f"names your own authorities."
                )
            case "proxy":
                message = f"The proxy to {host} failed{reason}. Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY."
            case "offline":
                message = f"{host} was not asked: {failure}. Choose a model of this machine or network, or go online."
            case "first-byte":
                seconds = self.endpoint.first_byte
                message = f"{host} sent nothing for {seconds:g} s. Wait longer: provider.{provider}.options.timeout."
            case "idle":
                seconds = self.endpoint.idle
                message = f"The answer of {host} stalled for {seconds:g} s. Try again; what had come is kept."
            case "cut":
                message = f"{host} closed the connection before the answer was complete{reason}. Try again."
            case "protocol":
                message = (
                    f"{host} did not answer as HTTP{reason}. Check the base URL of {provider}."
                )
        retryable = failure.kind not in {"certificate", "protocol", "offline"}
        metadata = {"url": self._format_url(), "kind": failure.kind}
        return APIError(
            data=APIErrorData(message=message, is_retryable=retryable, metadata=metadata)
        )

    def from_signing(self, failure: Exception) -> ProviderAuthError:
        """Return the error for credentials that can't be obtained; its message says what to do."""
        message = self._hide_secrets(str(failure))
        return ProviderAuthError(
            data=ProviderAuthData(provider_id=self.info.provider_id, message=message)
        )

    def from_body(self, sample: bytes, description: str) -> APIError:
        """Return the error for an answer that can't be read: a web page,
        or an event that is too long.

        `sample`: its beginning; `description`: what was sent instead, in words.
        """
        text = self._hide_secrets(extract_message(sample.decode("utf-8", "replace")))
        host = _format_host(self.endpoint.base_url)
        message = f"{host} sent {description}: {text[:200]!r}. {self._advise_address()}"
        return APIError(
            data=APIErrorData(
                message=message, is_retryable=False, metadata={"url": self._format_url()}
            )
        )

    def _make_error(
        self,
        status: int | None,
        headers: Mapping[str, str],
        text: str,
        payload: Any,
        *,
        suggestion: str = "",
    ) -> MessageError:
        """Return the error for a refusal.

        `text`: its body; `payload`: the same as JSON; `suggestion`: names of models,
        for one that does not exist.
        """
        body = self._hide_secrets(text)[: MODEL_ERROR_BODY.value]
        reason = self._hide_secrets(extract_message(text, payload))[:600]
        request_id = find_request_id(headers, payload)
        code = (f"HTTP {status}" if status else "an error") + (
            f", request {request_id}" if request_id else ""
        )
        if is_overflow(status, payload, text):
            message = (
                f"The conversation is longer than {self.info.ref} can read ({reason}). "
                "Compact it with /compact, or start a new session."
            )
            return ContextOverflowError(data=OverflowData(message=message, response_body=body))
        lacks_credit, remedy = is_out_of_credit(status, payload, text), find_remedy(text)
        is_key = is_key_refusal(status, text)
        # A 401 or 403 with a remedy of its own, such as a model that has to be enabled,
        # is not about the key.
        if (is_key or status in {401, 403}) and not lacks_credit and (is_key or not remedy):
            message = self._describe_key_error(status, code, reason)
            return ProviderAuthError(
                data=ProviderAuthData(provider_id=self.info.provider_id, message=message)
            )
        is_missing = is_missing_model(status, payload, text, self._model_name)
        detail = f"({code}: {reason})"
        if lacks_credit:
            message = self._describe_missing_credit(detail)
        elif remedy and status not in {404, 429}:
            message = f"{self.info.provider_id} refused the request {detail}. {remedy}"
        elif is_missing:
            message = self._describe_missing_model(detail, suggestion)
        elif is_wrong_path(status, text):
            message = f"{self.info.provider_id} has nothing at {self._format_url()} {detail}. {self._advise_address()}"
        else:
            message = self._describe_status(status, code, detail)
        kind = "credit" if lacks_credit else "model" if is_missing else ""
        return APIError(
            data=APIErrorData(
                message=message,
                is_retryable=not lacks_credit
                and (status is None or status in RETRYABLE_STATUSES or status >= 500),
                status_code=status,
                # Some name the wait in the body; a header is more precise.
                response_headers=_select_headers({**find_retry_after(payload, reason), **headers}),
                response_body=body,
                metadata={"url": self._format_url(), **({"kind": kind} if kind else {})},
            )
        )

    def _describe_missing_credit(self, detail: str) -> str:
        key_source = self.endpoint.hints.describe_key_source() if self.endpoint.hints else ""
        provider = self.info.provider_id
        return f"{provider} has no credit left {detail}.{key_source} Add credit there, or choose another model."

    def _describe_missing_model(self, detail: str, suggestion: str) -> str:
        provider, address = self.info.provider_id, redact_url(self.endpoint.base_url)
        if provider in DEPLOYMENT_PROVIDERS:
            return (
                f"{provider} has no deployment {self._model_name} at {address} {detail}. "
                f"Deploy it there, or name one that is deployed: `codeloop auth login {provider} --deployment NAME`, "
                f"{provider} in /connect, or `id` at provider.{provider}.models.{self.info.id} in codeloop.json."
            )
        return (
            f"{provider} has no model {self._model_name} at {address} {detail}.{suggestion} "
            f"`codeloop models {provider}` lists what there is."
        )

    def _describe_status(self, status: int | None, code: str, detail: str) -> str:
        """Return the message for a refusal that only its status explains."""
        provider = self.info.provider_id
        if status == 429:
            return (
                f"{provider} limits the rate of requests {detail}. Wait, or choose another model."
            )
        if status is not None and status >= 500:
            return f"{provider} failed {detail}. Try again later, or choose another model."
        if status is not None and 300 <= status < 400:
            return f"{provider} redirects elsewhere ({code}), which is not followed with a key. Correct its base URL."
        return f"{provider} refused the request {detail}."

    def _describe_key_error(self, status: int | None, code: str, reason: str) -> str:
        provider, headers = self.info.provider_id, {**self.info.headers, **self.endpoint.headers}
        has_key = self.endpoint.key or not KEY_HEADERS.isdisjoint(name.lower() for name in headers)
        # Google answers 400 to a wrong key.
        is_wrong = status in {400, 401} or is_key_refusal(status, reason)
        verdict = "refused the key" if is_wrong else "does not allow this request with the key"
        is_signed = self.endpoint.client is not None or self.endpoint.signer is not None
        statement = verdict if has_key or is_signed else "wants a key"
        hints = self.endpoint.hints
        remedy = hints.describe_key() if hints else f"Run `codeloop auth login {provider}`."
        return f"{provider} {statement} ({code}: {reason}). {remedy}"

    def _advise_address(self) -> str:
        """Return advice on the base URL: the one that is probably meant,
        or the setting to check.
        """
        provider, hints = self.info.provider_id, self.endpoint.hints
        setting = hints.describe_url_setting() if hints else f"provider.{provider}.options.baseURL"
        better = guess_base_url(redact_url(self.endpoint.base_url))
        if better is None:
            return f"Check the base URL of {provider}: {setting}."
        return f"Its base URL is probably {better}: correct {setting}."

    @property
    def _model_name(self) -> str:
        return self.info.api_id or self.info.id

    def _hide_secrets(self, text: str) -> str:
        """Replace the key and other secrets of the request,
        which some services repeat in their errors.
        """
        query = parse_qsl(urlsplit(self.endpoint.base_url).query)
        signer = self.endpoint.signer
        for secret in (
            self.endpoint.key,
            signer.key if isinstance(signer, KeySigner) else None,
            *self.endpoint.headers.values(),
            *self.info.headers.values(),
            *(value for _, value in query),
        ):
            # A shorter value may occur in the text by chance.
            if secret and len(secret) >= 6:
                text = text.replace(secret, "[hidden]")
                text = text.replace(secret.removeprefix("Bearer "), "[hidden]")
        return text

    def _format_url(self) -> str:
        return self._hide_secrets(redact_url(self.endpoint.base_url) + self.path)


def _parse_json(text: str) -> Any:
    try:
        return decode_json(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _format_host(url: str) -> str:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.hostname}:{port}"


def _select_headers(headers: Mapping[str, str]) -> dict[str, str] | None:
    selection = {
        name: value
        for name, value in headers.items()
        if name in STORED_HEADERS or is_wait_header(name)
    }
    return selection or None
