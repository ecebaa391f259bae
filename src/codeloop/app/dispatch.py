"""Which function answers which operation; its module is loaded by the first request for it."""

import errno
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from codeloop.app.project import Project
from codeloop.kit.lazy import load
from codeloop.schema import operation
from codeloop.schema.api.project import ConsoleState, ExperimentalCapabilities
from codeloop.schema.operation import Gives, Operation, Takes
from codeloop.store.database import StoreError

Handler = Callable[[Project, Any], Awaitable[Any]]


HANDLERS: dict[str, str] = {
    operation.SESSION_CREATE.id: "app.handlers.session.session:create",
    operation.SESSION_LIST.id: "app.handlers.session.session:listed",
    operation.SESSION_STATUS.id: "app.handlers.session.session:status",
    operation.SESSION_SEARCH.id: "app.handlers.session.search:search",
    operation.SESSION_EVERYTHING.id: "app.handlers.session.session:everything",
    operation.SESSION_STATS.id: "app.handlers.session.stats:stats",
    operation.SESSION_IMPORT.id: "app.handlers.session.import_:import_session",
    operation.SESSION_GET.id: "app.handlers.session.session:get",
    operation.SESSION_UPDATE.id: "app.handlers.session.session:update",
    operation.SESSION_DELETE.id: "app.handlers.session.session:delete",
    operation.SESSION_CHILDREN.id: "app.handlers.session.session:children",
    operation.SESSION_FIND.id: "app.handlers.session.find:find",
    operation.SESSION_COST.id: "app.handlers.reports.cost:cost",
    operation.SESSION_CONTEXT.id: "app.handlers.reports.context:context",
    operation.SESSION_TODO.id: "app.handlers.session.session:todo",
    operation.SESSION_FORK.id: "app.handlers.session.fork:fork",
    operation.SESSION_QUEUED.id: "app.handlers.session.message:waiting",
    operation.SESSION_MESSAGES.id: "app.handlers.session.message:messages",
    operation.MESSAGE_GET.id: "app.handlers.session.message:get",
    operation.MESSAGE_DELETE.id: "app.handlers.session.message:delete",
    operation.PART_UPDATE.id: "app.handlers.session.message:update_part",
    operation.PART_DELETE.id: "app.handlers.session.message:delete_part",
    operation.PROMPT.id: "app.handlers.session.prompt:prompt",
    operation.PROMPT_ASYNC.id: "app.handlers.session.prompt:prompt_async",
    operation.COMMAND.id: "app.handlers.session.command:command",
    operation.SUMMARIZE.id: "app.handlers.session.prompt:summarize",
    operation.ABORT.id: "app.handlers.session.prompt:abort",
    operation.SESSION_REVERT.id: "app.handlers.session.revert:revert",
    operation.SESSION_UNREVERT.id: "app.handlers.session.revert:unrevert",
    operation.UNDO_FILES.id: "app.handlers.session.undo_files:undo_files",
    operation.PERMISSION_LIST.id: "app.handlers.project.permission:pending",
    operation.PERMISSION_RULES.id: "app.handlers.project.permission:in_force",
    operation.PERMISSION_REVOKE.id: "app.handlers.project.permission:revoke",
    operation.PERMISSION_REPLY.id: "app.handlers.project.permission:reply",
    operation.QUESTION_LIST.id: "app.handlers.project.question:pending",
    operation.QUESTION_REPLY.id: "app.handlers.project.question:reply",
    operation.QUESTION_REJECT.id: "app.handlers.project.question:reject",
    operation.AGENT_LIST.id: "app.handlers.project.agents:agents",
    operation.COMMAND_LIST.id: "app.handlers.session.command:listed",
    operation.SKILL_LIST.id: "app.handlers.project.agents:skills",
    operation.SESSION_SHELL.id: "app.handlers.session.shell:shell",
    operation.SESSION_DIFF.id: "app.handlers.session.diff:diff",
    operation.PATH_GET.id: "app.handlers.project.project:path",
    operation.PROJECT_LIST.id: "app.handlers.project.project:projects",
    operation.PROJECT_CURRENT.id: "app.handlers.project.project:current",
    operation.PROJECT_DIRECTORIES.id: "app.handlers.project.project:directories",
    operation.LOCATION_GET.id: "app.handlers.project.project:location",
    operation.CONFIG_GET.id: "app.handlers.project.config:get",
    operation.CONFIG_SETTINGS.id: "app.handlers.project.config:whole",
    operation.CONFIG_ORIGINS.id: "app.handlers.project.config:origins",
    operation.CONFIG_WARNINGS.id: "app.handlers.project.config:warnings",
    operation.CONFIG_UPDATE.id: "app.handlers.project.config:update",
    operation.CONFIG_PROVIDERS.id: "app.handlers.project.providers:usable",
    operation.PROVIDER_LIST.id: "app.handlers.project.providers:known",
    operation.PROVIDER_MODELS.id: "app.handlers.project.own_provider:models",
    operation.PROVIDER_ADD.id: "app.handlers.project.own_provider:add",
    operation.PROVIDER_AUTH.id: "app.handlers.project.providers:methods",
    operation.PROVIDER_AUTHORIZE.id: "app.handlers.project.providers:authorize",
    operation.PROVIDER_CALLBACK.id: "app.handlers.project.providers:callback",
    operation.AUTH_SET.id: "app.handlers.project.providers:set_auth",
    operation.AUTH_REMOVE.id: "app.handlers.project.providers:remove_auth",
    operation.LOG.id: "app.handlers.project.status:log",
    operation.MCP_STATUS.id: "app.handlers.project.mcp:status",
    operation.MCP_ADD.id: "app.handlers.project.mcp:add",
    operation.MCP_CONNECT.id: "app.handlers.project.mcp:connect",
    operation.MCP_DISCONNECT.id: "app.handlers.project.mcp:disconnect",
    operation.MCP_AUTH_START.id: "app.handlers.project.mcp_auth:start",
    operation.MCP_AUTH_REMOVE.id: "app.handlers.project.mcp_auth:remove",
    operation.MCP_AUTH_CALLBACK.id: "app.handlers.project.mcp_auth:callback",
    operation.MCP_AUTH_AUTHENTICATE.id: "app.handlers.project.mcp_auth:authenticate",
    operation.MCP_COMPLETE.id: "app.handlers.project.mcp:complete",
    operation.RESOURCE_LIST.id: "app.handlers.project.mcp:resources",
    operation.LSP_STATUS.id: "app.handlers.project.lsp:status",
    operation.FIND_SYMBOLS.id: "app.handlers.project.lsp:symbols",
    operation.FORMATTER_STATUS.id: "app.handlers.project.status:formatters",
    operation.TOOL_IDS.id: "app.handlers.project.status:tool_ids",
    operation.TOOL_LIST.id: "app.handlers.project.status:tool_list",
    operation.VCS_GET.id: "app.handlers.workspace.vcs:get",
    operation.VCS_STATUS.id: "app.handlers.workspace.vcs:status",
    operation.VCS_DIFF.id: "app.handlers.workspace.vcs:diff",
    operation.FILE_LIST.id: "app.handlers.workspace.files:listed",
    operation.FILE_READ.id: "app.handlers.workspace.files:read",
    operation.FILE_STATUS.id: "app.handlers.workspace.files:status",
    operation.FIND_TEXT.id: "app.handlers.workspace.find:text",
    operation.FIND_FILES.id: "app.handlers.workspace.find:files",
    operation.FS_FIND.id: "app.handlers.workspace.find:fs_find",
    operation.PTY_SHELLS.id: "app.handlers.workspace.pty:shells",
    operation.PTY_LIST.id: "app.handlers.workspace.pty:listed",
    operation.PTY_CREATE.id: "app.handlers.workspace.pty:create",
    operation.PTY_GET.id: "app.handlers.workspace.pty:get",
    operation.PTY_UPDATE.id: "app.handlers.workspace.pty:update",
    operation.PTY_REMOVE.id: "app.handlers.workspace.pty:remove",
    operation.PTY_TICKET.id: "app.handlers.workspace.pty:ticket",
    operation.TUI_APPEND_PROMPT.id: "app.handlers.project.tui:append_prompt",
    operation.TUI_SUBMIT_PROMPT.id: "app.handlers.project.tui:submit_prompt",
    operation.TUI_CLEAR_PROMPT.id: "app.handlers.project.tui:clear_prompt",
    operation.TUI_OPEN_HELP.id: "app.handlers.project.tui:open_help",
    operation.TUI_OPEN_SESSIONS.id: "app.handlers.project.tui:open_sessions",
    operation.TUI_OPEN_THEMES.id: "app.handlers.project.tui:open_themes",
    operation.TUI_OPEN_MODELS.id: "app.handlers.project.tui:open_models",
    operation.TUI_EXECUTE.id: "app.handlers.project.tui:execute",
    operation.TUI_TOAST.id: "app.handlers.project.tui:toast",
    operation.TUI_PUBLISH.id: "app.handlers.project.tui:publish",
    operation.TUI_SELECT.id: "app.handlers.project.tui:select",
    operation.SESSION_INIT.id: "app.handlers.session.command:init",
    operation.SESSION_SHARE.id: "app.handlers.session.session:share",
    operation.SESSION_UNSHARE.id: "app.handlers.session.session:share",
    operation.TOOLS_OFFER.id: "app.handlers.session.client_tools:offer",
    operation.TOOLS_WITHDRAW.id: "app.handlers.session.client_tools:withdraw",
    operation.TOOL_ANSWER.id: "app.handlers.session.client_tools:answer",
    operation.TOOL_ASK.id: "app.handlers.session.client_tools:ask",
    operation.TOOL_REPORT.id: "app.handlers.session.client_tools:report",
    operation.PERMISSION_RESPOND.id: "app.handlers.project.permission:respond",
}
"""Where the handler of an operation is: an async function of the project and the operation's arguments."""

