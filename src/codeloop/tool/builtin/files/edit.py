"""The tool `edit`: replaces a text in a file; `edit_file` is shared with `multiedit`."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import PurePath

import msgspec

from codeloop.schema.wire import JSON
from codeloop.tool.callers import describe_callers
from codeloop.tool.edit_checks import UNQUOTED, check_elision, check_known, check_shown, has_changed, may_quote
from codeloop.tool.file_access import (
    FileChange,
    apply_change,
    ask_before_failure,
    check_edit,
    failures,
    format_path,
    load_text,
    lock_files,
    missing,
    readable,
    resolve,
)
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult, Traits, tool
from codeloop.workspace.edit.edit import MOST_EFFORT, Edit, apply, estimate_effort
from codeloop.workspace.edit.refusals import EditRefused
from codeloop.workspace.files.encoding import UTF8, check_new, encode
from codeloop.workspace.files.safe_open import load_if_there
from codeloop.workspace.workspace import ResolvedPath

CHANGED_SINCE_READ = "(The file had changed since you read it. Read again what else you need of it.)"
"""The note for the model when its edit still fitted a file that something else has changed."""


class EditParams(msgspec.Struct, frozen=True, rename="camel"):
    """Arguments of the tool `edit`."""

    file_path: str
    old_string: str
    new_string: str
    replace_all: bool = False


@tool("edit", params=EditParams, traits=Traits(permission="edit"))
async def edit(params: EditParams, ctx: ToolContext) -> ToolResult:
    """Replace one occurrence of a text, or all of them; an empty old text creates a file."""
    step = Edit(params.old_string, params.new_string, params.replace_all)
    return await edit_file(ctx, params.file_path, [step])


async def edit_file(ctx: ToolContext, path: str, steps: list[Edit]) -> ToolResult:
    """Make edits of one file in order, each on the result of the one before, all or none."""
    if steps[0].old == steps[0].new:
        raise ToolFailure("The new text is equal to the old one; there is nothing to change.")
    target = resolve(ctx.workspace, path)
    await check_edit(ctx, [target])
    edits = [{"oldString": step.old, "newString": step.new} for step in steps]
    shown_input: JSON = {"filePath": path, **(edits[0] if len(edits) == 1 else {"edits": edits})}
    async with AsyncExitStack() as stack:
        await lock_files(ctx, stack, [target])
        await ctx.services.save_buffers(ctx.session_id, [target])
        async with ask_before_failure(ctx, [target], shown_input):
            check_shown(ctx, target)
            with failures(ctx.workspace, target):
                if steps[0].old and load_if_there(target.real) is None:
                    text = "There is no file {}. Check the path; an empty oldString makes a new file."
                    raise ToolFailure(await missing(ctx, target, text))
                change, match_note = await asyncio.to_thread(
                    _compute_change, ctx, target, steps, is_quotable=may_quote(ctx, target)
                )
                check_elision(ctx, change)
                is_unseen = change.before is not None and has_changed(ctx, target, change.before)
        output, metadata = await apply_change(ctx, change, match_note, CHANGED_SINCE_READ if is_unseen else "")
        if is_unseen:
            ctx.workspace.read_log.note_unseen(ctx.session_id, target.real)
    output = "\n".join(filter(None, [output, await describe_callers(ctx, [change], output)]))
    return ToolResult(ctx.workspace.relative(target.path), output, metadata)


def _compute_change(
    ctx: ToolContext, target: ResolvedPath, steps: list[Edit], *, is_quotable: bool
) -> tuple[FileChange, str]:
    """Return the change, and how the old texts were matched when not all were exact.

    `is_quotable`: an error message may show text of the file. Raises ToolFailure when a text does not match.
    """
    if not steps[0].old:
        return _compute_creation(ctx, target, steps)
    file, name = load_text(target.real), format_path(ctx.workspace, target.path)
    if file is None:
        raise ToolFailure(f"{name} was deleted while it was to be edited.")
    loaded, text = file
    try:
        content, match_note = _apply_in_order(text.content, steps, name, is_quotable=is_quotable)
    except ToolFailure:
        # A text that the file held when it was read is missing because the file changed: that error says more.
        check_known(ctx, target, loaded, must_be_read=False)
        raise
    is_read = ctx.workspace.read_log.last_stamp(ctx.session_id, target.real) is not None
    if match_note and not is_read and not _was_shown(ctx, target, text.content, content):
        raise ToolFailure(
            f"oldString is not in {name} as given, only a text like it, and {name} was not read in this session.",
            advice="Give it exactly as the file has it, or read that part first.",
        )
    # One exact match is the text that was meant. An approximate match, or several, may not be after a change.
    if match_note or any(step.every and text.content.count(step.old) > 1 for step in steps):
        check_known(ctx, target, loaded, must_be_read=False)
    return FileChange(target, loaded, encode(content, text.encoding), text.content, content), match_note


def _was_shown(ctx: ToolContext, target: ResolvedPath, before: str, after: str) -> bool:
    """Return whether a search has shown the session all the lines that an edit changes or removes."""
    old, new = ([line.rstrip("\r") for line in text.split("\n")] for text in (before, after))
    most = min(len(old), len(new))
    first = next((at for at in range(most) if old[at] != new[at]), most)
    same = next((at for at in range(most - first) if old[-1 - at] != new[-1 - at]), most - first)
    changed = range(first, len(old) - same) or range(max(0, first - 1), first + 1)  # of an insertion, the lines around
    lines = old[changed.start : changed.stop]
    return ctx.services.shown_lines.covers(ctx.session_id, target.real, changed.start + 1, lines)


def _compute_creation(ctx: ToolContext, target: ResolvedPath, steps: list[Edit]) -> tuple[FileChange, str]:
    name = format_path(ctx.workspace, target.path)
    if load_if_there(target.real) is not None:
        raise ToolFailure(
            f"{name} exists; an empty oldString only creates new files.", advice="Give the text to replace."
        )
    check_new(steps[0].new)
    content, _ = _apply_in_order(steps[0].new, steps[1:], name)
    return FileChange(target, None, encode(content, UTF8), "", content), ""


def _apply_in_order(content: str, steps: list[Edit], path: str, *, is_quotable: bool = True) -> tuple[str, str]:
    """Return the edited text, and how the old texts were matched when not all were exact."""
    match_notes: list[str] = []
    effort = 0
    for number, step in enumerate(steps, 1):
        try:
            edited = apply(content, step, PurePath(path).suffix)
        except EditRefused as error:
            which = f"edit {number} of {len(steps)}: " if len(steps) > 1 else ""
            why, advice = (str(error), error.advice) if is_quotable else UNQUOTED
            raise ToolFailure(readable(f"{path}: {which}{why}"), advice=readable(advice)) from error
        effort += estimate_effort(content, edited.how)
        if effort > MOST_EFFORT and number < len(steps):
            raise ToolFailure(
                f"{path} is too large for {len(steps)} edits at once.", advice=f"Make {number} in one call."
            )
        content = edited.content
        if edited.how:
            match_notes.append(f"in edit {number} {edited.how}" if len(steps) > 1 else edited.how)
    return content, ", ".join(match_notes)
