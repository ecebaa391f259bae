"""Converts the content blocks and results of MCP servers to texts, attachments and files."""

import base64
import binascii
import mimetypes
from typing import Any

import msgspec

from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.ids import new_id
from codeloop.schema.part import FilePart
from codeloop.schema.wire import DECODE_ERRORS, JSON, bound_depth
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult
from codeloop.tool.truncate import truncate_output
from codeloop.workspace.files.image import ImageRefused, fit_image
from codeloop.workspace.files.saved_outputs import save_output, shorten_output


def convert_result(data: JSON, title: str, metadata: JSON, ctx: ToolContext) -> ToolResult:
    """Return a call's result: texts in order, pictures and sound as attachments,
    other data as files.

    Raises ToolFailure with the same text, cut as it would be,
    when the server says that the call failed.
    """
    texts, files = convert_blocks(data.get("content") or [], ctx)
    structured: Any = data.get("structuredContent")
    if structured is not None:
        metadata = {**metadata, "structured": structured}
        if not _is_told(structured, texts):
            shown = msgspec.json.format(msgspec.json.encode(structured), indent=2).decode()
            texts.append(shown)
    output = "\n".join(texts) or ("(no text)" if files else "(no output)")
    result = ToolResult(title, output, metadata, tuple(files))
    if data.get("isError"):
        # Results are cut elsewhere, but the text of an exception is not.
        cut = truncate_output(result, ctx.workspace.scratch)
        raise ToolFailure(f"The server says that the call failed: {cut.output}", cut.metadata)
    return result


def _is_told(structured: Any, texts: list[str]) -> bool:
    """Return whether texts say all of a structured result: as JSON, whole or an item each,
    or as the plain text that it is.
    """
    # SDKs wrap what is no object by itself in an object of one key.
    values: list[Any] = [structured]
    if is_object(structured) and len(structured) == 1:
        values += structured.values()
    told = [_read_json(text) for text in texts]
    whole = _read_json("\n".join(texts))
    return any(
        value == whole or value in told or (is_list(value) and value != [] and value == told)
        for value in values
    )


def _read_json(text: str) -> Any:
    """Return the value of a JSON text; of any other text itself."""
    try:
        return bound_depth(msgspec.json.decode)(text.encode("utf-8", "replace"))
    except DECODE_ERRORS:
        return text


def convert_blocks(blocks: list[JSON], ctx: ToolContext) -> tuple[list[str], list[FilePart]]:
    """Return the texts and the attachments of content blocks;
    attached or saved data leaves a line of text.
    """
    texts: list[str] = []
    files: list[FilePart] = []
    for block in blocks:
        match block.get("type"):
            case "text":
                texts.append(str(block.get("text", "")))
            case "image" | "audio":
                _add_data(
                    str(block.get("data", "")),
                    str(block.get("mimeType", "")),
                    "",
                    ctx,
                    texts,
                    files,
                )
            case "resource":
                add_resource(block.get("resource") or {}, ctx, texts, files)
            case "resource_link":
                about = f": {block['description']}" if block.get("description") else ""
                texts.append(
                    f"[resource {block.get('uri')} ({block.get('name', '')}){about}; read it with mcp_resource]"
                )
            case kind:
                texts.append(f"[{kind} is not known and was left out]")
    return texts, files


def add_resource(resource: JSON, ctx: ToolContext, texts: list[str], files: list[FilePart]) -> None:
    """Add a resource's text or data to `texts` and `files`."""
    if "text" in resource:
        texts.append(str(resource["text"]))
    elif "blob" in resource:
        uri = str(resource.get("uri", ""))
        _add_data(str(resource["blob"]), str(resource.get("mimeType", "")), uri, ctx, texts, files)


def _add_data(
    data: str, mime: str, uri: str, ctx: ToolContext, texts: list[str], files: list[FilePart]
) -> None:
    """Add data in base64: pictures, sound and PDFs to `files`, other data as a saved file,
    which `texts` names.
    """
    try:
        # Some servers break base64 into lines, which a strict decoder refuses.
        raw = base64.b64decode("".join(data.split()), validate=True)
    except (ValueError, binascii.Error):
        texts.append(f"[{mime or 'data'} left out: its base64 is broken]")
        return
    name = uri.rpartition("/")[2] or mime.replace("/", ".") or "data"
    if mime.startswith("image/"):
        try:
            picture = fit_image(raw)
        except ImageRefused as error:
            texts.append(f"[{mime} left out: {error}]")
            return
        mime, raw = picture.mime, picture.data
    if mime.startswith(("image/", "audio/")) or mime == "application/pdf":
        url = f"data:{mime};base64,{base64.b64encode(raw).decode()}"
        files.append(
            FilePart(
                id=new_id("prt"),
                session_id=ctx.session_id,
                message_id=ctx.message_id,
                mime=mime,
                url=url,
                filename=name,
            )
        )
        texts.append(f"[{mime} attached, {len(raw):,} bytes]")
        # Few models hear sound, so it is also saved as a file that a program can work on.
        if not mime.startswith("audio/"):
            return
    try:
        file = save_output(ctx.workspace.scratch, raw)
    except OSError as error:
        texts.append(
            f"[{mime or 'data'} of {len(raw):,} bytes could not be saved: {error.strerror}]"
        )
        return
    path = file.with_name(f"{file.name}{mimetypes.guess_extension(mime) or '.bin'}")
    file.replace(path)
    texts.append(f"[{mime or 'data'} of {len(raw):,} bytes saved in {shorten_output(path)}]")
