"""Calls tools of extensions: asks for permission, sends the call to the host,
and converts the answer.
"""

from functools import partial

import msgspec

from codeloop.extend.hooks.hooks import ExtensionRaised, HookFailed
from codeloop.extend.host.extension import Extension, SendToExtension
from codeloop.extend.host.host_callbacks import ALLOW_COMMAND, HOSTS_FOLDER
from codeloop.extend.host.host_stream import InvalidCall
from codeloop.extend.host.protocol import (
    CallOrigin,
    CallProgress,
    CallTool,
    HostQuestion,
    ToolAnswer,
    encode,
)
from codeloop.extend.mcp.tools.content_blocks import convert_blocks
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.bounds.extension import HOST_METADATA
from codeloop.schema.errors import OperationError
from codeloop.schema.permission import Need, Writes
from codeloop.schema.wire import JSON
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult


class ToolCallListener:
    """Shows the progress of a call, and passes its questions to the permission gate.
    `refusal`: the last refusal.
    """

    def __init__(self, ctx: ToolContext, tool: str) -> None:
        self.refusal: Denied | Rejected | None = None
        self._ctx = ctx
        self._tool = tool

    async def ask(self, question: HostQuestion) -> None:
        """See `CallListener` in `extension.py`."""
        need = Need(
            permission=question.permission,
            patterns=question.patterns,
            always=question.always,
            metadata={"tool": self._tool, **question.metadata},
            writes=Writes(),
        )
        try:
            await self._ctx.ask(need)
        except (Denied, Rejected) as error:
            # Kept: the extension's code may wrap the refusal in an exception of its own, and the
            # turn must end as after any refusal.
            self.refusal = error
            raise OperationError("BadRequest", str(error)) from error

    def report(self, progress: CallProgress) -> None:
        """See CallListener."""
        title = None if progress.title is None else escape_controls(progress.title)
        self._ctx.report(title=title, metadata=_limit_metadata(progress.metadata))


async def call_tool(
    send: SendToExtension,
    extension: Extension,
    tool: str,
    call_origin: CallOrigin,
    arguments: JSON,
    ctx: ToolContext,
) -> ToolResult:
    """Call a tool of an extension, by `send`, once permitted.
    Raises ToolFailure, Denied, Rejected.
    """
    metadata: JSON = {"extension": extension.name, "tool": tool, "input": arguments}
    await ctx.ask(
        Need(permission=tool, patterns=("*",), always=("*",), metadata=metadata, writes=Writes())
    )
    listener = ToolCallListener(ctx, tool)
    message = partial(
        CallTool, extension=extension.name, tool=tool, arguments=arguments, context=call_origin
    )
    try:
        answer = msgspec.convert(await send(extension, message, listener), ToolAnswer)
    except ExtensionRaised as error:
        # The refusal itself, since a refusal may end the turn,
        # and not the exception that the extension made of it.
        if listener.refusal is not None:
            raise listener.refusal from error
        name = f"{error.name}: " if error.name else ""
        reason = f"{tool} failed: {name}{error}"
        # Imported late: most tools are refused nothing.
        from codeloop.workspace.process.program_refusals import explain_program

        said = f"{reason}\n{error.trace[-4_000:]}"
        note = explain_program(ctx.workspace.program_sandboxes, HOSTS_FOLDER, said, ALLOW_COMMAND)
        raise ToolFailure(
            f"{reason}\n{note}" if note else reason, {"trace": error.trace[-4_000:]}
        ) from error
    except InvalidCall as error:
        raise ToolFailure(str(error)) from error
    except HookFailed as error:
        raise ToolFailure(
            f"{tool} of {extension.name} failed: {str(error).rstrip('.')}."
        ) from error
    except msgspec.ValidationError as error:
        raise ToolFailure(
            f"{tool} of {extension.name} returned an invalid result: {error}."
        ) from error
    return _make_result(answer, extension, tool, ctx)


def _make_result(
    answer: ToolAnswer, extension: Extension, tool: str, ctx: ToolContext
) -> ToolResult:
    texts, files = convert_blocks(
        [_convert_attachment(each) for each in answer.attachments or ()], ctx
    )
    output = "\n".join(filter(None, (answer.output, *texts))) or "(no output)"
    metadata = {"extension": extension.name, **(_limit_metadata(answer.metadata) or {})}
    return ToolResult(escape_controls(answer.title or tool), output, metadata, tuple(files))


def _convert_attachment(attachment: JSON) -> JSON:
    """Convert an attachment to an MCP content block."""
    url, mime = str(attachment.get("url", "")), str(attachment.get("mime", ""))
    head, _, data = url.partition(",")
    # Other URLs are not fetched: we would make the request outside of the extension's sandbox.
    if not head.startswith("data:") or not head.endswith(";base64"):
        return {
            "type": "text",
            "text": f"[attachment left out: {mime or 'it'} is not a data: URL in base64]",
        }
    name = str(attachment.get("filename") or "")
    return {
        "type": "resource",
        "resource": {"blob": data, "mimeType": mime or head[5:-7], "uri": name},
    }


def _limit_metadata(metadata: JSON | None) -> JSON | None:
    """Return metadata, or a note of its size in its place where it is too large."""
    size = len(encode(metadata)) if metadata else 0
    if size > HOST_METADATA.value:
        # Metadata is stored with the session and sent to clients, so it is bounded.
        return {"left_out": f"{size:,} bytes of metadata; {HOST_METADATA.value:,} are kept"}
    return metadata
