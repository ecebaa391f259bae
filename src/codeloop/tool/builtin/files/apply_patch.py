"""The tool `apply_patch`: adds, changes, moves and deletes files by one patch;
all changes are made, or none.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec

from codeloop.kit.text.diff import Diff, make_unified_diff
from codeloop.kit.text.undecodable import replace_undecodable
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
    ask_edit,
    check_edit,
    convert_errors,
    describe_missing_file,
    format_path,
    resolve_path,
)
from codeloop.tool.files.file_changes import (
    commit_patch,
    format_line_count,
    format_replaced,
    lock_files,
    make_diff,
    make_patch_metadata,
)
from codeloop.tool.files.function_callers import describe_callers
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult, Traits, tool
from codeloop.workspace.edit.edit_errors import EditRefused
from codeloop.workspace.edit.patch_apply import apply_hunks
from codeloop.workspace.edit.patch_parser import (
    AddFile,
    DeleteFile,
    PatchOperation,
    UpdateFile,
    parse_patch,
)
from codeloop.workspace.files.encoding import (
    UTF8,
    DecodedText,
    Encoding,
    NotText,
    check_surrogates,
    decode_text,
    encode_text,
)
from codeloop.workspace.files.safe_open import LoadedFile, read_file_if_exists
from codeloop.workspace.workspace import ResolvedPath


class PatchParams(msgspec.Struct, frozen=True, rename="camel"):
    """Arguments of the tool `apply_patch`."""

    patch_text: str


# Compared by identity, because instances are keys of dictionaries.
@dataclass(eq=False)
class _PatchedFile:
    """A file of the patch while the operations are applied in memory.

    `before` is the file on the disk (None: there is none) and `original` its text; `text` is the
    new text (None: the file is deleted).
    """

    target: ResolvedPath
    before: LoadedFile | None
    original: str
    text: str | None
    encoding: Encoding
    mode: int | None = None
    match_note: str = ""
    """How the hunks were matched when some were not exact."""
    source: "_PatchedFile | None" = None
    """The file that was moved to this path."""

    def make_change(self) -> FileChange | None:
        """Return the change to write; None: the file stays as it is."""
        after = None if self.text is None else encode_text(self.text, self.encoding)
        if after == (self.before.data if self.before else None):
            return None
        return FileChange(
            self.target,
            before=self.before,
            after=after,
            text_before=self.original,
            text_after=self.text or "",
            mode=self.mode,
        )


@tool("apply_patch", params=PatchParams, traits=Traits(permission="edit"))
async def apply_patch(params: PatchParams, ctx: ToolContext) -> ToolResult:
    """Check every operation, ask once, then change all files or none."""
    with convert_errors(ctx.workspace):
        operations = await asyncio.to_thread(parse_patch, params.patch_text)
    targets = {path: resolve_path(ctx, path) for path in _list_paths(operations)}
    await check_edit(ctx, list(targets.values()))
    async with AsyncExitStack() as stack:
        await lock_files(ctx, stack, list(targets.values()))
        await ctx.services.save_buffers(ctx.session_id, targets.values())
        async with ask_before_failure(ctx, targets.values(), {"patchText": params.patch_text}):
            file_changes = await _compute_changes(ctx, operations, targets)
            for change in file_changes.values():
                check_no_elision(ctx, change)
            unseen = [
                change.target
                for change in file_changes.values()
                if change.before is not None
                and has_changed_since_read(ctx, change.target, change.before)
            ]
        changes = list(file_changes.values())
        diffs = await asyncio.to_thread(lambda: [make_diff(change) for change in changes])
        metadata = make_patch_metadata(ctx, changes, diffs)
        question = {
            "filepath": ", ".join(str(change.target.path) for change in changes),
            **metadata,
        }
        ctx.report(title=_make_title(changes), metadata=metadata)
        await ask_edit(ctx, [change.target for change in changes], question)
        result, diffs, metadata = await commit_patch(ctx, changes, diffs)
    for target in unseen:
        ctx.workspace.read_log.mark_unseen(ctx.session_id, target.real)
    sources = {file.source for file in file_changes if file.source is not None}
    names = ", ".join(format_path(ctx.workspace, target.path) for target in unseen)
    notes = (
        [f"({names} had changed since you read it. Read again what else you need of it.)"]
        if names
        else []
    )
    rows: list[str] = []
    for file, change, diff, note in zip(
        file_changes, result.changes, diffs, result.notes, strict=True
    ):
        # The old path of a moved file is in the row of its new path.
        if file.text is None and file in sources:
            continue
        rows.append(await asyncio.to_thread(_describe_change, ctx, file, change, diff) + note)
        rows += [format_replaced(diff)] if file.match_note else []
    closing = filter(None, [result.text, await describe_callers(ctx, changes, result.text)])
    return ToolResult(_make_title(changes), "\n".join((*rows, *notes, *closing)), metadata)


async def _compute_changes(
    ctx: ToolContext, operations: Sequence[PatchOperation], targets: dict[str, ResolvedPath]
) -> dict[_PatchedFile, FileChange]:
    """Compute the file changes of the operations. Raises ToolFailure when one can't be applied."""
    for operation in operations:
        if isinstance(operation, UpdateFile):
            check_may_reveal(ctx, targets[operation.path])
    files: dict[Path, _PatchedFile] = {}
    for operation in operations:
        target = targets[operation.path]
        with convert_errors(ctx.workspace, target):
            is_missing = target.real not in files and read_file_if_exists(target.real) is None
        if isinstance(operation, UpdateFile) and is_missing:
            text = "There is no file {}. Nothing was changed. Check the path; `*** Add File: {}` makes a new one."
            raise ToolFailure(await describe_missing_file(ctx, target, text))
        with convert_errors(ctx.workspace, target):
            is_quotable = may_quote(ctx, target)
            await asyncio.to_thread(
                _apply_operation, ctx, operation, targets, files, is_quotable=is_quotable
            )
    with convert_errors(ctx.workspace, *targets.values()):
        changes = {file: file.make_change() for file in files.values()}
        file_changes = {file: change for file, change in changes.items() if change is not None}
    if not file_changes:
        raise ToolFailure("The patch changes nothing: the files already have this content.")
    return file_changes


