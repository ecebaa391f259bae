"""Outlines of files and folders for the tool `read`: their functions, classes and sections,
with the lines of each. Finds the blocks that define a symbol.
"""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.text.suggest import find_similar, format_suggestion
from codeloop.kit.text.truncate import share_fairly
from codeloop.kit.text.undecodable import replace_undecodable
from codeloop.schema.bounds.outlines import (
    OUTLINE_BYTES,
    OUTLINE_FILES,
    OUTLINED_FILE,
    READ_OUTLINE_LINES,
)
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON
from codeloop.tool.files.file_access import filter_free_to_read, format_path
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult
from codeloop.workspace.files.encoding import decode_text
from codeloop.workspace.files.safe_open import read_file
from codeloop.workspace.search.code_blocks import (
    CodeBlock,
    find_blocks,
    format_outline,
    has_blocks,
    list_exact_blocks,
    match_blocks,
)
from codeloop.workspace.search.grep_query import SearchFailed
from codeloop.workspace.workspace import ResolvedPath

# A file's heading besides its name: the number of lines.
_HEADING_BYTES = 20
PREVIEW_LINES = 20
"""The first lines of a result, which user interfaces show."""
# Symbols of a file that an error suggests for one that does not exist.
_MAX_SUGGESTED_SYMBOLS = 30


class _FileOutline(NamedTuple):
    """A file's name for the model, its number of lines, and the blocks that match."""

    name: str
    line_count: int
    blocks: list[CodeBlock]


def is_pattern(symbol: str) -> bool:
    """Return whether a symbol is a pattern, such as `*` or `Rule.*`."""
    # `(*T).name` is a method of Go with a pointer receiver.
    return "*" in symbol.removeprefix("(*")


def list_file_blocks(path: Path) -> list[CodeBlock]:
    """Return the functions, classes and sections of a file; none of one that is very large."""
    return _parse_file(path)[1]


async def outline_file(ctx: ToolContext, target: ResolvedPath, pattern: str) -> ToolResult:
    """Return the outline of a file: a line for each symbol that matches.
    Raises ToolFailure when none does.
    """
    line_count, blocks = await asyncio.to_thread(_parse_file, target.real)
    name = format_path(ctx.workspace, target.path)
    matches = match_blocks(blocks, pattern)
    if not matches:
        raise ToolFailure(
            f"{name} has no {_describe_pattern(pattern)}.",
            advice="Read it with offset and limit, or grep.",
        )
    rows = [
        f"{name} ({_format_line_count(line_count)})",
        *format_outline(matches, READ_OUTLINE_LINES.value),
    ]
    return _make_result(ctx, target, "\n".join(rows), file_count=1)


async def outline_folder(ctx: ToolContext, folder: ResolvedPath, pattern: str) -> ToolResult:
    """Return the outlines of the files below a folder, which share the bytes fairly.

    Ignored files and those that need a permission to be read are left out.
    Raises ToolFailure when no symbol matches.
    """
    workspace = ctx.workspace
    try:
        listing = await workspace.ripgrep.list_files(folder.path, None, workspace.environment)
    except SearchFailed as error:
        raise ToolFailure(f"The folder can't be listed: {error}") from error
    files = await filter_free_to_read(ctx, await asyncio.to_thread(_order_files, listing.paths))
    first_files = files[: OUTLINE_FILES.value]
    outlines = await asyncio.to_thread(_outline_files, ctx, first_files, pattern)
    where = format_path(workspace, folder.path)
    if not outlines:
        raise ToolFailure(
            f"No file in {where} has {_describe_pattern(pattern)}.",
            advice="grep or list says what is there.",
        )
    parts = _fit_outlines(sorted(outlines))
    if len(files) > len(first_files):
        parts.append(
            f"({len(files) - len(first_files)} more files are not shown; name a folder below {where})"
        )
    parts += [f"({listing.stop_reason})"] if listing.stop_reason else []
    return _make_result(ctx, folder, "\n\n".join(parts), file_count=len(outlines))


def _order_files(paths: Iterable[str]) -> list[Path]:
    """Return the files that may have blocks, those in the upper folders first: they
    say most about a folder.
    """
    files = (path for path in map(Path, paths) if has_blocks(path.suffix))
    return sorted(files, key=lambda path: (len(path.parts), path))


