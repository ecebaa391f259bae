"""Which function answers which operation."""

import errno
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from codeloop.app.app import App
from codeloop.app.handlers import (
    changes,
    command,
    config,
    copy,
    extension,
    files,
    find,
    importing,
    message,
    permission,
    place,
    process,
    prompt,
    providers,
    pty,
    question,
    revert,
    search,
    session,
    shell,
    stats,
    status,
    tui,
    vcs,
)
from codeloop.app.project import Project
from codeloop.schema import operation
from codeloop.schema.operation import Operation
from codeloop.schema.wire import Wire
from codeloop.store.database import StoreError

Handler = Callable[[Project, Any], Awaitable[Any]]
ProcessHandler = Callable[[App, Path, Any], Awaitable[Any]]

HANDLERS: dict[str, Handler] = {
    operation.SESSION_CREATE.id: session.create,
    operation.SESSION_LIST.id: session.listed,
    operation.SESSION_STATUS.id: session.status,
    operation.SESSION_SEARCH.id: search.search,
    operation.SESSION_EVERYTHING.id: session.everything,
    operation.SESSION_STATS.id: stats.stats,
    operation.SESSION_IMPORT.id: importing.import_session,
    operation.SESSION_GET.id: session.get,
    operation.SESSION_UPDATE.id: session.update,
    operation.SESSION_DELETE.id: session.delete,
    operation.SESSION_CHILDREN.id: session.children,
    operation.SESSION_TODO.id: session.todo,
    operation.SESSION_FORK.id: copy.fork,
    operation.SESSION_QUEUED.id: message.waiting,
    operation.SESSION_MESSAGES.id: message.messages,
    operation.MESSAGE_GET.id: message.get,
    operation.MESSAGE_DELETE.id: message.delete,
    operation.PART_UPDATE.id: message.update_part,
    operation.PART_DELETE.id: message.delete_part,
    operation.PROMPT.id: prompt.prompt,
    operation.PROMPT_ASYNC.id: prompt.prompt_async,
    operation.COMMAND.id: command.command,
    operation.SUMMARIZE.id: prompt.summarize,
    operation.ABORT.id: prompt.abort,
    operation.SESSION_REVERT.id: revert.revert,
    operation.SESSION_UNREVERT.id: revert.unrevert,
    operation.PERMISSION_LIST.id: permission.pending,
    operation.PERMISSION_REPLY.id: permission.reply,
    operation.QUESTION_LIST.id: question.pending,
    operation.QUESTION_REPLY.id: question.reply,
    operation.QUESTION_REJECT.id: question.reject,
    operation.AGENT_LIST.id: extension.agents,
    operation.COMMAND_LIST.id: command.listed,
    operation.SKILL_LIST.id: extension.skills,
    operation.SESSION_SHELL.id: shell.shell,
    operation.SESSION_DIFF.id: changes.diff,
    operation.PATH_GET.id: place.path,
    operation.PROJECT_LIST.id: place.projects,
    operation.PROJECT_CURRENT.id: place.current,
    operation.PROJECT_DIRECTORIES.id: place.directories,
    operation.LOCATION_GET.id: place.location,
    operation.CONFIG_GET.id: config.get,
    operation.CONFIG_UPDATE.id: config.update,
    operation.CONFIG_PROVIDERS.id: providers.usable,
    operation.PROVIDER_LIST.id: providers.known,
    operation.PROVIDER_AUTH.id: providers.methods,
    operation.AUTH_SET.id: providers.set_auth,
    operation.AUTH_REMOVE.id: providers.remove_auth,
    operation.LOG.id: status.log,
    operation.LSP_STATUS.id: status.lsp,
    operation.FORMATTER_STATUS.id: status.formatter,
    operation.MCP_STATUS.id: status.mcp,
    operation.MCP_ADD.id: status.add_mcp,
    operation.MCP_CONNECT.id: status.connect_mcp,
    operation.MCP_DISCONNECT.id: status.disconnect_mcp,
    operation.TOOL_IDS.id: status.tool_ids,
    operation.TOOL_LIST.id: status.tool_list,
    operation.CAPABILITIES.id: status.capabilities,
    operation.CONSOLE.id: status.console,
    operation.RESOURCE_LIST.id: status.resources,
    operation.WORKSPACE_LIST.id: status.workspaces,
    operation.WORKSPACE_STATUS.id: status.workspace_status,
    operation.VCS_GET.id: vcs.get,
    operation.VCS_STATUS.id: vcs.status,
    operation.VCS_DIFF.id: vcs.diff,
    operation.FILE_LIST.id: files.listed,
    operation.FILE_READ.id: files.read,
    operation.FILE_STATUS.id: files.status,
    operation.FIND_TEXT.id: find.text,
    operation.FIND_FILES.id: find.files,
    operation.FIND_SYMBOLS.id: find.symbols,
    operation.FS_FIND.id: find.fs_find,
    operation.PTY_SHELLS.id: pty.shells,
    operation.PTY_LIST.id: pty.listed,
    operation.PTY_CREATE.id: pty.create,
    operation.PTY_GET.id: pty.get,
    operation.PTY_UPDATE.id: pty.update,
    operation.PTY_REMOVE.id: pty.remove,
    operation.PTY_TICKET.id: pty.ticket,
    operation.TUI_APPEND_PROMPT.id: tui.append_prompt,
    operation.TUI_SUBMIT_PROMPT.id: tui.submit_prompt,
    operation.TUI_CLEAR_PROMPT.id: tui.clear_prompt,
    operation.TUI_OPEN_HELP.id: tui.open_help,
    operation.TUI_OPEN_SESSIONS.id: tui.open_sessions,
    operation.TUI_OPEN_THEMES.id: tui.open_themes,
    operation.TUI_OPEN_MODELS.id: tui.open_models,
    operation.TUI_EXECUTE.id: tui.execute,
    operation.TUI_TOAST.id: tui.toast,
    operation.TUI_PUBLISH.id: tui.publish,
    operation.TUI_SELECT.id: tui.select,
    operation.SESSION_INIT.id: command.init,
    operation.SESSION_SHARE.id: session.share,
    operation.SESSION_UNSHARE.id: session.share,
    operation.PERMISSION_RESPOND.id: permission.respond,
}

