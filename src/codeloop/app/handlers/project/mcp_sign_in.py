"""Handlers that sign in at MCP servers: begin a sign-in, return its address, and take the code that comes back."""

from urllib.parse import parse_qs, urlsplit

from codeloop.app.handlers import handles
from codeloop.app.handlers.project.mcp import find_server, servers_in, status_of
from codeloop.app.project import Project
from codeloop.extend.mcp.sign_in.callback import open_browser
from codeloop.extend.mcp.sign_in.login import BackgroundSignIn, SignInImpossible
from codeloop.schema import operation
from codeloop.schema.api.project import McpAuthCode, McpAuthRemoved, McpAuthStart, McpName, MCPStatus
from codeloop.schema.errors import OperationError
from codeloop.schema.live_events import McpAddress, McpBrowserOpenFailed


@handles(operation.MCP_AUTH_START)
async def start(project: Project, args: McpName) -> McpAuthStart:
    """Begin a sign-in at a server, or continue the one under way; return the address to open in a browser.

    Raises OperationError when there is no such server, or it has no sign-in.
    """
    url = await _fetch_address(_begin_sign_in(project, args))
    return McpAuthStart(authorization_url=url, oauth_state=parse_qs(urlsplit(url).query).get("state", [""])[0])


@handles(operation.MCP_AUTH_CALLBACK)
async def callback(project: Project, args: McpAuthCode) -> MCPStatus:
    """Finish a sign-in with its code, and connect to the server; return the server's state."""
    server = find_server(project, args.name)
    sign_in = servers_in(project).sign_in_of(server)
    if sign_in is None:
        raise OperationError("BadRequest", f"Nobody is signing in at {args.name}. Begin it: POST /mcp/{args.name}/auth")
    if not sign_in.is_over:
        sign_in.paste(args.code)
    await sign_in.wait()
    return status_of(server)


@handles(operation.MCP_AUTH_AUTHENTICATE)
async def authenticate(project: Project, args: McpName) -> MCPStatus:
    """Sign in at a server with a browser on this machine, and wait until that is done; return the server's state.

    Without a browser an event has the address, and the sign-in can be finished with its code.
    """
    server = find_server(project, args.name)
    sign_in = _begin_sign_in(project, args)
    url = await _fetch_address(sign_in)
    if not await open_browser(url):
        project.publish_live(McpBrowserOpenFailed(properties=McpAddress(mcp_name=args.name, url=url)))
    await sign_in.wait()
    return status_of(server)


@handles(operation.MCP_AUTH_REMOVE)
async def remove(project: Project, args: McpName) -> McpAuthRemoved:
    """Forget the sign-in at a server. Raises OperationError: there is no such server."""
    await servers_in(project).sign_out(find_server(project, args.name))
    return McpAuthRemoved(success=True)


def _begin_sign_in(project: Project, args: McpName) -> BackgroundSignIn:
    return servers_in(project).begin_sign_in(find_server(project, args.name))


async def _fetch_address(sign_in: BackgroundSignIn) -> str:
    try:
        return await sign_in.address()
    except SignInImpossible as error:
        raise OperationError("McpUnsupportedOAuthError", str(error)) from error
