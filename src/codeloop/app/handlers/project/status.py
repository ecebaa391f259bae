"""What else is there: servers of other protocols, tools, the client's lines for the log."""

import logging
from typing import NoReturn

import msgspec

from codeloop.app.open_models import OneModel
from codeloop.app.project import Project
from codeloop.kit.terminal_text import one_line
from codeloop.model.chat import ModelInfo
from codeloop.permission.defaults import guards
from codeloop.schema.api.project import (
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
from codeloop.schema.errors import OperationError
from codeloop.schema.limits import CLIENT_LOG
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import JSON

_LOG = logging.getLogger("codeloop.client")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
NO_MCP = "codeloop does not connect to MCP servers yet."


async def log(project: Project, args: Log) -> bool:
    """Put a client's line into the log, on one line and cut where it is too long."""
    del project
    extra = f" {msgspec.json.encode(args.extra).decode()}" if args.extra else ""
    line = one_line(f"{args.service}: {args.message[: CLIENT_LOG.value]}{extra}", CLIENT_LOG.value)
    _LOG.log(_LEVELS[args.level], "%s", line)
    return True


async def lsp(project: Project, args: NoArguments) -> list[LspStatus]:
    """Return the language servers that run: none does yet."""
    del project, args
    return []


async def formatter(project: Project, args: NoArguments) -> list[FormatterStatus]:
    """Return the programs that format files: none does yet."""
    del project, args
    return []


async def mcp(project: Project, args: NoArguments) -> dict[str, McpStatus]:
    """Return what the configured MCP servers are doing."""
    del args
    return {
        name: McpStatus(status="disabled")
        if server.get("enabled") is False
        else McpStatus(status="failed", error=NO_MCP)
        for name, server in project.settings.config.mcp.items()
    }


async def add_mcp(project: Project, args: AddMcp) -> dict[str, McpStatus]:
    """Refuse. Raises OperationError."""
    del project, args
    raise OperationError("BadRequest", NO_MCP)


async def connect_mcp(project: Project, args: OfOneMcp) -> bool:
    """Refuse. Raises OperationError."""
    _refuse_mcp(project, args)


async def disconnect_mcp(project: Project, args: OfOneMcp) -> bool:
    """Refuse. Raises OperationError."""
    _refuse_mcp(project, args)


def _refuse_mcp(project: Project, args: OfOneMcp) -> NoReturn:
    if args.name not in project.settings.config.mcp:
        raise OperationError("McpServerNotFoundError", f"MCP server not found: {args.name}")
    raise OperationError("BadRequest", NO_MCP)


async def tool_ids(project: Project, args: NoArguments) -> list[str]:
    """Return the names of all tools."""
    del args
    return [tool.name for tool in project.engine.toolbox.tools]


async def tool_list(project: Project, args: AskTools) -> list[ToolItem]:
    """Return the tools that a model is offered when the default agent works. Raises CodeloopError: no such model."""
    info = _model(project, args)
    if not info.tool_call:
        return []
    engine = project.engine
    agent = engine.agent(project.settings.config.default_agent or "build")
    rules = tuple(agent.permission)
    within = {spec.name for spec in engine.toolbox.specs(info.id, guards(rules))}
    offered = engine.toolbox.specs(info.id, engine.rules, rules)
    return [
        ToolItem(id=spec.name, description=spec.description, parameters=spec.parameters)
        for spec in offered
        if spec.name in within
    ]


def _model(project: Project, args: AskTools) -> ModelInfo:
    if isinstance(project.models, OneModel) and project.models.info.provider_id == args.provider:
        return project.models.info
    return project.providers.info(f"{args.provider}/{args.model}")


async def capabilities(project: Project, args: NoArguments) -> Capabilities:
    """Say that there are no routes for subagents in the background: the tool `task` needs none."""
    del project, args
    return Capabilities(background_subagents=False)


async def console(project: Project, args: NoArguments) -> ConsoleState:
    """Return nothing: there is no service of ours."""
    del project, args
    return ConsoleState(console_managed_providers=[], switchable_org_count=0)


async def resources(project: Project, args: NoArguments) -> JSON:
    """Return nothing: resources come from MCP servers."""
    del project, args
    return {}


async def workspaces(project: Project, args: NoArguments) -> list[JSON]:
    """Return nothing: a project is worked on where it is."""
    del project, args
    return []


async def workspace_status(project: Project, args: NoArguments) -> list[JSON]:
    """Return nothing, as `workspaces`."""
    del project, args
    return []