def _describe_change(ctx: ToolContext, file: _PatchedFile, change: FileChange, diff: Diff) -> str:
    """Describe a file's change for the model: `M src/a.py: lines 3-5`."""
    path = format_path(ctx.workspace, file.target.path)
    note = f" ({file.match_note})" if file.match_note else ""
    if file.text is None:
        return f"D {path}"
    if file.source is not None:
        where = make_unified_diff("", file.source.original, change.text_after).changed_lines
        return f"R {format_path(ctx.workspace, file.source.target.path)} -> {path}{f': {where}' if where else ''}{note}"
    if file.before is None:
        return f"A {path}: {format_line_count(diff.additions)}"
    return f"M {path}: {diff.changed_lines or 'as it was'}{note}"


def _list_paths(operations: Sequence[PatchOperation]) -> list[str]:
    """Return the paths that the operations name, each once, with the targets of moves last."""
    paths = [operation.path for operation in operations]
    paths += [op.move_to for op in operations if isinstance(op, UpdateFile) and op.move_to]
    return list(dict.fromkeys(paths))


def _apply_operation(
    ctx: ToolContext,
    operation: PatchOperation,
    targets: dict[str, ResolvedPath],
    files: dict[Path, _PatchedFile],
    *,
    is_quotable: bool,
) -> None:
    """Apply one operation to the files in memory. `is_quotable`: an error message
    may show text of the file.

    Raises ToolFailure when the operation does not fit the file as the operations before it left it.
    """
    file = _open_file(targets[operation.path], files)
    path = format_path(ctx.workspace, file.target.path)
    match operation:
        case AddFile(content=content):
            if file.text is not None:
                raise ToolFailure(
                    f"{path} exists. Nothing was changed.", advice=f"Use `*** Update File: {path}`."
                )
            check_surrogates(content)
            file.text = content
        case DeleteFile():
            if file.before is None and file.text is None:
                raise ToolFailure(
                    f"{path} does not exist and can't be deleted. Nothing was changed."
                )
            if file.before is not None:
                check_unchanged_since_read(ctx, file.target, file.before, must_be_read=False)
            file.text = None
        case UpdateFile(hunks=hunks, move_to=move_to):
            text = _read_text(path, file)
            try:
                patched = apply_hunks(text, hunks)
            except EditRefused as error:
                why, advice = (
                    (str(error), error.advice) if is_quotable else (UNQUOTED_ERROR, UNQUOTED_ADVICE)
                )
                raise ToolFailure(
                    replace_undecodable(f"{path}: {why}\nNothing was changed."),
                    advice=replace_undecodable(advice),
                ) from error
            if patched.match_note and file.before is not None:
                # An approximate match could hit the wrong lines of a file that changed
                # since the model read it.
                check_unchanged_since_read(ctx, file.target, file.before, must_be_read=False)
            file.text, file.match_note = patched.content, patched.match_note
            if move_to is not None and targets[move_to].real != file.target.real:
                destination_name = format_path(ctx.workspace, targets[move_to].path)
                _move_file(file, _open_file(targets[move_to], files), path, destination_name)


def _move_file(
    source: _PatchedFile, destination: _PatchedFile, source_name: str, destination_name: str
) -> None:
    """Move a file in memory. Raises ToolFailure if there is a file at its new path;
    the names are for that error.
    """
    if destination.before is not None or destination.text is not None:
        raise ToolFailure(
            f"{destination_name} exists; {source_name} can't be moved there. Nothing was changed."
        )
    destination.text, destination.encoding, destination.match_note = (
        source.text,
        source.encoding,
        source.match_note,
    )
    # Of a file that is moved twice, the first path is reported.
    destination.source = source.source or source
    destination.mode = source.before.mode if source.before else None
    source.text = None


def _read_text(path: str, file: _PatchedFile) -> str:
    """Return the text that a hunk is applied to. Raises ToolFailure for a missing file,
    NotText for a binary one.
    """
    if file.text is None:
        raise ToolFailure(
            f"{path} does not exist. Nothing was changed.", advice=f"Use `*** Add File: {path}`."
        )
    if file.before is not None and file.text == file.original:
        # Decoded again, since `_open_file` takes a binary file for an empty text.
        return decode_text(file.before.data).content
    return file.text


def _open_file(target: ResolvedPath, files: dict[Path, _PatchedFile]) -> _PatchedFile:
    """Return the file in `files`, read from the disk the first time.
    A binary file has an empty text.
    """
    file = files.get(target.real)
    if file is not None:
        return file
    loaded = read_file_if_exists(target.real)
    if loaded is None:
        file = _PatchedFile(target, before=None, original="", text=None, encoding=UTF8)
    else:
        try:
            decoded = decode_text(loaded.data)
        except NotText:
            decoded = DecodedText("")
        file = _PatchedFile(
            target,
            before=loaded,
            original=decoded.content,
            text=decoded.content,
            encoding=decoded.encoding,
        )
    files[target.real] = file
    return file


def _make_title(changes: Sequence[FileChange]) -> str:
    return changes[0].target.path.name if len(changes) == 1 else f"{len(changes)} files"
