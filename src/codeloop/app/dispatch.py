"""Which function answers which operation."""

import errno
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from codeloop.app.app import App
from codeloop.app.handlers.project import agents, config, permission, providers, question, server, status, tui
from codeloop.app.handlers.project import project as place
from codeloop.app.handlers.session import (
    command,
    diff,
    fork,
    import_,
    message,
    prompt,
    revert,
    search,
    session,
    shell,
    stats,
    undo_files,
)
from codeloop.app.handlers.workspace import files, find, pty, vcs
from codeloop.app.project import Project
from codeloop.schema import operation
from codeloop.schema.operation import Gives, Operation, Takes
from codeloop.store.database import StoreError

Handler = Callable[[Project, Any], Awaitable[Any]]
ProcessHandler = Callable[[App, Path, Any], Awaitable[Any]]


def _row(op: Operation[Takes, Gives], handler: Callable[[Project, Takes], Awaitable[Gives]]) -> tuple[str, Handler]:
    """Return one row; the types of the handler are those of the operation."""
    return op.id, handler


HANDLERS: dict[str, Handler] = dict(
    (
        _row(operation.SESSION_CREATE, session.create),
        _row(operation.SESSION_LIST, session.listed),
        _row(operation.SESSION_STATUS, session.status),
        _row(operation.SESSION_SEARCH, search.search),
        _row(operation.SESSION_EVERYTHING, session.everything),
        _row(operation.SESSION_STATS, stats.stats),
        _row(operation.SESSION_IMPORT, import_.import_session),
        _row(operation.SESSION_GET, session.get),
        _row(operation.SESSION_UPDATE, session.update),
        _row(operation.SESSION_DELETE, session.delete),
        _row(operation.SESSION_CHILDREN, session.children),
        _row(operation.SESSION_TODO, session.todo),
        _row(operation.SESSION_FORK, fork.fork),
        _row(operation.SESSION_QUEUED, message.waiting),
        _row(operation.SESSION_MESSAGES, message.messages),
        _row(operation.MESSAGE_GET, message.get),
        _row(operation.MESSAGE_DELETE, message.delete),
        _row(operation.PART_UPDATE, message.update_part),
        _row(operation.PART_DELETE, message.delete_part),
        _row(operation.PROMPT, prompt.prompt),
        _row(operation.PROMPT_ASYNC, prompt.prompt_async),
        _row(operation.COMMAND, command.command),
        _row(operation.SUMMARIZE, prompt.summarize),
        _row(operation.ABORT, prompt.abort),
        _row(operation.SESSION_REVERT, revert.revert),
        _row(operation.SESSION_UNREVERT, revert.unrevert),
        _row(operation.UNDO_FILES, undo_files.undo_files),
        _row(operation.PERMISSION_LIST, permission.pending),
        _row(operation.PERMISSION_REPLY, permission.reply),
        _row(operation.QUESTION_LIST, question.pending),
        _row(operation.QUESTION_REPLY, question.reply),
        _row(operation.QUESTION_REJECT, question.reject),
        _row(operation.AGENT_LIST, agents.agents),
        _row(operation.COMMAND_LIST, command.listed),
        _row(operation.SKILL_LIST, agents.skills),
        _row(operation.SESSION_SHELL, shell.shell),
        _row(operation.SESSION_DIFF, diff.diff),
        _row(operation.PATH_GET, place.path),
        _row(operation.PROJECT_LIST, place.projects),
        _row(operation.PROJECT_CURRENT, place.current),
        _row(operation.PROJECT_DIRECTORIES, place.directories),
        _row(operation.LOCATION_GET, place.location),
        _row(operation.CONFIG_GET, config.get),
        _row(operation.CONFIG_WARNINGS, config.warnings),
        _row(operation.CONFIG_UPDATE, config.update),
        _row(operation.CONFIG_PROVIDERS, providers.usable),
        _row(operation.PROVIDER_LIST, providers.known),
        _row(operation.PROVIDER_AUTH, providers.methods),
        _row(operation.AUTH_SET, providers.set_auth),
        _row(operation.AUTH_REMOVE, providers.remove_auth),
        _row(operation.LOG, status.log),
        _row(operation.LSP_STATUS, status.lsp),
        _row(operation.FORMATTER_STATUS, status.formatter),
        _row(operation.MCP_STATUS, status.mcp),
        _row(operation.MCP_ADD, status.add_mcp),
        _row(operation.MCP_CONNECT, status.connect_mcp),
        _row(operation.MCP_DISCONNECT, status.disconnect_mcp),
        _row(operation.TOOL_IDS, status.tool_ids),
        _row(operation.TOOL_LIST, status.tool_list),
        _row(operation.CAPABILITIES, status.capabilities),
        _row(operation.CONSOLE, status.console),
        _row(operation.RESOURCE_LIST, status.resources),
        _row(operation.WORKSPACE_LIST, status.workspaces),
        _row(operation.WORKSPACE_STATUS, status.workspace_status),
        _row(operation.VCS_GET, vcs.get),
        _row(operation.VCS_STATUS, vcs.status),
        _row(operation.VCS_DIFF, vcs.diff),
        _row(operation.FILE_LIST, files.listed),
        _row(operation.FILE_READ, files.read),
        _row(operation.FILE_STATUS, files.status),
        _row(operation.FIND_TEXT, find.text),
        _row(operation.FIND_FILES, find.files),
        _row(operation.FIND_SYMBOLS, find.symbols),
        _row(operation.FS_FIND, find.fs_find),
        _row(operation.PTY_SHELLS, pty.shells),
        _row(operation.PTY_LIST, pty.listed),
        _row(operation.PTY_CREATE, pty.create),
        _row(operation.PTY_GET, pty.get),
        _row(operation.PTY_UPDATE, pty.update),
        _row(operation.PTY_REMOVE, pty.remove),
        _row(operation.PTY_TICKET, pty.ticket),
        _row(operation.TUI_APPEND_PROMPT, tui.append_prompt),
        _row(operation.TUI_SUBMIT_PROMPT, tui.submit_prompt),
        _row(operation.TUI_CLEAR_PROMPT, tui.clear_prompt),
        _row(operation.TUI_OPEN_HELP, tui.open_help),
        _row(operation.TUI_OPEN_SESSIONS, tui.open_sessions),
        _row(operation.TUI_OPEN_THEMES, tui.open_themes),
        _row(operation.TUI_OPEN_MODELS, tui.open_models),
        _row(operation.TUI_EXECUTE, tui.execute),
        _row(operation.TUI_TOAST, tui.toast),
        _row(operation.TUI_PUBLISH, tui.publish),
        _row(operation.TUI_SELECT, tui.select),
        _row(operation.SESSION_INIT, command.init),
        _row(operation.SESSION_SHARE, session.share),
        _row(operation.SESSION_UNSHARE, session.share),
        _row(operation.PERMISSION_RESPOND, permission.respond),
    )
)

PROCESS_HANDLERS: dict[str, ProcessHandler] = {
    operation.HEALTH.id: server.health,
    operation.INSTANCE_DISPOSE.id: server.dispose,
    operation.GLOBAL_DISPOSE.id: server.dispose_all,
}


DISK = {
    errno.ENOSPC: "There is no space on the disk",
    errno.EDQUOT: "There is no space left for you on the disk",
    errno.EIO: "The disk failed",
    errno.EROFS: "The disk can only be read",
}
"""Errors that are the disk's, and not ours: what is said of them."""


async def carry_out(app: App, op: Operation[Takes, Gives], args: Takes, directory: Path) -> Gives:
    """Answer an operation on behalf of a directory. Raises CodeloopError when it is refused.

    What is asked of a session goes to the project that works on it, whatever directory the client named.
    """
    if op.scope == "process":
        return await PROCESS_HANDLERS[op.id](app, directory, args)
    session_id: str | None = getattr(args, "session_id", None)
    project = await (app.project(directory) if session_id is None else app.project_of(session_id, directory))
    with project.serving():
        return await handle(project, op, args)


async def handle(project: Project, op: Operation[Takes, Gives], args: Takes) -> Gives:
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