ANSWERS: dict[str, Any] = {
    operation.WORKSPACE_LIST.id: [],
    operation.WORKSPACE_STATUS.id: [],
    operation.CAPABILITIES.id: ExperimentalCapabilities(background_subagents=False),
    operation.CONSOLE.id: ConsoleState(console_managed_providers=[], switchable_org_count=0),
}
"""What is answered everywhere and always: there is no such thing here."""

DISK = {
    errno.ENOSPC: "There is no space on the disk",
    errno.EDQUOT: "There is no space left for you on the disk",
    errno.EIO: "The disk failed",
    errno.EROFS: "The disk can only be read",
}
"""Errors that are the disk's, and not ours: what is said of them."""


def serve_extensions(project: Project) -> None:
    """Carry out what the extensions of a project ask for from now on."""
    hosts = project.workspace.made("ExtensionHosts")
    if hosts is not None and not hosts.operations.done():
        hosts.operations.set_result(partial(_for_extensions, project))


async def _for_extensions(project: Project, op: Operation[Takes, Gives], args: Takes) -> Gives:
    with project.serving():
        return await handle(project, op, args)


async def handle(project: Project, op: Operation[Takes, Gives], args: Takes) -> Gives:
    """Answer an operation of a project. Raises CodeloopError when it is refused, or when the disk fails it."""
    if op.id in ANSWERS:
        return ANSWERS[op.id]
    serve_extensions(project)
    try:
        answer: Handler = load(HANDLERS[op.id])
        return await answer(project, args)
    except OSError as error:
        what = DISK.get(error.errno or 0)
        if what is None:
            raise
        where = f" at {error.filename}" if error.filename else ""
        text = f"{what}{where} ({error.strerror}): {op.id} was not done. Mend that, then do it again."
        raise StoreError(text) from error
