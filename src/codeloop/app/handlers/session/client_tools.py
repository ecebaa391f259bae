"""Handlers of tools that a client carries out: offering them to a session, and answering their calls."""

from codeloop.app.handlers import handles
from codeloop.app.project import Project
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
    """Offer tools to a session from its next turn on, or extend the lease of an offer."""
    project.store.get_session(args.session_id)
    return project.services.client_tools.offer(args)


@handles(operation.TOOLS_WITHDRAW)
async def withdraw(project: Project, args: WithdrawTools) -> bool:
    """Withdraw an offer; return whether there was one."""
    return project.services.client_tools.withdraw(args.session_id, args.lease_id)


@handles(operation.TOOL_ANSWER)
async def answer(project: Project, args: AnswerToolCall) -> bool:
    """Take the result of a call; return whether the call was waiting for it."""
    return project.services.client_tools.answer(args)


@handles(operation.TOOL_ASK)
async def ask(project: Project, args: AskForToolCall) -> ToolPermission:
    """Ask the user for permission on behalf of a call that the client carries out."""
    return await project.services.client_tools.ask(args)


@handles(operation.TOOL_REPORT)
async def report(project: Project, args: ReportToolCall) -> bool:
    """Show the progress of a call."""
    return project.services.client_tools.report(args)
