"""Resolves what a prompt mentions: asks whether its files may be read,
and fetches its resources of MCP servers.
"""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from codeloop.agent.calls.call_context import CallContext
from codeloop.app.project import Project
from codeloop.app.prompt_parts import is_mention
from codeloop.kit.wildcard import make_exact_wildcards
from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.api.agents import Agent
from codeloop.schema.api.session_inputs import FilePartInput, PartInput, TextPartInput
from codeloop.schema.ids import new_id
from codeloop.schema.message import UserMessage
from codeloop.schema.part import ResourceSource, ToolPart, ToolStatePending
from codeloop.schema.permission import Need
from codeloop.schema.wire import JSON, replace
from codeloop.tool.files.file_access import resolve_allowed
from codeloop.tool.tool import format_for_model
from codeloop.workspace.files.permission_name import make_permission_name
from codeloop.workspace.workspace import ResolvedPath


async def resolve_mentions(
    project: Project, agent: Agent, message: UserMessage, parts: Sequence[PartInput]
) -> list[PartInput]:
    """Return the parts of a prompt, with the content of each mentioned resource after its mention.

    A note takes the place of each file or resource that may not be read. Files that may be are read
    later, in `app/prompt_parts.py`. Raises OperationError if a server has no such resource.
    A mention has a `source`, its range in the text. Attached files have none, and need no
    permission: the text of a prompt may be pasted or come from a command,
    but attaching a file is a choice of the user.
    """
    part_inputs: list[PartInput] = []
    for part in parts:
        if isinstance(part, FilePartInput) and isinstance(part.source, ResourceSource):
            part_inputs += await _fetch_resource(project, agent, message, part)
        else:
            part_inputs.append(
                await _check_file(project, agent, message, part) if is_mention(part) else part
            )
    return part_inputs


async def _fetch_resource(
    project: Project, agent: Agent, message: UserMessage, part: FilePartInput
) -> list[PartInput]:
    """Return the mention of a resource, and its content; a note if it may not be read."""
    from codeloop.app.extensions.mcp import read_attached_resource

    context = _make_context(project, agent, message, "mcp_resource", {"uri": part.url})
    try:
        return [part, *await read_attached_resource(project.services.mcp, context, part)]
    except (Denied, Rejected) as error:
        return [_describe_refusal(f"The resource {part.filename or part.url}", error)]


def _make_context(
    project: Project, agent: Agent, message: UserMessage, tool: str, arguments: JSON
) -> CallContext:
    """Make the context of a tool call that does not exist,
    since questions for permission belong to calls.
    """
    call = ToolPart(
        id=new_id("prt"),
        session_id=message.session_id,
        message_id=message.id,
        call_id="mention",
        tool=tool,
        state=ToolStatePending(input=arguments, raw=""),
    )
    return CallContext(project.engine, agent, call)


def _describe_refusal(subject: str, error: Denied | Rejected) -> TextPartInput:
    text = f"{subject} that the user mentioned is not attached. {format_for_model(error)}"
    return TextPartInput(text=text, synthetic=True)


async def _check_file(
    project: Project, agent: Agent, message: UserMessage, part: PartInput
) -> PartInput:
    """Return the mention of a file, with the path that was allowed;
    a note if the file may not be read.
    """
    if not isinstance(part, FilePartInput):
        return part
    path = unquote(urlsplit(part.url).path)
    name = part.filename or Path(path).name
    context = _make_context(project, agent, message, "read", {"filePath": path})
    try:
        target = await resolve_allowed(
            context, path, lambda target: [_make_mention_need(context, target)]
        )
    except (Denied, Rejected) as error:
        return _describe_refusal(f"The file {name}", error)
    if target.real == target.path:
        return part
    lines = urlsplit(part.url).query
    # Later the allowed file is read, even if the link leads elsewhere by then.
    return replace(part, url=target.real.as_uri() + (f"?{lines}" if lines else ""))


def _make_mention_need(context: CallContext, target: ResolvedPath) -> Need:
    """Return the permission to read a mentioned file.
    "Always" covers this file alone, while `read` asks for all.
    """
    pattern = make_permission_name(context.workspace, target.real)
    metadata = {"filepath": str(target.real)}
    return Need(
        permission="read",
        patterns=(pattern,),
        always=make_exact_wildcards((pattern,)),
        metadata=metadata,
    )
