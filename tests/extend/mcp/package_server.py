"""A server written with the package `mcp`, over HTTP: `package_server.py
http|sse|oauth|closed PORT [FOLDER]`.

`closed` registers no clients by itself; it knows the one named `known`,
which is called back at the port in the
file `callback` of the folder. While there is a file `down` in the folder, the
token endpoint answers 503; what was revoked is noted in `revoked`.
"""

import secrets
import sys
import time
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import Context
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl

KIND, PORT = sys.argv[1], int(sys.argv[2])
FOLDER = Path(sys.argv[3]) if len(sys.argv) > 3 else None
LIVES = 3600


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Agrees to everything, keeps everything in memory, and notes each renewal in the folder."""

    def __init__(self) -> None:
        port = (
            (FOLDER / "callback").read_text()
            if FOLDER and (FOLDER / "callback").exists()
            else "19876"
        )
        redirect = AnyUrl(f"http://127.0.0.1:{port}/mcp/oauth/callback")
        known = OAuthClientInformationFull(
            client_id="known",
            redirect_uris=[redirect],
            token_endpoint_auth_method="none",
            scope="read",
        )
        self.clients: dict[str, OAuthClientInformationFull] = {"known": known}
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.refreshes: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[str(client_info.client_id)] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        code = AuthorizationCode(
            code=secrets.token_hex(16),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=str(client.client_id),
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._given(
            str(client.client_id), authorization_code.scopes, authorization_code.resource
        )

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self.refreshes.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self.refreshes[refresh_token.token]
        if FOLDER:
            with (FOLDER / "renewed").open("a") as file:
                file.write("x")
        return self._given(str(client.client_id), scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.tokens.get(token)

    async def revoke_token(self, token: Any) -> None:
        self.tokens.pop(token.token, None)
        self.refreshes.pop(token.token, None)
        if FOLDER:
            with (FOLDER / "revoked").open("a") as file:
                file.write("x")

    def _given(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = secrets.token_hex(16), secrets.token_hex(16)
        self.tokens[access] = AccessToken(
            token=access,
            client_id=client_id,
            scopes=scopes,
            expires_at=int(time.time()) + LIVES,
            resource=resource,
        )
        self.refreshes[refresh] = RefreshToken(
            token=refresh, client_id=client_id, scopes=scopes, resource=resource
        )
        return OAuthToken(
            access_token=access, refresh_token=refresh, expires_in=LIVES, scope=" ".join(scopes)
        )


def make() -> MCPServer[Any]:
    """Return the server."""
    if KIND not in {"oauth", "closed"}:
        return MCPServer("packaged", log_level="ERROR")
    here = AnyHttpUrl(f"http://127.0.0.1:{PORT}")
    settings = AuthSettings(
        issuer_url=here,
        resource_server_url=AnyHttpUrl(f"http://127.0.0.1:{PORT}/mcp"),
        client_registration_options=ClientRegistrationOptions(enabled=KIND == "oauth"),
        revocation_options=RevocationOptions(enabled=True),
    )
    return MCPServer("packaged", log_level="ERROR", auth_server_provider=Provider(), auth=settings)


server = make()


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def steps(context: Context[Any, Any]) -> str:
    """Report each step."""
    for step in range(3):
        await context.report_progress(step + 1, 3, f"step {step + 1}")
    return "three steps"


@server.tool()
def header(name: str, context: Context[Any, Any]) -> str:
    """Return a header of the request."""
    return (context.headers or {}).get(name.lower(), "none")


async def touch(uri: str, context: Context[Any, Any]) -> str:
    """Report that a resource has changed."""
    await context.notify_resource_updated(uri)
    return "touched"


async def grow(context: Context[Any, Any]) -> str:
    """Have one more tool."""
    server.add_tool(lambda: "more", name="more", description="One more.")
    await context.notify_tools_changed()
    return "grown"


if KIND == "stdio":
    server.add_tool(touch)
    server.add_tool(grow)


@server.resource("note://today")
def today() -> str:
    """Today's note."""
    return "Buy milk."


@server.prompt()
def review(what: str) -> str:
    """Review something."""
    return f"Please review {what}."


class Failing:
    """The application, whose token endpoint fails while it is told to."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if (
            scope["type"] == "http"
            and scope["path"] == "/token"
            and FOLDER
            and (FOLDER / "down").exists()
        ):
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b"try later"})
            return
        await self.app(scope, receive, send)


if __name__ == "__main__":
    if KIND == "stdio":
        server.run()
    elif KIND == "sse":
        server.run("sse", port=PORT)
    elif FOLDER:
        uvicorn.run(Failing(server.streamable_http_app()), port=PORT, log_level="error")
    else:
        server.run("streamable-http", port=PORT)
