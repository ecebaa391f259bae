"""Files that the words of a prompt mention: what a tool would have to ask for is asked for here too."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from codeloop.agent.tool_context import CallContext
from codeloop.app.project import Project
from codeloop.app.prompt_parts import is_mention
from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.agent import Agent
from codeloop.schema.api.session_inputs import FilePartInput, PartInput, TextPartInput
from codeloop.schema.ids import new_id
from codeloop.schema.message import UserMessage
from codeloop.schema.part import ToolPart, ToolStatePending
from codeloop.schema.permission import Need
from codeloop.schema.wire import replace
from codeloop.tool.file_access import permission_path, resolve_allowed


async def allowed_mentions(
    project: Project, agent: Agent, message: UserMessage, parts: Sequence[PartInput]
) -> list[PartInput]:
    """Return the parts of a prompt; for a mentioned file that may not be read, a line that says so stands there.

    A mention has a `source`: its place in the text. A file that a person attached by itself needs no question.
    """
    return [await _allowed(project, agent, message, part) if is_mention(part) else part for part in parts]


async def _allowed(project: Project, agent: Agent, message: UserMessage, part: PartInput) -> PartInput:
    if not isinstance(part, FilePartInput):
        return part
    path = unquote(urlsplit(part.url).path)
    name = part.filename or Path(path).name
    state = ToolStatePending(input={"filePath": path}, raw="")
    call = ToolPart(
        id=new_id("prt"),
        session_id=message.session_id,
        message_id=message.id,
        call_id="mention",
        tool="read",
        state=state,
    )
    context = CallContext(project.engine, agent, call)
    try:
        target = await resolve_allowed(context, path)
        pattern = permission_path(context.workspace, target)
        metadata = {"filepath": str(target.real)}
        await context.ask(Need(permission="read", patterns=(pattern,), always=(pattern,), metadata=metadata))
    except (Denied, Rejected) as error:
        return TextPartInput(text=f"The file {name} that the user mentioned is not attached. {error}", synthetic=True)
    if target.real == target.path:
        return part
    lines = urlsplit(part.url).query
    return replace(part, url=target.real.as_uri() + (f"?{lines}" if lines else ""))  # it stays what was asked
