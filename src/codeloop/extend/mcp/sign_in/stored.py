"""Requests with a stored sign-in: its token is sent to its own server alone, and renewed by one process at a time."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import msgspec

from codeloop.extend.mcp.known.definition import RemoteDefinition, ServerDefinition
from codeloop.extend.mcp.link.failures import SignInNeeded
from codeloop.extend.mcp.sign_in.store import ServerSignIn, SignIns
from codeloop.schema.wire import JSON

if TYPE_CHECKING:
    import httpx2

_OK, _REFUSED, _FORBIDDEN = 200, 401, 403


def stored_sign_in(definition: ServerDefinition, sign_ins: SignIns) -> "httpx2.Auth | None":
    """Return what signs the requests to a server; None where its configuration says that nothing does."""
    import httpx2

    how = definition.how
    if not isinstance(how, RemoteDefinition) or how.oauth is False:
        return None
    if any(name.lower() == "authorization" for name in how.headers):
        return None
    name, url = definition.name, how.url

    class Stored(httpx2.Auth):
        async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
            entry = sign_ins.get(name, url)
            used = entry
            if entry is not None and entry.is_over and entry.refresh:
                async with sign_ins.renewing():
                    entry = used = sign_ins.get(name, url)
                    if entry is not None and entry.is_over:
                        answer = yield _renewal(entry)
                        entry = used = await _renewed(sign_ins, name, entry, answer)
            if entry is not None:
                request.headers["Authorization"] = f"Bearer {entry.access}"
            answer = yield request
            if answer.status_code == _REFUSED and used is not None and used.refresh:
                async with sign_ins.renewing():
                    entry = sign_ins.get(name, url)
                    if entry is not None and entry.access == used.access:
                        renewal = yield _renewal(entry)
                        entry = await _renewed(sign_ins, name, entry, renewal)
                if entry is not None:
                    request.headers["Authorization"] = f"Bearer {entry.access}"
                    answer = yield request
            if answer.status_code == _REFUSED:
                raise SignInNeeded("it wants you to sign in", can_sign_in=True)
            if answer.status_code == _FORBIDDEN and "insufficient_scope" in answer.headers.get("www-authenticate", ""):
                raise SignInNeeded("it wants a wider sign-in", can_sign_in=True)

    return Stored()


def _renewal(entry: ServerSignIn) -> "httpx2.Request":
    import httpx2

    data = {"grant_type": "refresh_token", "refresh_token": entry.refresh, "client_id": entry.client.get("client_id")}
    if entry.client.get("client_secret"):
        data["client_secret"] = entry.client["client_secret"]
    if entry.resource:
        data["resource"] = entry.resource
    return httpx2.Request("POST", entry.token_endpoint, data=data)


async def _renewed(sign_ins: SignIns, name: str, entry: ServerSignIn, answer: "httpx2.Response") -> ServerSignIn | None:
    """Store what the endpoint gave; what it refuses for good is forgotten."""
    if answer.status_code == _OK:
        given: JSON = msgspec.json.decode(await answer.aread())
        entry = entry.renewed(given)
        sign_ins.put(name, entry)
        return entry
    if answer.status_code in {400, _REFUSED}:
        sign_ins.put(name, None)
    return None
