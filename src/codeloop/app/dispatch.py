"""Dispatches the operations of a project to their handlers, whose modules are imported at the first request."""

import errno
from functools import partial
from typing import Any

from codeloop.app.handlers import HANDLERS
from codeloop.app.project import Project
from codeloop.kit.lazy import import_module
from codeloop.schema import operation
from codeloop.schema.api.project import ConsoleState, ExperimentalCapabilities
from codeloop.schema.operation import AnyOperation, Gives, Operation, Takes
from codeloop.store.database import StoreError

HANDLER_MODULES: dict[str, tuple[AnyOperation, ...]] = {
    "app.handlers.session.session": (
        operation.SESSION_CREATE,
        operation.SESSION_LIST,
        operation.SESSION_STATUS,
        operation.SESSION_EVERYTHING,
        operation.SESSION_GET,
        operation.SESSION_UPDATE,
        operation.SESSION_DELETE,
        operation.SESSION_CHILDREN,
        operation.SESSION_TODO,
        operation.SESSION_SHARE,
        operation.SESSION_UNSHARE,
    ),
    "app.handlers.session.search": (operation.SESSION_SEARCH, operation.SESSION_FIND),
    "app.handlers.reports.stats": (operation.SESSION_STATS,),
    "app.handlers.project.memory": (operation.MEMORY_LIST,),
    "app.handlers.session.stop_all": (operation.STOP_ALL,),
    "app.handlers.reports.overview": (operation.SESSION_OVERVIEW,),
    "app.handlers.session.import_": (operation.SESSION_IMPORT,),
    "app.handlers.reports.cost": (operation.SESSION_COST,),
    "app.handlers.reports.context": (operation.SESSION_CONTEXT,),
    "app.handlers.reports.shareable": (operation.SESSION_SHAREABLE,),
    "app.handlers.session.fork": (operation.SESSION_FORK,),
    "app.handlers.session.message": (
        operation.SESSION_QUEUED,
        operation.SESSION_MESSAGES,
        operation.MESSAGE_GET,
        operation.MESSAGE_DELETE,
        operation.PART_UPDATE,
        operation.PART_DELETE,
    ),
    "app.handlers.session.prompt": (
        operation.PROMPT,
        operation.PROMPT_ASYNC,
        operation.SUMMARIZE,
        operation.ABORT,
    ),
    "app.handlers.session.command": (
        operation.COMMAND,
        operation.SESSION_INIT,
    ),
    "app.handlers.changes.revert": (
        operation.SESSION_REVERT,
        operation.SESSION_UNREVERT,
    ),
    "app.handlers.changes.undo_files": (operation.UNDO_FILES,),
    "app.handlers.project.permission": (
        operation.PERMISSION_LIST,
        operation.PERMISSION_RULES,
        operation.PERMISSION_REVOKE,
        operation.PERMISSION_REPLY,
        operation.PERMISSION_RESPOND,
    ),
    "app.handlers.project.question": (
        operation.QUESTION_LIST,
        operation.QUESTION_REPLY,
        operation.QUESTION_REJECT,
    ),
    "app.handlers.project.agents": (
        operation.AGENT_LIST,
        operation.SKILL_LIST,
        operation.COMMAND_LIST,
    ),
    "app.handlers.session.shell": (operation.SESSION_SHELL,),
    "app.handlers.changes.diff": (operation.SESSION_DIFF,),
    "app.handlers.project.project": (
        operation.PATH_GET,
        operation.PROJECT_LIST,
        operation.PROJECT_CURRENT,
        operation.PROJECT_DIRECTORIES,
        operation.LOCATION_GET,
    ),
    "app.handlers.project.config": (
        operation.CONFIG_GET,
        operation.CONFIG_SETTINGS,
        operation.CONFIG_ORIGINS,
        operation.CONFIG_WARNINGS,
        operation.CONFIG_UPDATE,
    ),
    "app.handlers.project.providers": (
        operation.CONFIG_PROVIDERS,
        operation.PROVIDER_LIST,
        operation.PROVIDER_AUTH,
        operation.PROVIDER_AUTHORIZE,
        operation.PROVIDER_CALLBACK,
        operation.AUTH_SET,
        operation.AUTH_REMOVE,
    ),
    "app.handlers.project.add_provider": (
        operation.PROVIDER_MODELS,
        operation.PROVIDER_ADD,
    ),
    "app.handlers.project.log": (operation.LOG,),
    "app.handlers.project.formatters": (operation.FORMATTER_STATUS,),
    "app.handlers.project.tools": (operation.TOOL_IDS, operation.TOOL_LIST),
    "app.handlers.project.mcp": (
        operation.MCP_STATUS,
        operation.MCP_ADD,
        operation.MCP_CONNECT,
        operation.MCP_DISCONNECT,
        operation.MCP_COMPLETE,
        operation.RESOURCE_LIST,
    ),
    "app.handlers.project.mcp_sign_in": (
        operation.MCP_AUTH_START,
        operation.MCP_AUTH_REMOVE,
        operation.MCP_AUTH_CALLBACK,
        operation.MCP_AUTH_AUTHENTICATE,
    ),
    "app.handlers.project.lsp": (
        operation.LSP_STATUS,
        operation.FIND_SYMBOLS,
    ),
    "app.handlers.workspace.vcs": (
        operation.VCS_GET,
        operation.VCS_STATUS,
        operation.VCS_DIFF,
    ),
    "app.handlers.workspace.files": (
        operation.FILE_LIST,
        operation.FILE_READ,
        operation.FILE_STATUS,
    ),
    "app.handlers.workspace.find": (
        operation.FIND_TEXT,
        operation.FIND_FILES,
        operation.FS_FIND,
    ),
    "app.handlers.workspace.pty": (
        operation.PTY_SHELLS,
        operation.PTY_LIST,
        operation.PTY_CREATE,
        operation.PTY_GET,
        operation.PTY_UPDATE,
        operation.PTY_REMOVE,
        operation.PTY_TICKET,
    ),
    "app.handlers.project.tui": (
        operation.TUI_APPEND_PROMPT,
        operation.TUI_SUBMIT_PROMPT,
        operation.TUI_CLEAR_PROMPT,
        operation.TUI_OPEN_HELP,
        operation.TUI_OPEN_SESSIONS,
        operation.TUI_OPEN_THEMES,
        operation.TUI_OPEN_MODELS,
        operation.TUI_EXECUTE,
        operation.TUI_TOAST,
        operation.TUI_PUBLISH,
        operation.TUI_SELECT,
    ),
    "app.handlers.session.client_tools": (
        operation.TOOLS_OFFER,
        operation.TOOLS_WITHDRAW,
        operation.TOOL_ANSWER,
        operation.TOOL_ASK,
        operation.TOOL_REPORT,
    ),
}
"""The modules with handlers, each with the operations that it handles."""
_MODULES_BY_OPERATION = {op.id: module for module, operations in HANDLER_MODULES.items() for op in operations}

