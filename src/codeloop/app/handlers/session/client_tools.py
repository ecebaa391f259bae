"""Handlers of tools that a client runs itself: the client offers them to a session,
and answers their calls.
"""

from codeloop.app.project import Project
from codeloop.schema.api.client_tools import (
    AnswerToolCall,
    AskForToolCall,
    OfferTools,
    ReportToolCall,
    ToolPermission,
    ToolsOffered,
    WithdrawTools,
)


async def offer_tools(project: Project, args: OfferTools) -> ToolsOffered:
    """Offer tools to a session from its next turn on, or renew the lease of an offer."""
    project.store.get_session(args.session_id)
    return project.services.client_tools.offer(args)


async def withdraw_tools(project: Project, args: WithdrawTools) -> bool:
    """Withdraw an offer; return whether there was one."""
    return project.services.client_tools.withdraw(args.session_id, args.lease_id)


async def answer_call(project: Project, args: AnswerToolCall) -> bool:
    """Pass on the result of a call; return whether the call still waited for it."""
    return project.services.client_tools.answer(args)


async def ask_permission(project: Project, args: AskForToolCall) -> ToolPermission:
    """Ask the user for the permission that a call of the client's tool needs."""
    return await project.services.client_tools.ask(args)


async def report_progress(project: Project, args: ReportToolCall) -> bool:
    """Show the progress of a call to followers."""
    return project.services.client_tools.report(args)