def _parse_file(path: Path) -> tuple[int, list[CodeBlock]]:
    """Return how many lines a file has, and its blocks; 0 and none for a very large one."""
    if path.stat().st_size > OUTLINED_FILE.value:
        return 0, []
    text = decode_text(read_file(path, OUTLINED_FILE.value).data).content
    return text.count("\n") + (not text.endswith("\n")), list_exact_blocks(text, path.suffix)


def _outline_files(ctx: ToolContext, paths: Sequence[Path], pattern: str) -> list[_FileOutline]:
    outlines: list[_FileOutline] = []
    for path in paths:
        try:
            line_count, blocks = _parse_file(path)
        # The file was removed meanwhile, or is not text.
        except (OSError, CodeloopError):
            continue
        if matches := match_blocks(blocks, pattern):
            outlines.append(_FileOutline(format_path(ctx.workspace, path), line_count, matches))
    return outlines


def _fit_outlines(outlines: Sequence[_FileOutline]) -> list[str]:
    """Return the texts of outlines that together fit into OUTLINE_BYTES.

    An outline that is larger than its share loses its smallest nested blocks.
    """
    sizes = [_measure_bytes(format_outline(each.blocks, len(each.blocks))) for each in outlines]
    headings = sum(len(each.name.encode()) + _HEADING_BYTES for each in outlines)
    shares = share_fairly(sizes, max(OUTLINE_BYTES.value - headings, 0))
    texts: list[str] = []
    for each, share in zip(outlines, shares, strict=True):
        count = len(each.blocks)
        rows = format_outline(each.blocks, count)
        while count and (size := _measure_bytes(rows)) > share:
            # In proportion to the size, and at least one block fewer each time.
            count = min(count - 1, count * share // size)
            rows = format_outline(each.blocks, count)
        heading = f"{each.name} ({_format_line_count(each.line_count)})"
        texts.append("\n".join([heading, *rows]))
    return texts


def _measure_bytes(rows: Sequence[str]) -> int:
    """Return how many bytes the rows take with their line ends."""
    return sum(len(row.encode(errors="replace")) + 1 for row in rows)


def _format_line_count(count: int) -> str:
    return f"{count} line{'' if count == 1 else 's'}"


def _describe_pattern(pattern: str) -> str:
    return (
        f"`{replace_undecodable(pattern)}`"
        if pattern.strip("*")
        else "functions, classes or sections that could be listed"
    )


def _make_result(
    ctx: ToolContext, target: ResolvedPath, output: str, *, file_count: int
) -> ToolResult:
    """Return the result of a call. `file_count`: how many files are in the outline."""
    metadata: JSON = {
        "preview": "\n".join(output.splitlines()[:PREVIEW_LINES]),
        "truncated": False,
        "loaded": [],
        "files": file_count,
    }
    return ToolResult(
        replace_undecodable(ctx.workspace.format_for_user(target.path)),
        replace_undecodable(output),
        metadata,
    )


def count_lines(block: CodeBlock) -> int:
    """Return how many lines a block has."""
    return block.last_line - block.first_line + 1


def list_defining(files: Sequence[Path], symbol: str) -> list[tuple[Path, int]]:
    """Return the files that define a symbol, each with the lines of its definitions.

    Those with the fewest folders in their paths come first.
    """
    by_depth = sorted(files, key=lambda path: (len(path.parts), str(path)))
    counts = (
        (path, sum(map(count_lines, find_blocks(list_file_blocks(path), symbol))))
        for path in by_depth
    )
    return [(path, count) for path, count in counts if count]


def find_symbol(
    ctx: ToolContext, target: ResolvedPath, symbol: str
) -> tuple[CodeBlock, list[CodeBlock]]:
    """Return the first block of that name, and the others.
    Raises ToolFailure if the file has none.
    """
    blocks = list_file_blocks(target.real)
    matches = find_blocks(blocks, symbol)
    if matches:
        return matches[0], matches[1:]
    name, names = format_path(ctx.workspace, target.path), [each.name for each in blocks]
    close = find_similar(symbol.rpartition(".")[2], (each.rpartition(".")[2] for each in names))
    rows = format_outline(blocks, _MAX_SUGGESTED_SYMBOLS)
    advice = f"It has: {', '.join(rows)}" if rows else "Read it with offset and limit, or grep."
    raise ToolFailure(
        f"{name} has no `{replace_undecodable(symbol)}`.{format_suggestion(close)}", advice=advice
    )
