"""Signing in at MCP servers for a client that is somewhere else: the address to open, the code that comes back."""

from urllib.parse import parse_qs, urlsplit

from codeloop.app.handlers import handles
from codeloop.app.handlers.project.mcp import server_named, servers_in, status_of
from codeloop.app.project import Project
from codeloop.extend.mcp.sign_in.callback import open_browser
from codeloop.extend.mcp.sign_in.login import BackgroundSignIn, SignInImpossible
from codeloop.schema import operation
from codeloop.schema.api.project import McpAuthCode, McpAuthRemoved, McpAuthStart, McpName, MCPStatus
from codeloop.schema.errors import OperationError
from codeloop.schema.live_events import McpAddress, McpBrowserOpenFailed


@handles(operation.MCP_AUTH_START)
async def start(project: Project, args: McpName) -> McpAuthStart:
    """Begin to sign in at a server, or return the address of the sign-in that goes on.

    Raises OperationError when there is no such server, or nobody signs in there.
    """
    url = await _address(_begin_sign_in(project, args))
    return McpAuthStart(authorization_url=url, oauth_state=parse_qs(urlsplit(url).query).get("state", [""])[0])


@handles(operation.MCP_AUTH_CALLBACK)
async def callback(project: Project, args: McpAuthCode) -> MCPStatus:
    """Finish a sign-in with the code that it gave, and connect the server; its status says how that went."""
    server = server_named(project, args.name)
    going_on = servers_in(project).sign_in_of(server)
    if going_on is None:
        raise OperationError("BadRequest", f"Nobody is signing in at {args.name}. Begin it: POST /mcp/{args.name}/auth")
    if not going_on.is_over:
        going_on.paste(args.code)
    await going_on.wait()
    return status_of(server)


@handles(operation.MCP_AUTH_AUTHENTICATE)
async def authenticate(project: Project, args: McpName) -> MCPStatus:
    """Sign in at a server with the browser of this machine, and wait for that.

    Where there is none, an event tells the address, and the sign-in can be finished with its code.
    """
    server = server_named(project, args.name)
    going_on = _begin_sign_in(project, args)
    url = await _address(going_on)
    if not await open_browser(url):
        project.publish_live(McpBrowserOpenFailed(properties=McpAddress(mcp_name=args.name, url=url)))
    await going_on.wait()
    return status_of(server)


@handles(operation.MCP_AUTH_REMOVE)
async def remove(project: Project, args: McpName) -> McpAuthRemoved:
    """Forget the sign-in at a server. Raises OperationError: there is no such server."""
    await servers_in(project).sign_out(server_named(project, args.name))
    return McpAuthRemoved(success=True)


def _begin_sign_in(project: Project, args: McpName) -> BackgroundSignIn:
    return servers_in(project).begin_sign_in(server_named(project, args.name))


async def _address(going_on: BackgroundSignIn) -> str:
    try:
        return await going_on.address()
    except SignInImpossible as error:
        raise OperationError("McpUnsupportedOAuthError", str(error)) from error
