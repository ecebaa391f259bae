"""What else is there."""

from codeloop.app.project import Project
from codeloop.schema.operation import NoArguments
from codeloop.schema.project import (
    AddMcp,
    AskTools,
    Capabilities,
    ConsoleState,
    FormatterStatus,
    Log,
    LspStatus,
    McpStatus,
    OfOneMcp,
    ToolItem,
)
from codeloop.schema.wire import JSON


async def log(project: Project, args: Log) -> bool:
    """app.log."""
    raise NotImplementedError


async def lsp(project: Project, args: NoArguments) -> list[LspStatus]:
    """lsp.status."""
    raise NotImplementedError


async def formatter(project: Project, args: NoArguments) -> list[FormatterStatus]:
    """formatter.status."""
    raise NotImplementedError


async def mcp(project: Project, args: NoArguments) -> dict[str, McpStatus]:
    """mcp.status."""
    raise NotImplementedError


async def add_mcp(project: Project, args: AddMcp) -> dict[str, McpStatus]:
    """mcp.add."""
    raise NotImplementedError


async def connect_mcp(project: Project, args: OfOneMcp) -> bool:
    """mcp.connect."""
    raise NotImplementedError


async def disconnect_mcp(project: Project, args: OfOneMcp) -> bool:
    """mcp.disconnect."""
    raise NotImplementedError


async def tool_ids(project: Project, args: NoArguments) -> list[str]:
    """tool.ids."""
    raise NotImplementedError


async def tool_list(project: Project, args: AskTools) -> list[ToolItem]:
    """tool.list."""
    raise NotImplementedError


async def capabilities(project: Project, args: NoArguments) -> Capabilities:
    """experimental.capabilities.get."""
    raise NotImplementedError


async def console(project: Project, args: NoArguments) -> ConsoleState:
    """experimental.console.get."""
    raise NotImplementedError


async def resources(project: Project, args: NoArguments) -> JSON:
    """experimental.resource.list."""
    raise NotImplementedError


async def workspaces(project: Project, args: NoArguments) -> list[JSON]:
    """experimental.workspace.list."""
    raise NotImplementedError


async def workspace_status(project: Project, args: NoArguments) -> list[JSON]:
    """experimental.workspace.status."""
    raise NotImplementedError
