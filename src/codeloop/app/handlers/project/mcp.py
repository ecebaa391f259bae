"""Handlers of MCP servers: their states, adding, connecting and disconnecting them,
and their resources.
"""

from codeloop.app.extensions.mcp import make_server_tools
from codeloop.app.project import Project
from codeloop.extend.mcp.definition import parse_definition
from codeloop.extend.mcp.mcp_server import McpServer, is_sandboxed
from codeloop.extend.mcp.mcp_servers import McpServers
from codeloop.extend.mcp.server_status import ServerState
from codeloop.extend.mcp.tools.prompts import complete_argument
from codeloop.extend.mcp.transport.failures import ServerFailed
from codeloop.schema.api.mcp import (
    AddMcp,
    CompleteMcpPrompt,
    McpName,
    McpPromptCompletion,
    McpResource,
    MCPStatus,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import replace

# OpenCode's API has fewer states: `state` names ours where `status` can't.
_STATUSES: dict[ServerState, MCPStatus] = {
    "configured": MCPStatus(status="disabled", state="configured"),
    "known": MCPStatus(status="connected", state="known"),
    "starting": MCPStatus(status="disabled", state="starting"),
    "connected": MCPStatus(status="connected"),
    "disabled": MCPStatus(status="disabled"),
    "needs_auth": MCPStatus(status="needs_auth"),
}


def open_mcp_servers(project: Project) -> McpServers:
    """Return the MCP servers of a project, even if none is configured;
    more can be added to them.
    """
    return project.services.open_mcp_table().running


async def get_statuses(project: Project, _args: NoArguments) -> dict[str, MCPStatus]:
    """Return the state of each MCP server, by name."""
    return _describe_statuses(open_mcp_servers(project)) if project.services.mcp is not None else {}


async def add_server(project: Project, args: AddMcp) -> dict[str, MCPStatus]:
    """Add a server for as long as the project is open, and connect to it;
    return the states of all servers.

    Its tools are offered from the next request on.
    Raises OperationError when the definition is invalid.
    """
    definition = parse_definition(args.name, args.config)
    if definition.problem:
        raise OperationError("BadRequest", f"{definition.problem}.")
    servers = open_mcp_servers(project)
    server = await servers.add(definition)
    if definition.is_enabled:
        await _try_connect(server)
    project.offer_server_tools(make_server_tools(project.settings, servers.table))
    return _describe_statuses(servers)


async def connect_server(project: Project, args: McpName) -> bool:
    """Enable a server and connect to it; return whether that worked.
    Raises OperationError: no such server.
    """
    server = find_server(project, args.name)
    server.is_off = False
    return await _try_connect(server)


async def disconnect_server(project: Project, args: McpName) -> bool:
    """Stop a server and disable it. Raises OperationError: no such server."""
    server = find_server(project, args.name)
    server.is_off = True
    await server.disconnect()
    return True


async def list_resources(project: Project, _args: NoArguments) -> dict[str, McpResource]:
    """Return the known resources of the servers, by `server:uri`; no server is started."""
    table = project.services.mcp
    return {
        f"{name}:{each.uri}": McpResource(
            name=each.name,
            uri=each.uri,
            client=name,
            description=each.description or None,
            mime_type=each.mime or None,
        )
        for name, listing in (table.listings.items() if table is not None else ())
        for each in listing.resources
        if not each.is_template
    }


async def complete_prompt_argument(
    project: Project, args: CompleteMcpPrompt
) -> McpPromptCompletion:
    """Return completions for an argument of a server's prompt;
    empty if the server has none, or answers too late.
    """
    table = project.services.mcp
    return await complete_argument(table, args) if table is not None else McpPromptCompletion()


async def _try_connect(server: McpServer) -> bool:
    try:
        await server.connect()
    except ServerFailed:
        return False
    return True


def find_server(project: Project, name: str) -> McpServer:
    """Return a server by name. Raises OperationError: no such server."""
    mcp_server = open_mcp_servers(project).by_name.get(name)
    if mcp_server is None:
        raise OperationError("McpServerNotFoundError", f"MCP server not found: {name}")
    return mcp_server


def _describe_statuses(servers: McpServers) -> dict[str, MCPStatus]:
    return {name: describe_status(server) for name, server in servers.by_name.items()}


def describe_status(server: McpServer) -> MCPStatus:
    """Return a server's state in the form of the API."""
    status = server.status
    # Clients get the field only for a server that runs without a sandbox.
    sandbox = False if is_sandboxed(server) is False else None
    if status.state in {"failed", "needs_client_registration"}:
        # Written out for the type checker, which does not narrow a literal type by `in`.
        state = "failed" if status.state == "failed" else "needs_client_registration"
        return MCPStatus(status=state, error=status.reason, sandbox=sandbox)
    return replace(_STATUSES[status.state], sandbox=sandbox)
