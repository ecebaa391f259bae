"""Which function answers which operation."""

from collections.abc import Awaitable, Callable
from typing import Any

from codeloop.app.handlers import command, extension, permission, prompt, question, session
from codeloop.app.project import Project
from codeloop.schema import operation

Handler = Callable[[Project, Any], Awaitable[Any]]

HANDLERS: dict[str, Handler] = {
    operation.SESSION_CREATE.id: session.create,
    operation.SESSION_LIST.id: session.listed,
    operation.SESSION_GET.id: session.get,
    operation.SESSION_DELETE.id: session.delete,
    operation.SESSION_MESSAGES.id: session.messages,
    operation.PROMPT.id: prompt.prompt,
    operation.PROMPT_ASYNC.id: prompt.prompt_async,
    operation.COMMAND.id: command.command,
    operation.SUMMARIZE.id: prompt.summarize,
    operation.ABORT.id: prompt.abort,
    operation.PERMISSION_LIST.id: permission.pending,
    operation.PERMISSION_REPLY.id: permission.reply,
    operation.QUESTION_LIST.id: question.pending,
    operation.QUESTION_REPLY.id: question.reply,
    operation.QUESTION_REJECT.id: question.reject,
    operation.AGENT_LIST.id: extension.agents,
    operation.COMMAND_LIST.id: command.listed,
    operation.SKILL_LIST.id: extension.skills,
}
