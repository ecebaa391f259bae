"""The tool `read`: lines or symbols of a file, the entries of a directory,
or an image or a PDF as an attachment.
"""

import asyncio
import base64
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate, islice, takewhile
from typing import Annotated

import msgspec
from msgspec import Meta

from codeloop.kit.glob import has_wildcard, split_root
from codeloop.kit.text.undecodable import replace_undecodable
from codeloop.schema.bounds.outlines import READ_OUTLINE_LINES, READ_WHOLE_LINES
from codeloop.schema.ids import new_id
from codeloop.schema.limits import IMAGE_FILE, READ_LINE, READ_NOTEBOOK, READ_PDF, SEARCH_RESULTS
from codeloop.schema.part import FilePart
from codeloop.schema.wire import JSON, replace
from codeloop.tool.builtin.files.file_instructions import find_instructions
from codeloop.tool.builtin.files.outline import (
    PREVIEW_LINES,
    count_lines,
    find_symbol,
    is_pattern,
    list_defining,
    list_file_blocks,
    outline_file,
    outline_folder,
)
from codeloop.tool.files.file_access import (
    check_unmoved,
    convert_errors,
    describe_missing_file,
    filter_free_to_read,
    format_path,
    make_read_need,
    resolve_allowed,
)
from codeloop.tool.files.shown_files import find_lines_read
from codeloop.tool.superseded_outputs import UNCHANGED_KEY
from codeloop.tool.tool import CONCURRENT_TRAITS, ToolContext, ToolFailure, ToolResult, tool
from codeloop.workspace.files.image import fit_image
from codeloop.workspace.files.line_range import LineRange, read_head, read_lines
from codeloop.workspace.files.media_type import detect_media_type
from codeloop.workspace.files.notebook import render_notebook
from codeloop.workspace.files.safe_open import FileStamp, read_file
from codeloop.workspace.search.code_blocks import CodeBlock, format_outline
from codeloop.workspace.search.grep_query import GrepQuery, SearchFailed
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


# Matches `path:10-20` and `path#L10-L20`, which models write for a range of lines.
_PATH_WITH_LINES = r"(?as)(.+?)(?::|#)L?(\d{1,9})-L?(\d{1,9})"
# The number of a line and separators, as `read_lines` counts them for files.
_LINE_OVERHEAD_BYTES = 8
# The lines of a long file that are shown before its outline.
_HEAD_LINES = 100
# A file with a shorter outline is shown without one: the lines themselves say more.
_MIN_OUTLINE_ROWS = 5
# Further symbols of the same name in the file, and further files that define a symbol,
# that a note names.
_MAX_OTHER_BLOCKS = 3
_MAX_OTHER_FILES = 5
# Further definitions of a symbol are shown as well,
# while they have no more lines than this together.
_MAX_OTHER_LINES = 60
# A shorter text is repeated: a reference to the earlier result would save little.
_MIN_REFERENCE_CHARACTERS = 200
# A line such as `}` occurs often, so only so many earlier places of a result's
# first line are tried.
_MAX_EARLIER_STARTS = 50


class ReadParams(msgspec.Struct, frozen=True, rename="camel"):
    """Arguments of the tool `read`."""

    file_path: str
    offset: Annotated[int, Meta(ge=0, description="from 1")] | None = None
    limit: Annotated[int, Meta(ge=0)] | None = None
    symbol: str | None = None


