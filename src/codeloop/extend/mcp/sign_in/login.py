"""The sign-in flow at a server: discovery, registration, and a code returned by a redirect."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from codeloop.extend.mcp.definition import OAuthSettings, RemoteDefinition, ServerDefinition
from codeloop.extend.mcp.sign_in.callback import CallbackServer, get_redirect_target, parse_redirect
from codeloop.extend.mcp.sign_in.registration import describe_registration
from codeloop.extend.mcp.sign_in.tokens import ServerSignIn, SignIns
from codeloop.extend.mcp.transport.failures import (
    RegistrationNeeded,
    describe_error,
    find_cause,
    list_request_errors,
    make_refusal,
)
from codeloop.extend.mcp.transport.http_client import make_http_client
from codeloop.extend.mcp.transport.transports import silence_package_logging
from codeloop.net.hosts import add_brackets, is_loopback
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import MCP_SIGN_IN
from codeloop.schema.wire import DECODE_ERRORS, JSON, decode_json

if TYPE_CHECKING:
    import httpx2
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata, OAuthMetadata

_PROTOCOL_VERSION = "2025-06-18"
# A request that any MCP server understands: it provokes the refusal that starts the sign-in.
_INITIALIZE_REQUEST: JSON = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": _PROTOCOL_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "codeloop", "version": "1"},
    },
}
_BASIC_METHOD = "client_secret_basic"
_JSON_OBJECT = r"(?s)\{.*\}"
ShowAddress = Callable[[str], None]
"""Shows the user the address to open."""
WaitForPaste = Callable[[], Awaitable[str]]
"""Waits until the user pastes the address of the redirect, or the code in it."""


class SignInImpossible(CodeloopError):
    """Nobody can sign in at the server by OAuth: it is a program, configured without,
    or asks nobody to.
    """


async def sign_in(
    definition: ServerDefinition,
    sign_ins: SignIns,
    show: ShowAddress,
    paste: WaitForPaste | None,
    challenge: str | None = None,
) -> str:
    """Let the user sign in, and store the tokens. Returns a description.

    `show` gets the address to open; `paste` waits for the user's paste: the address
    of the redirect or its code.
    `challenge`: the server's challenge to a refused request, if known.
    Raises CodeloopError: SignInImpossible, RegistrationNeeded.
    """
    config = definition.config
    if not isinstance(config, RemoteDefinition):
        program = f"{definition.name} is a program, not a server that one signs in at."
        raise SignInImpossible(definition.problem or program)
    if config.oauth is False:
        raise SignInImpossible(
            f"{definition.name} is configured without signing in (`oauth` is false)."
        )
    settings = config.oauth or OAuthSettings()
    try:
        async with (
            CallbackServer(get_redirect_target(settings)).listen() as callback,
            asyncio.timeout(MCP_SIGN_IN.seconds),
        ):
            before = sign_ins.get(definition.name, config.url)
            # A server may have asked for more scopes than the last sign-in had.
            scope = settings.scope or (before.wanted if before is not None else "")
            user = _UserChannel(callback, show, paste)
            flow = _SignInFlow(config, settings, user, scope=scope, challenge=challenge)
            return await flow.run(definition.name, sign_ins)
    except TimeoutError as error:
        raise CodeloopError(
            f"Nobody signed in within {MCP_SIGN_IN.seconds / 60:.0f} minutes."
        ) from error


class _UserChannel:
    """Shows the address, and waits for the code by redirect or paste."""

    def __init__(
        self, callback: CallbackServer, show: ShowAddress, paste: WaitForPaste | None
    ) -> None:
        self.callback = callback
        self._show = show
        self._paste = paste

    def show(self, url: str) -> None:
        self.callback.state = parse_qs(urlsplit(url).query).get("state", [""])[0]
        self._show(url)

    async def wait_for_code(self) -> Any:
        from mcp.shared.auth import AuthorizationCodeResult

        waiting: set[asyncio.Future[str]] = {self.callback.answer}
        if self._paste is not None:
            # Whichever comes first: on a remote machine the redirect can't reach us,
            # so the user pastes it.
            waiting.add(asyncio.ensure_future(self._paste()))
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting - {self.callback.answer}:
                each.cancel()
        state = self.callback.state
        redirect = parse_redirect(next(iter(done)).result(), state)
        return AuthorizationCodeResult(code=redirect.code, state=state, iss=redirect.issuer)


class _SignInFlow:
    """One sign-in. It also implements the storage that the package's flow asks for: of
    its tokens and of our client.

    The client is what a provider calls a program like this one: an id, perhaps with a secret, from
    the configuration or from the registration.
    """

    def __init__(
        self,
        config: RemoteDefinition,
        settings: OAuthSettings,
        user: _UserChannel,
        *,
        scope: str,
        challenge: str | None,
    ) -> None:
        self._config = config
        self._settings = settings
        self._user = user
        self._scope = scope
        self._challenge = challenge
        self._tokens: Any = None
        self._client_info: Any = None
        self._provider: OAuthClientProvider | None = None

    async def run(self, name: str, sign_ins: SignIns) -> str:
        """Sign in at the server of this name and store the tokens; return a line for the user.
        Raises CodeloopError.
        """
        silence_package_logging()
        provider = self._provider = self._make_provider()
        auth = _force_refusal(provider, self._challenge)
        async with make_http_client(self._config.url, {}, auth, lambda _status: None) as http:
            try:
                headers = {**self._config.headers, "accept": "application/json, text/event-stream"}
                async with http.stream(
                    "POST", self._config.url, json=_INITIALIZE_REQUEST, headers=headers
                ) as answer:
                    status = answer.status_code
            except (*list_request_errors(), *_list_flow_errors()) as error:
                raise _convert_error(name, error) from error
        if self._tokens is None:
            raise SignInImpossible(
                f"{name} asks nobody to sign in; it answered {status} without it."
            )
        context = provider.context
        metadata = context.oauth_metadata
        entry = ServerSignIn(
            url=self._config.url,
            access="",
            token_endpoint=str(metadata.token_endpoint) if metadata else "",
            revocation_endpoint=_find_revocation_endpoint(metadata) if metadata else "",
            resource=context.get_resource_url()
            if context.should_include_resource_param(_PROTOCOL_VERSION)
            else "",
            client=self._client_info.model_dump(mode="json", exclude_none=True)
            if self._client_info
            else {},
        )
        sign_ins.put(name, entry.renew(self._tokens.model_dump(mode="json", exclude_none=True)))
        return f"Signed in at {name}."

    def _make_provider(self) -> "OAuthClientProvider":
        from mcp.client.auth import OAuthClientProvider
        from mcp.shared.auth import OAuthClientInformationFull
        from pydantic import AnyUrl

        settings = self._settings
        redirect = AnyUrl(self._user.callback.url)
        method = "client_secret_post" if settings.client_secret else "none"
        client_metadata = _make_client_metadata(
            self._scope,
            redirect_uris=[redirect],
            client_name="codeloop",
            token_endpoint_auth_method=method,
        )
        if settings.client_id:
            self._client_info = OAuthClientInformationFull(
                client_id=settings.client_id,
                client_secret=settings.client_secret or None,
                redirect_uris=[redirect],
                token_endpoint_auth_method=method,
            )
        return OAuthClientProvider(
            self._config.url,
            client_metadata,
            storage=self,
            redirect_handler=self._show_address,
            callback_handler=self._user.wait_for_code,
        )

    async def get_tokens(self) -> Any:
        return self._tokens

    async def set_tokens(self, tokens: Any) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> Any:
        return self._client_info

    async def set_client_info(self, client_info: Any) -> None:
        self._client_info = client_info

    async def _show_address(self, url: str) -> None:
        metadata = self._provider.context.oauth_metadata if self._provider is not None else None
        methods = (metadata.token_endpoint_auth_methods_supported if metadata else None) or [
            _BASIC_METHOD
        ]
        token_endpoint = str(metadata.token_endpoint) if metadata else self._config.url
        _check_secret(self._config.url, self._settings, token_endpoint)
        # The methods that the provider accepts are known only now, after the discovery.
        if (
            self._settings.client_id
            and self._settings.client_secret
            and "client_secret_post" not in methods
        ):
            self._client_info.token_endpoint_auth_method = _BASIC_METHOD
        self._user.show(url)


def _check_secret(server_url: str, settings: OAuthSettings, token_endpoint: str) -> None:
    """Raise CodeloopError if the configured secret would go where neither the
    server nor the issuer is.
    """
    wanted = _find_origin(token_endpoint)
    known = [_find_origin(url) for url in (server_url, settings.issuer) if url]
    # What is asked for on this machine by a server on this machine stays there.
    is_here = all(is_loopback(urlsplit(url).hostname or "") for url in (server_url, token_endpoint))
    if settings.client_secret and wanted not in known and not is_here:
        raise CodeloopError(
            f"The configured clientSecret is for {' or '.join(known)}, and is not sent to {wanted}, where the server "
            f'wants the sign-in. If you registered the client there, set `"oauth": {{"issuer": "{wanted}"}}`.'
        )


def _find_revocation_endpoint(metadata: "OAuthMetadata") -> str:
    """Return where a sign-in is ended: with the secret, so nowhere but where the tokens are from.
    "": it can't be.
    """
    endpoint = str(metadata.revocation_endpoint or "")
    return endpoint if _find_origin(endpoint) == _find_origin(str(metadata.token_endpoint)) else ""


def _find_origin(url: str) -> str:
    parts = urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    return f"{parts.scheme}://{add_brackets((parts.hostname or '').lower())}:{port}"


def _force_refusal(provider: "OAuthClientProvider", challenge: str | None) -> "httpx2.Auth":
    """Return an authentication that signs in even if the greeting succeeds: some servers
    refuse only later requests.
    """
    import httpx2

    class ForcedSignIn(httpx2.Auth):
        requires_response_body = True

        async def async_auth_flow(
            self, request: httpx2.Request
        ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
            flow = provider.async_auth_flow(request)
            try:
                request = await anext(flow)
                answer = yield request
                if challenge is not None and answer.is_success:
                    # The package starts its flow only at a refusal.
                    answer = make_refusal(challenge)
                while True:
                    request = await flow.asend(answer)
                    answer = yield request
            except StopAsyncIteration:
                return
            finally:
                await flow.aclose()

    return ForcedSignIn()


def _make_client_metadata(scope: str, **fields: Any) -> "OAuthClientMetadata":
    """Return our client metadata. The package asks for the scope that the server names,
    unless one is given.
    """
    from mcp.shared.auth import OAuthClientMetadata

    class FixedScopeMetadata(OAuthClientMetadata):
        def __setattr__(self, name: str, value: Any) -> None:
            # The package overwrites the scope during the discovery.
            if name != "scope" or not scope:
                super().__setattr__(name, value)

    return FixedScopeMetadata(scope=scope or None, **fields)


def _list_flow_errors() -> tuple[type[Exception], ...]:
    from mcp.client.auth import OAuthFlowError

    return (OAuthFlowError,)


def _convert_error(name: str, error: BaseException) -> CodeloopError:
    from mcp.client.auth import OAuthRegistrationError

    reason = _read_error_text(describe_error(error))
    if isinstance(find_cause(error), OAuthRegistrationError):
        return RegistrationNeeded(
            f"Signing in at {name} is not possible: {describe_registration(name)} ({reason})."
        )
    return CodeloopError(f"Signing in at {name} failed: {reason}.")


def _read_error_text(text: str) -> str:
    """Return an error's text, with a provider's JSON error as plain text."""
    match = re.search(_JSON_OBJECT, text)
    if match is None:
        return text.rstrip(". ")
    try:
        details = decode_json(match.group(), dict[str, Any])
    except DECODE_ERRORS:
        return text.rstrip(". ")
    descriptions = [str(details[key]) for key in ("error", "error_description") if details.get(key)]
    return (
        f"{text[: match.start()].rstrip(': ')} ({': '.join(descriptions)})"
        if descriptions
        else text
    )
