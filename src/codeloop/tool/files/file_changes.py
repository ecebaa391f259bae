"""Changes of files by tools: asks with the diff, writes all files or none,
and describes the result for the model.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from codeloop.kit.guarded_paths import is_protected
from codeloop.kit.text.diff import Diff, make_unified_diff, trim_indent
from codeloop.kit.text.undecodable import replace_undecodable
from codeloop.schema.wire import JSON, replace
from codeloop.tool.files.edit_finisher import FileChange, FinishedChanges, skip_formatting
from codeloop.tool.files.file_access import ask_edit, convert_errors, format_path, is_free_to_read
from codeloop.tool.tool import ToolContext
from codeloop.workspace.files.atomic_write import Replacement, replace_files
from codeloop.workspace.files.encoding import DecodedText, decode_text
from codeloop.workspace.files.safe_open import LoadedFile, read_file_if_exists
from codeloop.workspace.workspace import ResolvedPath

# Lines of a unified diff before its first hunk's lines.
_DIFF_HEADER_LINES = 4
_MAX_REPLACED_LINES = 24
_MAX_REPLACED_LINE_CHARS = 200


def load_text(real: Path) -> tuple[LoadedFile, DecodedText] | None:
    """Read a file as text; None when there is no such file.
    Raises FileRefused or NotText, OSError.
    """
    file = read_file_if_exists(real)
    return None if file is None else (file, decode_text(file.data))


async def lock_files(
    ctx: ToolContext, stack: AsyncExitStack, targets: Sequence[ResolvedPath]
) -> None:
    """Take the locks of the files until the stack is closed, in one order for all calls,
    so that none deadlock.
    """
    for real in sorted({target.real for target in targets}):
        await stack.enter_async_context(ctx.workspace.read_log.get_lock(real))


def summarize_change(target: ResolvedPath, diff: Diff) -> JSON:
    """Return the summary of one file's change in the form that clients get."""
    return {
        "file": str(target.path),
        "patch": diff.patch,
        "additions": diff.additions,
        "deletions": diff.deletions,
    }


def make_patch_metadata(
    ctx: ToolContext, changes: Sequence[FileChange], diffs: Sequence[Diff]
) -> JSON:
    """Return the metadata of a change of several files, for user interfaces."""
    files = [
        {
            **summarize_change(change.target, diff),
            "relativePath": ctx.workspace.format_for_user(change.target.path),
            "type": _get_change_type(change),
        }
        for change, diff in zip(changes, diffs, strict=True)
    ]
    first: JSON = (
        {"filediff": summarize_change(changes[0].target, diffs[0])} if len(changes) == 1 else {}
    )
    return {
        "diff": "".join(diff.patch for diff in diffs),
        "files": files,
        "diagnostics": {},
        **first,
    }


async def commit_patch(
    ctx: ToolContext, changes: Sequence[FileChange], diffs: Sequence[Diff]
) -> tuple[FinishedChanges, Sequence[Diff], JSON]:
    """Make permitted changes of several files; return them as finished,
    with their final diffs and metadata.
    """
    with convert_errors(ctx.workspace, *(change.target for change in changes)):
        result = await commit_changes(ctx, changes)
    # A formatter may have changed what was written.
    if any(now is not change for now, change in zip(result.changes, changes, strict=True)):
        diffs = await asyncio.to_thread(lambda: [make_diff(change) for change in result.changes])
    return (
        result,
        diffs,
        {**make_patch_metadata(ctx, result.changes, diffs), "diagnostics": result.diagnostics},
    )


def _get_change_type(change: FileChange) -> str:
    if change.before is None:
        return "added"
    return "deleted" if change.after is None else "modified"


def make_diff(change: FileChange) -> Diff:
    """Return the diff of a change under the path that the model used,
    without the indentation that all lines share.
    """
    diff = make_unified_diff(
        str(change.target.path),
        replace_undecodable(change.text_before),
        replace_undecodable(change.text_after),
    )
    return replace(diff, patch=trim_indent(diff.patch))