@tool("read", params=ReadParams, traits=CONCURRENT_TRAITS)
async def read(params: ReadParams, ctx: ToolContext) -> ToolResult:
    """Return numbered lines, the entries of a directory, an outline, or an attachment."""
    target = await resolve_allowed(
        ctx, params.file_path, lambda target: [make_read_need(ctx.workspace, target)]
    )
    check_unmoved(ctx, target)
    await ctx.services.save_buffers(ctx.session_id, [target])
    first, limit = params.offset or 1, params.limit
    with convert_errors(ctx.workspace, target):
        if params.symbol and is_pattern(params.symbol) and target.real.exists():
            outline = outline_folder if target.real.is_dir() else outline_file
            return await outline(ctx, target, params.symbol.strip().removesuffix("()"))
        if target.real.is_dir() and params.symbol:
            return await _read_symbol_below(ctx, target, params.symbol)
        if target.real.is_dir():
            from codeloop.tool.builtin.files.directory_listing import list_directory

            return await list_directory(
                ctx, target, first, limit or ctx.workspace.bounds.read_lines
            )
        try:
            head = read_head(target.real)
        except FileNotFoundError:
            if (call := _split_path(params)) is not None:
                return await read.run(call, ctx)
            raise ToolFailure(await describe_missing_file(ctx, target)) from None
        mime = detect_media_type(head)
        if mime is not None:
            return await asyncio.to_thread(attach_file, ctx, target, mime)
        others = list[CodeBlock]()
        if params.symbol:
            block, others = await asyncio.to_thread(find_symbol, ctx, target, params.symbol)
            first, limit = block.first_line, block.last_line - block.first_line + 1
        lines_range = await asyncio.to_thread(
            _read_lines,
            target,
            first,
            limit or ctx.workspace.bounds.read_lines,
            ctx.workspace.bounds.read_bytes,
        )
        is_whole = limit is None and params.offset is None
        outline = await _outline_long_file(target, lines_range) if is_whole else []
        if outline:
            lines_range = replace(
                lines_range, lines=lines_range.lines[:_HEAD_LINES], reached_limit="lines"
            )
    if lines_range.lines or lines_range.first == 1:
        ctx.workspace.read_log.record_read(ctx.session_id, target.real, lines_range.stamp)
    is_complete = lines_range.reached_limit == "lines" and bool(
        params.symbol or (params.offset and params.limit)
    )
    result = _format_file(ctx, target, lines_range, is_complete=is_complete)
    if outline:
        rows = "\n".join(outline)
        result = replace(result, output=f"{result.output}\n\nOutline (`symbol` reads one):\n{rows}")
    return await _add_other_blocks(ctx, params, result, others) if others else result


def _split_path(params: ReadParams) -> ReadParams | None:
    """Return the call that is meant by a path which does not exist as it is written;
    None: it holds neither a range of lines nor, for an outline, a wildcard.
    """
    if match := re.fullmatch(_PATH_WITH_LINES, params.file_path):
        name, start, end = match[1], int(match[2]), int(match[3])
        return ReadParams(name, offset=start, limit=max(end - start, 0) + 1)
    if params.symbol and is_pattern(params.symbol) and has_wildcard(params.file_path):
        return ReadParams(split_root(params.file_path)[0] or ".", symbol=params.symbol)
    return None


async def _outline_long_file(target: ResolvedPath, lines_range: LineRange) -> list[str]:
    """Return the outline of a file that is too long to be shown whole;
    none for a shorter file, or if the outline would say little.
    """
    if (lines_range.total_lines or 0) <= READ_WHOLE_LINES.value:
        return []
    outline = format_outline(
        await asyncio.to_thread(list_file_blocks, target.real), READ_OUTLINE_LINES.value
    )
    return outline if len(outline) >= _MIN_OUTLINE_ROWS else []


async def _add_other_blocks(
    ctx: ToolContext, params: ReadParams, result: ToolResult, others: Sequence[CodeBlock]
) -> ToolResult:
    """Return a result with further blocks of the same name and file: the lines of short ones,
    of others their place.
    """
    count = _count_shown([count_lines(each) for each in others])
    shown, left = others[:count], others[count:]
    calls = [ReadParams(params.file_path, each.first_line, count_lines(each)) for each in shown]
    texts = [(await read.run(call, ctx)).output for call in calls]
    if left:
        ranges = ", ".join(
            f"{each.first_line}-{each.last_line}" for each in left[:_MAX_OTHER_BLOCKS]
        )
        more = f" and {len(left) - _MAX_OTHER_BLOCKS} more" if len(left) > _MAX_OTHER_BLOCKS else ""
        texts.append(f"(`{params.symbol}` is also at lines {ranges}{more})")
    return replace(result, output="\n\n".join([result.output, *texts]))


