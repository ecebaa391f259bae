"""Tokens of remote servers: stored with mode 0600, sent to their own server only,
renewed by one process at a time.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote_plus, urlsplit

import msgspec

from codeloop.config.paths import Paths
from codeloop.extend.mcp.definition import RemoteDefinition, ServerDefinition
from codeloop.extend.mcp.transport.failures import SignInNeeded, describe_error, list_request_errors
from codeloop.extend.mcp.transport.http_client import make_http_client
from codeloop.kit.small_files import create_private_folder, lock, read_start, write_atomically
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CREDENTIALS_BYTES, MCP_START
from codeloop.schema.wire import DECODE_ERRORS, JSON, Wire, decode_json, replace

if TYPE_CHECKING:
    import httpx2

# Renewed this long before it expires, so that a token does not end on its way to the server.
_RENEWAL_MARGIN_SECONDS = 30.0


class ServerSignIn(Wire):
    """The tokens of one server. `expires`: seconds since 1970, 0 for unknown;
    `client`: our registration.

    `wanted`: the scopes for the next sign-in, once some were missing: those of this
    one and the missing ones.
    """

    url: str
    access: str
    refresh: str = ""
    expires: float = 0.0
    scope: str = ""
    wanted: str = ""
    token_endpoint: str = ""
    revocation_endpoint: str = ""
    resource: str = ""
    client: JSON = {}

    @property
    def is_over(self) -> bool:
        """Whether the token has expired, or is about to."""
        return bool(self.expires) and time.time() > self.expires - _RENEWAL_MARGIN_SECONDS

    def renew(self, answer: JSON) -> "ServerSignIn":
        """Return a copy updated from a token endpoint's answer."""
        seconds = answer.get("expires_in")
        return msgspec.structs.replace(
            self,
            access=str(answer["access_token"]),
            # A provider may leave the refresh token out, which means that the old one stays valid.
            refresh=str(answer.get("refresh_token") or self.refresh),
            expires=time.time() + float(seconds) if seconds else 0.0,
            scope=str(answer.get("scope") or self.scope),
        )


