"""Attaches an image or a PDF to a result of the tool `read`."""

import base64

from codeloop.kit.text.undecodable import replace_undecodable
from codeloop.schema.ids import new_id
from codeloop.schema.limits import IMAGE_FILE, READ_PDF
from codeloop.schema.part import FilePart
from codeloop.schema.wire import JSON
from codeloop.tool.files.file_access import format_path
from codeloop.tool.tool import ToolContext, ToolResult
from codeloop.workspace.files.image import fit_image
from codeloop.workspace.files.safe_open import read_file
from codeloop.workspace.workspace import ResolvedPath


def attach_file(ctx: ToolContext, target: ResolvedPath, mime: str) -> ToolResult:
    """Return an image, scaled down if it is large, or a PDF as an attachment."""
    is_pdf = mime == "application/pdf"
    file = read_file(target.real, READ_PDF.value if is_pdf else IMAGE_FILE.value)
    data, size = file.data, ""
    if not is_pdf:
        picture = fit_image(data)
        mime, data, size = picture.mime, picture.data, f", {picture.note}"
    ctx.workspace.read_log.record_read(ctx.session_id, target.real, file.stamp)
    url = f"data:{mime};base64,{base64.b64encode(data).decode()}"
    name = replace_undecodable(target.path.name)
    part = FilePart(
        id=new_id("prt"),
        session_id=ctx.session_id,
        message_id=ctx.message_id,
        mime=mime,
        url=url,
        filename=name,
    )
    path = format_path(ctx.workspace, target.path)
    output = f"{'PDF' if is_pdf else 'Image'} attached: {path} ({len(data):,} bytes{size})"
    metadata: JSON = {"preview": output, "truncated": False, "loaded": []}
    return ToolResult(
        replace_undecodable(ctx.workspace.format_for_user(target.path)), output, metadata, (part,)
    )
