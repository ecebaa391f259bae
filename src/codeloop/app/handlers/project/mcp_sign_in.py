"""Handlers that sign in at MCP servers by OAuth: start a sign-in,
and finish it with a browser or with its code.
"""

from urllib.parse import parse_qs, urlsplit

from codeloop.app.handlers.project.mcp import describe_status, find_server, open_mcp_servers
from codeloop.app.project import Project
from codeloop.extend.mcp.sign_in.background_sign_in import BackgroundSignIn
from codeloop.extend.mcp.sign_in.login import SignInImpossible
from codeloop.kit.desktop_programs import open_browser
from codeloop.schema.api.mcp import McpAuthCode, McpAuthRemoved, McpAuthStart, McpName, MCPStatus
from codeloop.schema.errors import OperationError
from codeloop.schema.live_events import McpBrowserOpenFailed
from codeloop.schema.resources import McpAddress


async def start_sign_in(project: Project, args: McpName) -> McpAuthStart:
    """Start a sign-in at a server, or continue a started one;
    return the address to open in a browser.

    Raises OperationError if there is no such server, or it has no sign-in.
    """
    url = await _wait_for_address(_begin_sign_in(project, args))
    return McpAuthStart(
        authorization_url=url, oauth_state=parse_qs(urlsplit(url).query).get("state", [""])[0]
    )


async def finish_sign_in(project: Project, args: McpAuthCode) -> MCPStatus:
    """Finish a sign-in with its code, and connect to the server; return the server's state."""
    server = find_server(project, args.name)
    sign_in = open_mcp_servers(project).get_sign_in(server)
    if sign_in is None:
        raise OperationError(
            "BadRequest",
            f"Nobody is signing in at {args.name}. Begin it: POST /mcp/{args.name}/auth",
        )
    if not sign_in.is_over:
        sign_in.paste(args.code)
    await sign_in.wait()
    return describe_status(server)


async def sign_in_with_browser(project: Project, args: McpName) -> MCPStatus:
    """Sign in at a server with a browser on this machine, wait for the end,
    and return the server's state.

    If no browser can be opened, an event has the address,
    and the sign-in can be finished with its code.
    """
    server = find_server(project, args.name)
    sign_in = _begin_sign_in(project, args)
    url = await _wait_for_address(sign_in)
    if not await open_browser(url):
        project.publish_live(
            McpBrowserOpenFailed(properties=McpAddress(mcp_name=args.name, url=url))
        )
    await sign_in.wait()
    return describe_status(server)


async def remove_sign_in(project: Project, args: McpName) -> McpAuthRemoved:
    """Delete the credentials for a server. Raises OperationError if there is no such server."""
    await open_mcp_servers(project).sign_out(find_server(project, args.name))
    return McpAuthRemoved(success=True)


def _begin_sign_in(project: Project, args: McpName) -> BackgroundSignIn:
    return open_mcp_servers(project).begin_sign_in(find_server(project, args.name))


async def _wait_for_address(sign_in: BackgroundSignIn) -> str:
    try:
        return await sign_in.wait_for_address()
    except SignInImpossible as error:
        raise OperationError("McpUnsupportedOAuthError", str(error)) from error