def _count_shown(line_counts: Sequence[int]) -> int:
    """Return how many of further definitions, from the first one,
    are shown whole: as long as they are short.
    """
    sums = accumulate(line_counts[:_MAX_OTHER_FILES])
    return sum(1 for _ in takewhile(lambda lines: lines <= _MAX_OTHER_LINES, sums))


async def _read_symbol_below(ctx: ToolContext, folder: ResolvedPath, symbol: str) -> ToolResult:
    """Return the lines of a symbol from the file below a folder that defines it,
    and the names of other such files.
    """
    # The last part of the name: `compile` of `Rule.compile(text)`.
    word = re.split(r"\W+", symbol.partition("(")[0].strip())[-1]
    query = GrepQuery(
        rf"\b{re.escape(word)}\b", mode="files", max_shown_matches=SEARCH_RESULTS.value
    )
    try:
        matches = await ctx.workspace.ripgrep.grep(folder.path, query, ctx.workspace.environment)
    except SearchFailed as error:
        raise ToolFailure(f"The search failed: {error}") from error
    files = await filter_free_to_read(ctx, [hits.path for hits in matches.files])
    defining = await asyncio.to_thread(list_defining, files, symbol)
    if not defining:
        where = format_path(ctx.workspace, folder.path)
        raise ToolFailure(
            f"No file in {where} defines `{replace_undecodable(symbol)}`.",
            advice="grep finds where it is used.",
        )
    (first, _), *others = defining
    result = await read.run(ReadParams(str(first), symbol=symbol), ctx)
    texts = [f"{format_path(ctx.workspace, first)}\n{result.output}"]
    count = _count_shown([lines for _, lines in others])
    left = others[count:]
    for path, _ in others[:count]:
        further = await read.run(ReadParams(str(path), symbol=symbol), ctx)
        texts.append(f"{format_path(ctx.workspace, path)}\n{further.output}")
    if left:
        names = [format_path(ctx.workspace, path) for path, _ in left[:_MAX_OTHER_FILES]]
        texts.append(f"(also defined in {', '.join(names)})")
    return replace(result, output="\n\n".join(texts))


def _read_lines(target: ResolvedPath, first: int, limit: int, max_bytes: int) -> LineRange:
    """Return lines of a file; of a notebook, lines of its cells as text."""
    if target.real.suffix == ".ipynb" and target.real.stat().st_size <= READ_NOTEBOOK.value:
        loaded = read_file(target.real, READ_NOTEBOOK.value)
        text = render_notebook(loaded.data)
        if text is not None:
            return _take_lines(text, first, limit, max_bytes, loaded.stamp)
    return read_lines(target.real, first, limit, max_bytes)


def _take_lines(text: str, first: int, limit: int, max_bytes: int, stamp: FileStamp) -> LineRange:
    """Return lines of a text with the limits that hold for a file: number of lines,
    length of a line, bytes.
    """
    lines = text.splitlines()
    taken: list[str] = []
    size = 0
    reached_limit = ""
    for line in lines[first - 1 :]:
        size += len(line.encode(errors="replace")) + _LINE_OVERHEAD_BYTES
        if len(taken) == limit:
            reached_limit = "lines"
            break
        if taken and size > max_bytes:
            reached_limit = "bytes"
            break
        taken.append(
            line if len(line) <= READ_LINE.value else line[: READ_LINE.value] + "... (line cut)"
        )
    return LineRange(
        tuple(taken), first, total_lines=len(lines), reached_limit=reached_limit, stamp=stamp
    )


