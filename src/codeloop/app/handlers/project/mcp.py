"""Handlers of MCP servers: their states, adding, connecting and disconnecting them, and their resources."""

from codeloop.app.extended.mcp import find_server_tools
from codeloop.app.handlers import handles
from codeloop.app.project import Project
from codeloop.extend.mcp.cache.definition import definition_of
from codeloop.extend.mcp.mcp_server import McpServer, State, is_sandboxed
from codeloop.extend.mcp.mcp_servers import McpServers
from codeloop.extend.mcp.tools.prompts import argument_values
from codeloop.extend.mcp.transport.failures import ServerFailed
from codeloop.schema import operation
from codeloop.schema.api.project import (
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

_STATUSES: dict[State, MCPStatus] = {
    "configured": MCPStatus(status="disabled", state="configured"),
    "known": MCPStatus(status="connected", state="known"),
    "starting": MCPStatus(status="disabled", state="starting"),
    "connected": MCPStatus(status="connected"),
    "disabled": MCPStatus(status="disabled"),
    "needs_auth": MCPStatus(status="needs_auth"),
}


def servers_in(project: Project) -> McpServers:
    """Return the MCP servers of a project, to which more can be added."""
    return project.services.open_mcp().running


@handles(operation.MCP_STATUS)
async def get_statuses(project: Project, _args: NoArguments) -> dict[str, MCPStatus]:
    """Return the state of each MCP server, by name."""
    return _describe_statuses(servers_in(project)) if project.services.mcp is not None else {}


@handles(operation.MCP_ADD)
async def add(project: Project, args: AddMcp) -> dict[str, MCPStatus]:
    """Add a server for as long as the project is open, and connect to it; return the states of all servers.

    Its tools are offered from the next request on. Raises OperationError when the definition is invalid.
    """
    definition = definition_of(args.name, args.config)
    if definition.problem:
        raise OperationError("BadRequest", f"{definition.problem}.")
    servers = servers_in(project)
    server = await servers.add(definition)
    if definition.is_enabled:
        await _try_connect(server)
    project.offer(find_server_tools(project.settings, servers.table))
    return _describe_statuses(servers)


@handles(operation.MCP_CONNECT)
async def connect(project: Project, args: McpName) -> bool:
    """Enable a server and connect to it; return whether that worked. Raises OperationError: no such server."""
    server = find_server(project, args.name)
    server.is_off = False
    return await _try_connect(server)


@handles(operation.MCP_DISCONNECT)
async def disconnect(project: Project, args: McpName) -> bool:
    """Stop a server and disable it. Raises OperationError: no such server."""
    server = find_server(project, args.name)
    server.is_off = True
    await server.disconnect()
    return True


@handles(operation.RESOURCE_LIST)
async def list_resources(project: Project, _args: NoArguments) -> dict[str, McpResource]:
    """Return the resources of the servers that are known."""
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


@handles(operation.MCP_COMPLETE)
async def complete(project: Project, args: CompleteMcpPrompt) -> McpPromptCompletion:
    """Complete an argument of a server's prompt; empty if the server offers nothing, or answers too late."""
    table = project.services.mcp
    return await argument_values(table, args) if table is not None else McpPromptCompletion()


async def _try_connect(server: McpServer) -> bool:
    try:
        await server.connect()
    except ServerFailed:
        return False
    return True


def find_server(project: Project, name: str) -> McpServer:
    """Return a server by name. Raises OperationError: no such server."""
    mcp_server = servers_in(project).by_name.get(name)
    if mcp_server is None:
        raise OperationError("McpServerNotFoundError", f"MCP server not found: {name}")
    return mcp_server


def _describe_statuses(servers: McpServers) -> dict[str, MCPStatus]:
    return {name: status_of(server) for name, server in servers.by_name.items()}


def status_of(server: McpServer) -> MCPStatus:
    """Return a server's state in the form of the API."""
    now = server.status
    sandbox = False if is_sandboxed(server) is False else None
    if now.state in {"failed", "needs_client_registration"}:
        state = "failed" if now.state == "failed" else "needs_client_registration"
        return MCPStatus(status=state, error=now.reason, sandbox=sandbox)
    return replace(_STATUSES[now.state], sandbox=sandbox)