class SignIns:
    """The file of sign-ins, by the servers' names."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def get(self, name: str, url: str) -> ServerSignIn | None:
        """Return the sign-in stored for a server at exactly this address.
        Raises CodeloopError: the file is broken.
        """
        server_sign_in = self._read().get(name)
        # A token is never sent to another address: an entry with the same name
        # may have been changed.
        return server_sign_in if server_sign_in is not None and server_sign_in.url == url else None

    def put(self, name: str, entry: ServerSignIn | None) -> bool:
        """Store an entry, or remove it; return whether there was one. Raises CodeloopError."""
        # A link is followed, so that a file which the user keeps elsewhere is
        # not replaced by a copy.
        target = Path(os.path.realpath(self._file))
        try:
            create_private_folder(target.parent)
            with lock(self._get_lock_path("write"), MCP_START.seconds):
                all_sign_ins = self._read()
                before = all_sign_ins.pop(name, None)
                if entry is not None:
                    all_sign_ins[name] = entry
                write_atomically(
                    target,
                    msgspec.json.format(msgspec.json.encode(all_sign_ins)) + b"\n",
                    sync=True,
                )
        except (OSError, TimeoutError) as error:
            raise CodeloopError(
                f"{target} can't be written: {error}. Nothing was changed."
            ) from error
        return before is not None

    @asynccontextmanager
    async def hold_renewal_lock(self) -> AsyncGenerator[None]:
        """Hold the lock for renewing a token. Raises CodeloopError."""
        lock_held = lock(self._get_lock_path("renew"), MCP_START.seconds)
        try:
            create_private_folder(self._file.parent)
            # In a thread, because another process may hold the lock while it
            # waits for its provider.
            await asyncio.to_thread(lock_held.__enter__)
        except (OSError, TimeoutError) as error:
            raise CodeloopError(
                f"another process holds {self._get_lock_path('renew')}: {error}"
            ) from error
        try:
            yield
        finally:
            lock_held.__exit__(None, None, None)

    def _get_lock_path(self, purpose: str) -> Path:
        return self._file.with_name(f"{self._file.name}.{purpose}.lock")

    def _read(self) -> dict[str, ServerSignIn]:
        try:
            return decode_json(
                read_start(self._file, CREDENTIALS_BYTES.value), dict[str, ServerSignIn]
            )
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, *DECODE_ERRORS) as error:
            raise CodeloopError(
                f"{self._file} can't be read ({error}). Move it away and sign in again."
            ) from error


def get_sign_ins(paths: Paths) -> SignIns:
    """Return the file of sign-ins."""
    return SignIns(paths.data / "mcp-auth.json")


# HTTP statuses.
_OK, _BAD_REQUEST, _UNAUTHORIZED, _FORBIDDEN = 200, 400, 401, 403


def make_auth(definition: ServerDefinition, sign_ins: SignIns) -> "httpx2.Auth | None":
    """Return the authentication of a server's requests;
    None where its configuration turns it off.
    """
    import httpx2

    config = definition.config
    # A configured header is the user's own way to sign in.
    if not isinstance(config, RemoteDefinition) or config.oauth is False:
        return None
    if any(name.lower() == "authorization" for name in config.headers):
        return None
    name, url = definition.name, config.url

    class StoredTokenAuth(httpx2.Auth):
        async def async_auth_flow(
            self, request: httpx2.Request
        ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
            entry = sign_ins.get(name, url)
            used_sign_in = entry
            if entry is not None and entry.is_over and entry.refresh:
                async with sign_ins.hold_renewal_lock():
                    # Another process may have renewed the token while this one waited for the lock.
                    entry = used_sign_in = sign_ins.get(name, url)
                    if entry is not None and entry.is_over:
                        answer = yield _make_renewal_request(entry)
                        entry = used_sign_in = await _store_renewal(sign_ins, name, entry, answer)
            if entry is not None:
                request.headers["Authorization"] = f"Bearer {entry.access}"
            answer = yield request
            if (
                answer.status_code == _UNAUTHORIZED
                and used_sign_in is not None
                and used_sign_in.refresh
            ):
                async with sign_ins.hold_renewal_lock():
                    entry = sign_ins.get(name, url)
                    # Otherwise another process has renewed it meanwhile: its token is used
                    # without a second renewal.
                    if entry is not None and entry.access == used_sign_in.access:
                        renewal = yield _make_renewal_request(entry)
                        entry = await _store_renewal(sign_ins, name, entry, renewal)
                if entry is not None:
                    request.headers["Authorization"] = f"Bearer {entry.access}"
                    answer = yield request
            _check_answer(answer, sign_ins, name, entry)

    return StoredTokenAuth()


def _check_answer(
    answer: "httpx2.Response", sign_ins: SignIns, name: str, entry: ServerSignIn | None
) -> None:
    """Raise SignInNeeded for an answer that requires one; missing scopes are stored for it."""
    from mcp.client.auth.utils import extract_field_from_www_auth, union_scopes

    challenge = answer.headers.get("www-authenticate", "")
    if answer.status_code == _UNAUTHORIZED:
        raise SignInNeeded("it wants you to sign in", can_sign_in=True, challenge=challenge)
    if (
        answer.status_code == _FORBIDDEN
        and extract_field_from_www_auth(answer, "error") == "insufficient_scope"
    ):
        missing_scopes = extract_field_from_www_auth(answer, "scope")
        if entry is not None and missing_scopes:
            sign_ins.put(
                name, replace(entry, wanted=union_scopes(entry.scope, missing_scopes) or "")
            )
        raise SignInNeeded("it wants a wider sign-in", can_sign_in=True, challenge=challenge)


def _make_provider_request(url: str, data: dict[str, str], entry: ServerSignIn) -> "httpx2.Request":
    """Return a request of the client that was registered for this sign-in."""
    import httpx2

    client_id, secret = (
        str(entry.client.get("client_id") or ""),
        str(entry.client.get("client_secret") or ""),
    )
    limits = {"timeout": httpx2.Timeout(MCP_START.seconds).as_dict()}
    if secret and entry.client.get("token_endpoint_auth_method") == "client_secret_basic":
        request = httpx2.Request("POST", url, data=data, extensions=limits)
        # RFC 6749 (2.3.1) wants id and secret form-encoded before they are joined.
        return next(httpx2.BasicAuth(quote_plus(client_id), quote_plus(secret)).auth_flow(request))
    credentials = {"client_id": client_id, **({"client_secret": secret} if secret else {})}
    return httpx2.Request("POST", url, data={**data, **credentials}, extensions=limits)


def _make_renewal_request(entry: ServerSignIn) -> "httpx2.Request":
    data = {"grant_type": "refresh_token", "refresh_token": entry.refresh}
    if entry.resource:
        data["resource"] = entry.resource
    return _make_provider_request(entry.token_endpoint, data, entry)


async def _store_renewal(
    sign_ins: SignIns, name: str, entry: ServerSignIn, answer: "httpx2.Response"
) -> ServerSignIn | None:
    """Store the endpoint's answer; a permanently refused sign-in is removed.

    Raises CodeloopError for other answers: the sign-in may still be valid.
    """
    host = urlsplit(entry.token_endpoint).netloc
    if answer.status_code == _OK:
        try:
            token_data: JSON = decode_json(await answer.aread())
            entry = entry.renew(token_data)
        except (KeyError, TypeError, ValueError, *DECODE_ERRORS) as error:
            raise CodeloopError(
                f"its sign-in could not be renewed: {host} did not return a token"
            ) from error
        sign_ins.put(name, entry)
        return entry
    # These two mean that the provider has ended the sign-in; any other status may pass.
    if answer.status_code in {_BAD_REQUEST, _UNAUTHORIZED}:
        sign_ins.put(name, None)
        return None
    raise CodeloopError(
        f"its sign-in could not be renewed: {host} answered {answer.status_code}. Try again later; you stay signed in"
    )


async def sign_out(definition: ServerDefinition, sign_ins: SignIns) -> str | None:
    """Remove a sign-in, and revoke it at its provider if supported. Returns a description.

    None: there was no sign-in. Raises CodeloopError when the file can't be written.
    """
    import httpx2

    name, config = definition.name, definition.config
    entry = sign_ins.get(name, config.url) if isinstance(config, RemoteDefinition) else None
    if not sign_ins.put(name, None):
        return None
    if entry is None or not entry.revocation_endpoint:
        return f"Signed out at {name}."
    token = (
        {"token": entry.refresh, "token_type_hint": "refresh_token"}
        if entry.refresh
        else {"token": entry.access}
    )
    # Servers that are made with the package `mcp` require this field,
    # which is empty for a client without a secret.
    token["client_secret"] = ""
    async with make_http_client(entry.url, {}, httpx2.Auth(), lambda _status: None) as client:
        try:
            answer = await client.send(
                _make_provider_request(entry.revocation_endpoint, token, entry)
            )
            problem = (
                "" if answer.status_code == _OK else f"its provider answered {answer.status_code}"
            )
        except list_request_errors() as error:
            problem = describe_error(error)
    if not problem:
        return f"Signed out at {name}; its provider has ended the sign-in."
    return f"Signed out at {name} on this machine. The sign-in could not be ended there: {problem}."
