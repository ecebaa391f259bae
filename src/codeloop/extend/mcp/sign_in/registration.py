"""Whether the sign-in provider of a server registers clients by itself,
and what to do where it does not.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from codeloop.extend.mcp.definition import RemoteDefinition
from codeloop.extend.mcp.transport.failures import (
    RegistrationNeeded,
    SignInNeeded,
    list_request_errors,
    make_refusal,
)
from codeloop.extend.mcp.transport.http_client import make_http_client
from codeloop.schema.limits import MCP_LIST

if TYPE_CHECKING:
    import httpx2


CALLBACK_PATH = "/mcp/oauth/callback"
CALLBACK_PORT = 19876
"""The default redirect of a manually registered client."""


def describe_registration(name: str) -> str:
    """Return the advice for a server without automatic client registration."""
    return (
        f"its provider registers no clients by itself. Register codeloop there, with the redirect address "
        f'http://127.0.0.1:{CALLBACK_PORT}{CALLBACK_PATH}, and set `"oauth": {{"clientId": "..."}}` in mcp.{name}'
    )


async def check_registration(name: str, config: RemoteDefinition, error: SignInNeeded) -> None:
    """Look up the provider of a server that requires a sign-in.
    Raises RegistrationNeeded when none is possible.

    If in doubt it counts as possible: the sign-in itself reports errors.
    """
    if config.oauth is False or (config.oauth and config.oauth.client_id):
        return
    import httpx2

    is_closed = False
    with suppress(*list_request_errors()):
        async with (
            asyncio.timeout(MCP_LIST.seconds),
            make_http_client(config.url, {}, httpx2.Auth(), lambda _status: None) as client,
        ):
            is_closed = await _refuses_registration(config.url, error.challenge, client)
    if is_closed:
        raise RegistrationNeeded(describe_registration(name))


async def _refuses_registration(url: str, challenge: str, client: "httpx2.AsyncClient") -> bool:
    from mcp.client.auth.utils import (
        build_oauth_authorization_server_metadata_discovery_urls,
        build_protected_resource_metadata_discovery_urls,
        create_oauth_metadata_request,
        extract_resource_metadata_from_www_auth,
        handle_auth_metadata_response,
        handle_protected_resource_response,
    )

    provider: str | None = None
    metadata_url = extract_resource_metadata_from_www_auth(make_refusal(challenge))
    for address in build_protected_resource_metadata_discovery_urls(metadata_url, url):
        resource = await handle_protected_resource_response(
            await client.send(create_oauth_metadata_request(address))
        )
        if resource is not None:
            provider = str(resource.authorization_servers[0])
            break
    for address in build_oauth_authorization_server_metadata_discovery_urls(provider, url):
        _, oauth_metadata = await handle_auth_metadata_response(
            await client.send(create_oauth_metadata_request(address))
        )
        if oauth_metadata is not None:
            return oauth_metadata.registration_endpoint is None
    return False
