"""Whether a server lets clients register themselves, and what a person does where it does not."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from codeloop.extend.mcp.known.definition import RemoteDefinition
from codeloop.extend.mcp.link.failures import RegistrationNeeded, SignInNeeded, refusal, request_errors
from codeloop.extend.mcp.link.http_client import http_client
from codeloop.schema.limits import MCP_LIST

if TYPE_CHECKING:
    import httpx2

CALLBACK_PATH = "/mcp/oauth/callback"
CALLBACK_PORT = 19876
"""Where a client that somebody registered by hand is called back, unless its settings name another port."""


def how_to_register(name: str) -> str:
    """Return the advice about a server that registers no clients by itself."""
    return (
        f"its provider registers no clients by itself. Register codeloop there, with the redirect address "
        f'http://127.0.0.1:{CALLBACK_PORT}{CALLBACK_PATH}, and set `"oauth": {{"clientId": "..."}}` in mcp.{name}'
    )


async def check_registration(name: str, how: RemoteDefinition, refused: SignInNeeded) -> None:
    """Look up the provider of a server that wants a sign-in. Raises RegistrationNeeded when nobody could sign in.

    What can't be found out counts as possible: signing in says more.
    """
    if how.oauth is False or (how.oauth and how.oauth.client_id):
        return
    import httpx2

    is_closed = False
    with suppress(*request_errors()):
        async with asyncio.timeout(MCP_LIST.seconds), http_client({}, httpx2.Auth(), lambda _status: None) as client:
            is_closed = await _is_closed(how.url, refused.challenge, client)
    if is_closed:
        raise RegistrationNeeded(how_to_register(name))


async def _is_closed(url: str, challenge: str, client: "httpx2.AsyncClient") -> bool:
    from mcp.client.auth.utils import (
        build_oauth_authorization_server_metadata_discovery_urls,
        build_protected_resource_metadata_discovery_urls,
        create_oauth_metadata_request,
        extract_resource_metadata_from_www_auth,
        handle_auth_metadata_response,
        handle_protected_resource_response,
    )

    provider: str | None = None
    described = extract_resource_metadata_from_www_auth(refusal(challenge))
    for address in build_protected_resource_metadata_discovery_urls(described, url):
        resource = await handle_protected_resource_response(await client.send(create_oauth_metadata_request(address)))
        if resource is not None:
            provider = str(resource.authorization_servers[0])
            break
    for address in build_oauth_authorization_server_metadata_discovery_urls(provider, url):
        _, found = await handle_auth_metadata_response(await client.send(create_oauth_metadata_request(address)))
        if found is not None:
            return found.registration_endpoint is None
    return False
