"""Renames a symbol with a language server: asks for permission with the diff,
then changes all files or none.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from codeloop.lsp.client.client import LanguageClient
from codeloop.lsp.text_edits import apply_edits, parse_workspace_edit
from codeloop.schema.wire import JSON
from codeloop.tool.files.edit_finisher import FileChange
from codeloop.tool.files.file_access import ask_edit, check_edit, convert_errors, format_path
from codeloop.tool.files.file_changes import (
    commit_patch,
    format_line_count,
    load_text,
    lock_files,
    make_diff,
    make_patch_metadata,
)
from codeloop.tool.tool import ToolContext, ToolFailure
from codeloop.workspace.files.encoding import encode_text
from codeloop.workspace.workspace import ResolvedPath


async def rename_symbol(ctx: ToolContext, client: LanguageClient, params: JSON) -> tuple[str, JSON]:
    """Rename a symbol in all files; return the text for the model, and the metadata for the screen.

    `params`: those of the request `textDocument/rename`. Raises ToolFailure, Denied, Rejected, and
    the errors of a request to the server.
    """
    edits = parse_workspace_edit(await client.request("textDocument/rename", params))
    if edits is None:
        raise ToolFailure(
            "This rename would also move or make files, which is not done.",
            advice="Do it step by step.",
        )
    if not edits:
        raise ToolFailure("The language server can't rename this.")
    targets = [ctx.workspace.resolve(str(path)) for path in edits]
    if outside := [target for target in targets if target.is_outside]:
        raise ToolFailure(
            f"This rename would change {outside[0].path}, which is outside of the project."
        )
    await check_edit(ctx, targets)
    async with AsyncExitStack() as stack:
        await lock_files(ctx, stack, targets)
        with convert_errors(ctx.workspace, *targets):
            changes = await asyncio.to_thread(_make_changes, client, targets, edits)
        diffs = await asyncio.to_thread(lambda: [make_diff(change) for change in changes])
        names = ", ".join(str(target.path) for target in targets)
        metadata = make_patch_metadata(ctx, changes, diffs)
        ctx.report(title=f"rename to {params['newName']}", metadata=metadata)
        await ask_edit(ctx, targets, {"filepath": names, **metadata})
        result, diffs, metadata = await commit_patch(ctx, changes, diffs)
    rows = [
        f"{format_path(ctx.workspace, target.path)}: {format_line_count(diff.additions)}{note}"
        for target, diff, note in zip(targets, diffs, result.notes, strict=True)
    ]
    text = "\n".join(
        [f"Renamed to {params['newName']}:", *rows, *([result.text] if result.text else [])]
    )
    return text, metadata


def _make_changes(
    client: LanguageClient,
    targets: Sequence[ResolvedPath],
    edits_by_path: Mapping[Path, Sequence[JSON]],
) -> list[FileChange]:
    """Return the change of each file. Raises ToolFailure if the server's
    edits do not fit a file.
    """
    changes: list[FileChange] = []
    for target, edits in zip(targets, edits_by_path.values(), strict=True):
        loaded = load_text(target.real)
        if loaded is None:
            raise ToolFailure(f"{target.path} is gone.")
        before, text = loaded
        try:
            text_after = apply_edits(client, text.content, edits)
        except ValueError as error:
            raise ToolFailure(
                f"The language server returned an invalid edit: {error}. Nothing was changed."
            ) from error
        change = FileChange(
            target,
            before=before,
            after=encode_text(text_after, text.encoding),
            text_before=text.content,
            text_after=text_after,
        )
        changes.append(change)
    return changes