PROCESS_HANDLERS: dict[str, ProcessHandler] = {
    operation.HEALTH.id: process.health,
    operation.INSTANCE_DISPOSE.id: process.dispose,
    operation.GLOBAL_DISPOSE.id: process.dispose_all,
}


DISK = {
    errno.ENOSPC: "There is no space on the disk",
    errno.EDQUOT: "There is no space left for you on the disk",
    errno.EIO: "The disk failed",
    errno.EROFS: "The disk can only be read",
}
"""Errors that are the disk's, and not ours: what is said of them."""


async def carry_out(app: App, op: Operation, args: Wire, directory: Path) -> Any:
    """Answer an operation on behalf of a directory. Raises CodeloopError when it is refused.

    What is asked of a session goes to the project that works on it, whatever directory the client named.
    """
    if op.scope == "process":
        return await PROCESS_HANDLERS[op.id](app, directory, args)
    session_id: str | None = getattr(args, "session_id", None)
    project = await (app.project(directory) if session_id is None else app.project_of(session_id, directory))
    with project.serving():
        return await handle(project, op, args)


async def handle(project: Project, op: Operation, args: Wire) -> Any:
    """Answer an operation of a project. Raises CodeloopError when it is refused, or when the disk fails it."""
    try:
        return await HANDLERS[op.id](project, args)
    except OSError as error:
        what = DISK.get(error.errno or 0)
        if what is None:
            raise
        where = f" at {error.filename}" if error.filename else ""
        text = f"{what}{where} ({error.strerror}): {op.id} was not done. Mend that, then do it again."
        raise StoreError(text) from error