def _format_file(
    ctx: ToolContext, target: ResolvedPath, lines_range: LineRange, *, is_complete: bool
) -> ToolResult:
    """Return the result for lines of a file. `is_complete`: the call asked for just these lines."""
    workspace, path = ctx.workspace, replace_undecodable(str(target.path))
    name, last = format_path(workspace, target.path), lines_range.first + len(lines_range.lines) - 1
    if not lines_range.lines and lines_range.first > 1:
        count = (
            f"{lines_range.total_lines} lines"
            if lines_range.total_lines is not None
            else "too many lines to count"
        )
        raise ToolFailure(f"{name} has {count}; offset {lines_range.first} is beyond its end")
    output = "\n".join(
        f"{number}: {line}" for number, line in enumerate(lines_range.lines, lines_range.first)
    )
    # After a refused edit the model has to see the lines again: a reference to them
    # would lead to the same edit.
    was_refused = ctx.workspace.read_log.take_refusal(ctx.session_id, target.real)
    is_long = len(output) > _MIN_REFERENCE_CHARACTERS
    lines_read = dict[int, str]()
    if is_long and not was_refused:
        lines_read = find_lines_read(ctx.session.list_results_in_next_request(), path)[path]
    earlier_first = _find_earlier_first(lines_read, lines_range)
    is_known = earlier_first is not None
    if is_known:
        total = f" of {lines_range.total_lines}" if lines_range.total_lines is not None else ""
        earlier_last = earlier_first + last - lines_range.first
        moved = "" if earlier_first == lines_range.first else f", as {earlier_first}-{earlier_last}"
        output = f"{name} lines {lines_range.first}-{last}{total} have not changed since you read them above{moved}."
    ends_here = is_complete or not lines_range.reached_limit
    closing = (
        []
        if is_known and ends_here
        else _format_closing(
            lines_range, last, workspace.bounds.read_bytes, is_complete=is_complete
        )
    )
    output = "\n\n".join([output or "(The file is empty)", *closing])
    instructions = find_instructions(ctx, target)
    output = "\n\n".join([output, *instructions.values()])
    metadata = _make_metadata(path, lines_range, last) | {
        "loaded": [str(file) for file in instructions]
    }
    metadata |= {UNCHANGED_KEY: True} if is_known else {}
    return ToolResult(
        replace_undecodable(workspace.format_for_user(target.path)),
        output,
        metadata,
        is_bounded=True,
    )


def _make_metadata(path: str, lines_range: LineRange, last: int) -> JSON:
    """Return the excerpt that user interfaces show. `last`: the number of the last line."""
    is_truncated = bool(lines_range.reached_limit)
    display = {
        "type": "file",
        "path": path,
        "text": "\n".join(lines_range.lines),
        "lineStart": lines_range.first,
        "lineEnd": max(last, lines_range.first) if lines_range.lines else 0,
        "totalLines": lines_range.total_lines if lines_range.total_lines is not None else last,
        "truncated": is_truncated,
    }
    return {
        "preview": "\n".join(lines_range.lines[:PREVIEW_LINES]),
        "truncated": is_truncated,
        "loaded": [],
        "display": display,
    }


def _find_earlier_first(lines_read: Mapping[int, str], lines_range: LineRange) -> int | None:
    """Return the number that the first line had when the session read all these lines;
    None: it has not read all.

    The number differs from the present one if an edit above the lines has moved them.
    """
    if not lines_read:
        return None
    start = lines_range.lines[0] if lines_range.lines else ""
    same_lines = islice(
        (number for number, line in lines_read.items() if line == start), _MAX_EARLIER_STARTS
    )
    for first in (lines_range.first, *same_lines):
        if all(
            lines_read.get(number) == line for number, line in enumerate(lines_range.lines, first)
        ):
            return first
    return None


def _format_closing(
    lines_range: LineRange, last: int, max_bytes: int, *, is_complete: bool
) -> list[str]:
    """Return the closing line of a result, if it needs one: the range, the total,
    and the offset to read on from.
    """
    total = lines_range.total_lines if lines_range.total_lines is not None else f"more than {last}"
    why = f"cut at {max_bytes // 1024} KB; " if lines_range.reached_limit == "bytes" else ""
    if lines_range.reached_limit and not is_complete:
        return [f"(lines {lines_range.first}-{last} of {total}; {why}offset={last + 1} goes on)"]
    if lines_range.first > 1 or is_complete:
        return [f"(lines {lines_range.first}-{last} of {total})"]
    return ["(whole file)"] if len(lines_range.lines) > PREVIEW_LINES else []
