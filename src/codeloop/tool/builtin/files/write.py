"""The tool `write`: creates a file, or replaces the whole content of one."""

from contextlib import AsyncExitStack

import msgspec

from codeloop.tool.files.edit_checks import check_no_elision, check_unchanged_since_read
from codeloop.tool.files.edit_finisher import FileChange
from codeloop.tool.files.file_access import (
    ask_before_failure,
    check_edit,
    convert_errors,
    format_path,
    resolve_path,
)
from codeloop.tool.files.file_changes import apply_change, lock_files
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult, Traits, tool
from codeloop.workspace.files.encoding import (
    DecodedText,
    NotText,
    check_surrogates,
    decode_text,
    encode_text,
    find_main_line_end,
)
from codeloop.workspace.files.safe_open import read_file_if_exists
from codeloop.workspace.workspace import ResolvedPath


class WriteParams(msgspec.Struct, frozen=True, rename="camel"):
    """Arguments of the tool `write`."""

    file_path: str
    content: str


@tool("write", params=WriteParams, traits=Traits(permission="edit"))
async def write(params: WriteParams, ctx: ToolContext) -> ToolResult:
    """Write the file. An existing one keeps its encoding, byte order mark, line ends and mode;
    links are followed.
    """
    target = resolve_path(ctx, params.file_path)
    with convert_errors(ctx.workspace, target):
        # Models write `/src/a.py` for a path that is meant relative to the project.
        path_inside = ctx.workspace.directory / params.file_path.lstrip("/")
        folder = target.path.parent
        if target.is_outside and not folder.exists() and path_inside.parent.is_dir():
            raise ToolFailure(
                f"There is no folder {folder}. Did you mean {format_path(ctx.workspace, path_inside)}?"
            )
    await check_edit(ctx, [target])
    async with AsyncExitStack() as stack:
        await lock_files(ctx, stack, [target])
        await ctx.services.save_buffers(ctx.session_id, [target])
        async with ask_before_failure(
            ctx, [target], {"filePath": params.file_path, "content": params.content}
        ):
            with convert_errors(ctx.workspace, target):
                change = _make_change(ctx, target, params.content)
                check_no_elision(ctx, change)
        output, metadata = await apply_change(ctx, change)
    exists = change.before is not None
    title = ctx.workspace.format_for_user(target.path)
    return ToolResult(title, output, {"filepath": str(target.path), "exists": exists, **metadata})


def _make_change(ctx: ToolContext, target: ResolvedPath, content: str) -> FileChange:
    """Return the change to write. Raises ToolFailure if the session has not read the
    file in its present state.
    """
    check_surrogates(content)
    before = read_file_if_exists(target.real)
    if before is None:
        return FileChange(
            target, before=None, after=content.encode(), text_before="", text_after=content
        )
    check_unchanged_since_read(ctx, target, before)
    text = _decode_or_empty(before.data)
    # Models write plain line feeds.
    if find_main_line_end(text.content) == "\r\n" and "\r\n" not in content:
        content = content.replace("\n", "\r\n")
    return FileChange(
        target,
        before=before,
        after=encode_text(content, text.encoding),
        text_before=text.content,
        text_after=content,
    )


def _decode_or_empty(data: bytes) -> DecodedText:
    """Return the text of a file; an empty text for a binary one,
    so that the new content is written as UTF-8.
    """
    try:
        return decode_text(data)
    except NotText:
        return DecodedText("")
