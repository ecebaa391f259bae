"""Which function answers which operation."""

from collections.abc import Awaitable, Callable
from typing import Any

from codeloop.app.handlers import (
    command,
    copy,
    extension,
    importing,
    message,
    permission,
    prompt,
    question,
    revert,
    search,
    session,
    stats,
)
from codeloop.app.project import Project
from codeloop.schema import operation

Handler = Callable[[Project, Any], Awaitable[Any]]

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
}
