"""The tools `edit` and `multiedit`: replace one text in a file, or several, all or none."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import PurePath
from typing import Annotated

import msgspec
from msgspec import Meta

from codeloop.kit.text.undecodable import replace_undecodable
from codeloop.schema.wire import JSON
from codeloop.tool.files.edit_checks import (
    UNQUOTED_ADVICE,
    UNQUOTED_ERROR,
    check_may_reveal,
    check_no_elision,
    check_unchanged_since_read,
    has_changed_since_read,
    may_quote,
)
from codeloop.tool.files.edit_finisher import FileChange
from codeloop.tool.files.file_access import (
    ask_before_failure,
    check_edit,
    convert_errors,
    describe_missing_file,
    format_path,
    resolve_path,
)
from codeloop.tool.files.file_changes import apply_change, load_text, lock_files
from codeloop.tool.files.function_callers import describe_callers
from codeloop.tool.json_schema import UNSENT
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult, Traits, tool
from codeloop.workspace.edit.edit import MAX_EFFORT, Edit, apply_edit, estimate_effort
from codeloop.workspace.edit.edit_errors import EditRefused
from codeloop.workspace.files.encoding import UTF8, check_surrogates, encode_text
from codeloop.workspace.files.safe_open import read_file_if_exists
from codeloop.workspace.workspace import ResolvedPath

CHANGED_SINCE_READ = (
    "(The file had changed since you read it. Read again what else you need of it.)"
)
"""The note for the model when something else has changed a file, and the edit still fitted."""


class OneEdit(msgspec.Struct, frozen=True, rename="camel"):
    """One replacement: the old text, the new text, and whether every occurrence is replaced."""

    old_string: str
    new_string: str
    replace_all: Annotated[bool, Meta(extra_json_schema=UNSENT)] = False


class EditParams(msgspec.Struct, frozen=True, rename="camel"):
    """Arguments of the tool `edit`: one replacement, or the list `edits`."""

    file_path: str
    old_string: str | None = None
    new_string: str | None = None
    replace_all: bool = False
    edits: Annotated[tuple[OneEdit, ...], Meta(description="in order, all or none")] = ()

    def __post_init__(self) -> None:
        """Raise ValueError if there is nothing to replace."""
        missing = (
            "oldString"
            if self.old_string is None
            else "newString"
            if self.new_string is None
            else ""
        )
        # Half a replacement beside a list is none: it would delete a text in silence.
        is_half = (self.old_string is None) != (self.new_string is None)
        if missing and (is_half or not self.edits):
            raise ValueError(f"missing required field `{missing}`")

    def list_steps(self) -> list[Edit]:
        """Return the replacements in order; a single one comes first,
        and counts with others if it has a text.
        """
        steps = [
            Edit(each.old_string, each.new_string, replaces_all=each.replace_all)
            for each in self.edits
        ]
        old, new = self.old_string or "", self.new_string or ""
        return (
            [Edit(old, new, replaces_all=self.replace_all), *steps]
            if old or new or not steps
            else steps
        )


@tool("edit", params=EditParams, traits=Traits(permission="edit"))
async def edit(params: EditParams, ctx: ToolContext) -> ToolResult:
    """Replace one occurrence of a text, or all of them, or several texts;
    an empty old text creates a file.
    """
    return await edit_file(ctx, params.file_path, params.list_steps())


class MultieditParams(msgspec.Struct, frozen=True, rename="camel"):
    """Arguments of the tool `multiedit`."""

    file_path: str
    edits: Annotated[list[OneEdit], Meta(description="The edits, in order", min_length=1)]


@tool("multiedit", params=MultieditParams, traits=Traits(permission="edit"))
async def multiedit(params: MultieditParams, ctx: ToolContext) -> ToolResult:
    """Make the edits in order, each on the result of the one before."""
    steps = [
        Edit(each.old_string, each.new_string, replaces_all=each.replace_all)
        for each in params.edits
    ]
    return await edit_file(ctx, params.file_path, steps)


async def edit_file(ctx: ToolContext, path: str, steps: list[Edit]) -> ToolResult:
    """Make edits of one file, each on the result of the one before; all are made, or none."""
    if steps[0].old == steps[0].new:
        raise ToolFailure("The new text is equal to the old one; there is nothing to change.")
    target = resolve_path(ctx, path)
    await check_edit(ctx, [target])
    edits = [{"oldString": step.old, "newString": step.new} for step in steps]
    shown_input: JSON = {"filePath": path, **(edits[0] if len(edits) == 1 else {"edits": edits})}
    async with AsyncExitStack() as stack:
        await lock_files(ctx, stack, [target])
        await ctx.services.save_buffers(ctx.session_id, [target])
        async with ask_before_failure(ctx, [target], shown_input):
            check_may_reveal(ctx, target)
            with convert_errors(ctx.workspace, target):
                if steps[0].old and read_file_if_exists(target.real) is None:
                    text = (
                        "There is no file {}. Check the path; an empty oldString makes a new file."
                    )
                    raise ToolFailure(await describe_missing_file(ctx, target, text))
                change, match_note = await asyncio.to_thread(
                    _compute_change, ctx, target, steps, is_quotable=may_quote(ctx, target)
                )
                check_no_elision(ctx, change)
                is_unseen = change.before is not None and has_changed_since_read(
                    ctx, target, change.before
                )
        output, metadata = await apply_change(
            ctx, change, match_note=match_note, note=CHANGED_SINCE_READ if is_unseen else ""
        )
        if is_unseen:
            # The file has the session's own change now,
            # and still one that the session has not seen.
            ctx.workspace.read_log.mark_unseen(ctx.session_id, target.real)
    output = "\n".join(filter(None, [output, await describe_callers(ctx, [change], output)]))
    return ToolResult(ctx.workspace.format_for_user(target.path), output, metadata)


def _compute_change(
    ctx: ToolContext, target: ResolvedPath, steps: list[Edit], *, is_quotable: bool
) -> tuple[FileChange, str]:
    """Return the change, and a note on how the old texts were matched ("" if
    all matches are exact).

    `is_quotable`: error messages may quote the file. Raises ToolFailure if a text does not match.
    """
    if not steps[0].old:
        return _compute_creation(ctx, target, steps), ""
    name = format_path(ctx.workspace, target.path)
    file = load_text(target.real)
    if file is None:
        raise ToolFailure(f"{name} was deleted while it was to be edited.")
    loaded, text = file
    try:
        content, match_note = _apply_in_order(text.content, steps, name, is_quotable=is_quotable)
    except ToolFailure:
        # If the file has changed since it was read, that is why the text is missing:
        # such an error says more.
        check_unchanged_since_read(ctx, target, loaded, must_be_read=False)
        raise
    is_read = ctx.workspace.read_log.find_last_stamp(ctx.session_id, target.real) is not None
    if match_note and not is_read and not _was_shown(ctx, target, text.content, content):
        raise ToolFailure(
            f"oldString is not in {name} as given, only a text like it, and {name} was not read in this session.",
            advice="Give it exactly as the file has it, or read that part first.",
        )
    # One exact match is the text that was meant. An approximate match, or several,
    # may not be after a change.
    if match_note or any(step.replaces_all and text.content.count(step.old) > 1 for step in steps):
        check_unchanged_since_read(ctx, target, loaded, must_be_read=False)
    change = FileChange(
        target,
        before=loaded,
        after=encode_text(content, text.encoding),
        text_before=text.content,
        text_after=content,
    )
    return change, match_note


def _was_shown(ctx: ToolContext, target: ResolvedPath, before: str, after: str) -> bool:
    """Return whether searches have shown the session all lines that an edit changes or removes."""
    old, new = ([line.rstrip("\r") for line in text.split("\n")] for text in (before, after))
    same_at_start = _count_equal(old, new)
    same_at_end = _count_equal(old[same_at_start:][::-1], new[same_at_start:][::-1])
    start, end = same_at_start, len(old) - same_at_end
    if start == end:
        # An insertion changes no line, so the lines around it count.
        start, end = max(0, start - 1), start + 1
    return ctx.services.shown_lines.covers(ctx.session_id, target.real, start + 1, old[start:end])


def _count_equal(old: list[str], new: list[str]) -> int:
    """Return how many lines at the start of both lists are equal."""
    pairs = zip(old, new, strict=False)
    return next(
        (index for index, (one, other) in enumerate(pairs) if one != other), min(len(old), len(new))
    )


def _compute_creation(ctx: ToolContext, target: ResolvedPath, steps: list[Edit]) -> FileChange:
    """Return the change that creates a file with the first new text,
    edited by the further steps.
    """
    name = format_path(ctx.workspace, target.path)
    if read_file_if_exists(target.real) is not None:
        raise ToolFailure(
            f"{name} exists; an empty oldString only creates new files.",
            advice="Give the text to replace.",
        )
    check_surrogates(steps[0].new)
    content, _ = _apply_in_order(steps[0].new, steps[1:], name)
    return FileChange(
        target, before=None, after=encode_text(content, UTF8), text_before="", text_after=content
    )


def _apply_in_order(
    content: str, steps: list[Edit], path: str, *, is_quotable: bool = True
) -> tuple[str, str]:
    """Return the edited text, and a note on how the old texts were matched (""
    if all matches are exact).
    """
    match_notes: list[str] = []
    effort = 0
    for number, step in enumerate(steps, 1):
        try:
            edited = apply_edit(content, step, PurePath(path).suffix)
        except EditRefused as error:
            which = f"edit {number} of {len(steps)}: " if len(steps) > 1 else ""
            why, advice = (
                (str(error), error.advice) if is_quotable else (UNQUOTED_ERROR, UNQUOTED_ADVICE)
            )
            raise ToolFailure(
                replace_undecodable(f"{path}: {which}{why}"), advice=replace_undecodable(advice)
            ) from error
        effort += estimate_effort(content, edited.match_note)
        if effort > MAX_EFFORT and number < len(steps):
            raise ToolFailure(
                f"{path} is too large for {len(steps)} edits at once.",
                advice=f"Make {number} in one call.",
            )
        content = edited.content
        if edited.match_note:
            match_notes.append(
                f"in edit {number} {edited.match_note}" if len(steps) > 1 else edited.match_note
            )
    return content, ", ".join(match_notes)