def describe_change(
    ctx: ToolContext, change: FileChange, diff: Diff, *, match_note: str = "", format_note: str = ""
) -> str:
    """Describe a change for the model: `Edited src/a.py: lines 3-5`.

    `match_note`: how the old text was matched; `format_note`: says which lines
    the formatters changed.
    """
    path = format_path(ctx.workspace, change.target.path)
    if change.before is None:
        return f"Created {path}: {format_line_count(diff.additions)}{format_note}"
    how_matched = f" (oldString was matched {match_note})" if match_note else ""
    if not diff.changed_lines:
        if format_note:
            return f"{path} is as it was{format_note}"
        return f"{path} already holds exactly this; nothing was changed."
    where = diff.changed_lines if change.text_after else "it is empty now"
    return f"Edited {path}: {where}{how_matched}{format_note}"


def format_replaced(diff: Diff) -> str:
    """Return the removed and added lines of a change,
    so that the model can check what an approximate match chose.
    """
    lines = [
        line[:_MAX_REPLACED_LINE_CHARS]
        for line in diff.patch.split("\n")[_DIFF_HEADER_LINES:]
        if line[:1] in {"-", "+"}
    ]
    more = (
        [f"({len(lines) - _MAX_REPLACED_LINES} more)"] if len(lines) > _MAX_REPLACED_LINES else []
    )
    return "\n".join(["What was replaced:", *lines[:_MAX_REPLACED_LINES], *more])


def format_line_count(lines: int) -> str:
    """Return a number of lines as text: `1 line`, `3 lines`."""
    return f"{lines} line{'' if lines == 1 else 's'}"


async def apply_change(
    ctx: ToolContext, change: FileChange, *, match_note: str = "", note: str = ""
) -> tuple[str, JSON]:
    """Ask for permission with the diff, then make the change, if the file is still as it was.

    Returns the description for the model (`match_note`: how the old text was matched; `note`: a
    line below), and the metadata `diff`, `filediff` and `diagnostics`.
    The caller holds the file's lock.
    """
    diff = await asyncio.to_thread(make_diff, change)
    target = change.target
    metadata = {"diff": diff.patch, "filediff": summarize_change(target, diff), "diagnostics": {}}
    ctx.report(title=ctx.workspace.format_for_user(target.path), metadata=metadata)
    await ask_edit(ctx, [target], {"filepath": str(target.path), "diff": diff.patch})
    with convert_errors(ctx.workspace, target):
        result = await commit_changes(ctx, [change])
    # A formatter may have changed what was written.
    if result.changes[0] is not change:
        change = result.changes[0]
        diff = await asyncio.to_thread(make_diff, change)
        metadata |= {"diff": diff.patch, "filediff": summarize_change(target, diff)}
    metadata["diagnostics"] = result.diagnostics
    description = describe_change(
        ctx, change, diff, match_note=match_note, format_note=result.notes[0]
    )
    replaced_lines = format_replaced(diff) if match_note else ""
    texts = (description, replaced_lines, note, result.text)
    return "\n".join(text for text in texts if text), metadata


async def commit_changes(ctx: ToolContext, changes: Sequence[FileChange]) -> FinishedChanges:
    """Make permitted changes, all or none; record each file's new state as read by the session;
    notify the clients.

    Then the EditFinisher formats and checks the files; the changes are returned as it left them.
    """
    finisher = ctx.services.edit_finisher
    if finisher is not None:
        await finisher.prepare(changes)
    written = (each.target.real for each in changes)
    ctx.workspace.read_log.expected_files.update(
        real for real in written if is_protected(str(real))
    )
    replacements = [
        Replacement(each.target.real, each.before, each.after, each.mode) for each in changes
    ]
    stamps = replace_files(replacements, ctx.workspace.write_records_folder)
    for change, stamp in zip(changes, stamps, strict=True):
        ctx.session.publish_edit(change.target.path, ctx.workspace.directory)
        if stamp is None:
            ctx.workspace.read_log.forget_file(ctx.session_id, change.target.real)
        else:
            # The session knows the content that it wrote: it need not read the file
            # before its next edit.
            ctx.workspace.read_log.record_read(ctx.session_id, change.target.real, stamp)
    if finisher is None:
        return skip_formatting(changes)
    result = await finisher.finish(
        ctx.session_id,
        changes,
        lambda real: is_free_to_read(ctx, real),
        ctx.session,
        directory=ctx.workspace.directory,
    )
    for real, stamp in result.stamps.items():
        ctx.workspace.read_log.record_read(ctx.session_id, real, stamp)
    return result
