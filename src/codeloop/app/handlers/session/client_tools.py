"""Handlers of clients' tools: offering them to a session, and answering calls."""

from codeloop.app.handlers import handles
from codeloop.app.project import Project
from codeloop.extend.client_tools import ClientTools
from codeloop.schema import operation
from codeloop.schema.api.session_inputs import (
    AnswerToolCall,
    AskForToolCall,
    OfferTools,
    ReportToolCall,
    ToolPermission,
    ToolsOffered,
    WithdrawTools,
)


@handles(operation.TOOLS_OFFER)
async def offer(project: Project, args: OfferTools) -> ToolsOffered:
    """Offer tools to a session from its next turn on, or make them last."""
    project.store.session(args.session_id)
    return _client_tools(project).offer(args)


@handles(operation.TOOLS_WITHDRAW)
async def withdraw(project: Project, args: WithdrawTools) -> bool:
    """End an offer."""
    return _client_tools(project).withdraw(args.session_id, args.lease_id)


@handles(operation.TOOL_ANSWER)
async def answer(project: Project, args: AnswerToolCall) -> bool:
    """Answer a call."""
    return _client_tools(project).answer(args)


@handles(operation.TOOL_ASK)
async def ask(project: Project, args: AskForToolCall) -> ToolPermission:
    """Ask for what a call is about to do."""
    return await _client_tools(project).ask(args)


@handles(operation.TOOL_REPORT)
async def report(project: Project, args: ReportToolCall) -> bool:
    """Show the progress of a call."""
    return _client_tools(project).report(args)


def _client_tools(project: Project) -> ClientTools:
    return project.shared(_make_client_tools)


def _make_client_tools(project: Project) -> ClientTools:
    """Return the offers of a project's clients. They end with its work tree."""
    engine, store = project.engine, project.store
    tools = ClientTools(store.publish_live, lambda session, message: store.context_view(session).agent_of(message))
    project.workspace.adopt(tools)
    project.runs.toolbox_of = lambda session_id: tools.toolbox_of(session_id, engine.toolbox)
    return tools