CONSTANT_ANSWERS: dict[str, Any] = {
    operation.WORKSPACE_LIST.id: [],
    operation.WORKSPACE_STATUS.id: [],
    operation.CAPABILITIES.id: ExperimentalCapabilities(background_subagents=False),
    operation.CONSOLE.id: ConsoleState(console_managed_providers=[], switchable_org_count=0),
}
"""The answers of operations without a handler, by operation id."""

_DISK_ERRORS = {
    errno.ENOSPC: "There is no space on the disk",
    errno.EDQUOT: "There is no space left for you on the disk",
    errno.EIO: "The disk failed",
    errno.EROFS: "The disk can only be read",
}
"""Explanations of disk errors, by `errno`."""


def serve_extensions(project: Project) -> None:
    """Start serving the operations that a project's extensions request.

    The module that starts extensions can't do it: `app.project` imports that one, and handlers import `app.project`.
    """
    hosts = project.services.extensions.hosts
    if hosts is not None and not hosts.run_operation.done():
        hosts.run_operation.set_result(partial(_serve_extension, project))


async def _serve_extension(project: Project, op: Operation[Takes, Gives], args: Takes) -> Gives:
    with project.track_request():
        return await handle(project, op, args)


def _find_server_module(op: AnyOperation) -> str:
    """Return the module of an operation that only clients of a server request."""
    from codeloop.app.handlers.server_only import MODULES_BY_OPERATION

    return MODULES_BY_OPERATION[op.id]


async def handle(project: Project, op: Operation[Takes, Gives], args: Takes) -> Gives:
    """Carry out an operation of a project. Raises CodeloopError when it is refused, or the disk fails."""
    if op.id in CONSTANT_ANSWERS:
        return CONSTANT_ANSWERS[op.id]
    # This does nothing if they are served already.
    serve_extensions(project)
    try:
        if op.id not in HANDLERS:
            import_module(_MODULES_BY_OPERATION.get(op.id) or _find_server_module(op))
        return await HANDLERS[op.id](project, args)
    except OSError as error:
        explanation = _DISK_ERRORS.get(error.errno or 0)
        if explanation is None:
            raise
        where = f" at {error.filename}" if error.filename else ""
        text = f"{explanation}{where} ({error.strerror}): {op.id} was not done. Mend that, then do it again."
        raise StoreError(text) from error
