"""The tool `grep`: text in files."""

import asyncio
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from codeloop.kit.glob import has_magic, split_root
from codeloop.schema.limits import SEARCH_RESULTS
from codeloop.schema.permission import Need
from codeloop.schema.wire import JSON, Wire, replace
from codeloop.tool.builtin.search.grep_lines import share_lines, show_blocks
from codeloop.tool.builtin.search.search_folder import TWICE, strip_search_folder
from codeloop.tool.file_access import (
    check_unmoved,
    filter_free,
    read_need,
    readable,
    resolve,
    search_target,
)
from codeloop.tool.tool import READ_ONLY, ToolContext, ToolFailure, ToolResult, tool
from codeloop.workspace.search.rg_matches import FileMatches, GrepResult, MatchLine, Mode, Query, SearchFailed
from codeloop.workspace.search.ripgrep import printable
from codeloop.workspace.workspace import ResolvedPath

_MOST_CONTEXT = 100
_LOCK_FILES = frozenset({
    "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "deno.lock", "poetry.lock",
    "pdm.lock", "uv.lock", "Pipfile.lock", "Cargo.lock", "composer.lock", "Gemfile.lock", "go.sum", "flake.lock",
    "mix.lock",
})  # fmt: skip
_BAR = re.compile(r"(?<!\\)\\\|")
_FEW = 3
"""How many matches of a lock file are shown when other files match too."""


class GrepParams(Wire):
    """What the model passes."""

    pattern: Annotated[str, Meta(min_length=1)]
    path: Annotated[str, Meta(description="file or folder")] | None = None
    include: Annotated[str, Meta(description="only files like src/**/*.ts, !*.test.ts")] | None = None
    context: Annotated[int, Meta(description="lines around a match")] = 0
    before: int = 0
    after: int = 0
    mode: Annotated[Mode, Meta(description="default content")] = "content"
    ignore_case: bool = False
    multiline: bool = False
    block: bool = False


@tool("grep", params=GrepParams, traits=READ_ONLY)
async def grep(params: GrepParams, ctx: ToolContext) -> ToolResult:
    """Show the lines that match, newest files first."""
    params, target, note = await _find_target(params, ctx)
    is_named = not target.path.is_dir()
    check_unmoved(ctx, target)
    query = Query(
        pattern=params.pattern,
        include=f"{params.include}**" if params.include and params.include.endswith("/") else params.include,
        mode=params.mode,
        before=_limit_context(params.before or params.context),
        after=_limit_context(params.after or params.context),
        ignore_case=params.ignore_case,
        multiline=params.multiline,
        shown=SEARCH_RESULTS.value,
    )
    search_result, how = await _search(target.path, query, ctx)
    search_result = (
        search_result if is_named else _drop_lock_files(await _drop_unreadable(search_result, ctx), params, ctx)
    )
    if params.block and params.mode == "content":
        names = {hits.path: readable(str(hits.path)) for hits in search_result.files}
        lines_read = ctx.session.lines_read(*names.values())
        search_result = await asyncio.to_thread(
            show_blocks, search_result, {path: lines_read[name] for path, name in names.items()}
        )
    result = _format_result(params, search_result, ctx)
    return replace(result, output="\n\n".join(text for text in (result.output, note, how) if text))


async def _find_target(params: GrepParams, ctx: ToolContext) -> tuple[GrepParams, ResolvedPath, str]:
    """Return where to search; a missing path that looks like a pattern is used as one, with a note."""
    path = params.path

    def needs(target: ResolvedPath) -> list[Need]:
        arguments: JSON = {"pattern": params.pattern}
        arguments |= {"path": path} if path else {}
        arguments |= {"include": params.include} if params.include else {}
        need = Need(permission="grep", patterns=(params.pattern,), always=("*",), metadata=arguments)
        return [need] if target.path.is_dir() else [need, read_need(ctx.workspace, target)]

    if path and not params.include and has_magic(path) and not os.path.lexists(resolve(ctx.workspace, path).path):
        folder, pattern = split_root(path)
        target = await search_target(ctx, folder, needs, only_folder=True)
        return replace(params, path=folder, include=f"/{pattern}"), target, "(`path` was taken for a pattern of files.)"
    target = await search_target(ctx, path, needs)
    twice = strip_search_folder(ctx, target, params.include) if params.include else None
    if twice is None:
        return params, target, ""
    return replace(params, include=f"/{twice}"), target, f"({TWICE.format('`include`', twice)}.)"


async def _search(path: Path, query: Query, ctx: ToolContext) -> tuple[GrepResult, str]:
    """Search for the pattern; a note tells when it was searched for in another form than written."""
    try:
        result, note = await _run_search(path, query, ctx)
        pattern = _BAR.sub("|", query.pattern)
        if result.matches or note or pattern == query.pattern:
            return result, note
        second, note = await _run_search(path, replace(query, pattern=pattern), ctx)
    except SearchFailed as error:
        raise ToolFailure(f"The search failed: {error}") from error
    if note or not second.matches:
        return result, ""
    return second, "(`\\|` is a plain bar and matched nothing; searched with `|`.)"


async def _run_search(path: Path, query: Query, ctx: ToolContext) -> tuple[GrepResult, str]:
    """Search; an invalid regular expression is searched for as plain text, with a note."""
    search = ctx.workspace.ripgrep.grep
    try:
        return await search(path, query, ctx.workspace.environment), ""
    except SearchFailed as error:
        if "regex parse error" not in str(error):
            raise
        reason = str(error).rpartition("error: ")[2].strip()
        note = f"(Searched for as plain text, as it is not a valid regular expression: {reason}.)"
        return await search(path, replace(query, fixed=True), ctx.workspace.environment), note


def _limit_context(count: int) -> int:
    return min(max(count, 0), _MOST_CONTEXT)


async def _drop_unreadable(result: GrepResult, ctx: ToolContext) -> GrepResult:
    """Leave out the files that need permission to read, with a note."""
    free = {*await filter_free(ctx, [hits.path for hits in result.files])}
    files = [hits for hits in result.files if hits.path in free]
    left_out = len(result.files) - len(files)
    if not left_out:
        return result
    what = "files that match are" if left_out > 1 else "file that matches is"
    note = f"{left_out} {what} left out, not free to read; with one as path, its reading is asked about"
    stopped = f"{result.stopped}; {note}" if result.stopped else note
    return GrepResult(files, sum(hits.matches for hits in files), stopped)


def _drop_lock_files(result: GrepResult, params: GrepParams, ctx: ToolContext) -> GrepResult:
    """Leave out most lines of lock files, which are generated, when other files match too, with a note."""
    locks = [hits for hits in result.files if hits.path.name in _LOCK_FILES and hits.matches > _FEW]
    if params.mode != "content" or not locks or len(locks) == len(result.files):
        return result
    names = ", ".join(printable(ctx.workspace.shorten(hits.path)) for hits in locks)
    left_out = sum(hits.matches for hits in locks)
    note = f"{left_out} more in {names} left out; with it as path they are shown"
    stopped = f"{result.stopped}; {note}" if result.stopped else note
    return GrepResult([hits for hits in result.files if hits not in locks], result.matches - left_out, stopped)


def _format_result(params: GrepParams, search_result: GrepResult, ctx: ToolContext) -> ToolResult:
    if not search_result.matches:
        note = f" ({search_result.stopped})" if search_result.stopped else ""
        return ToolResult(params.pattern, f"No matches found{note}", {"matches": 0, "truncated": bool(note)})
    blocks, count, display = _format_files(search_result.files, params, ctx)
    files = _format_count(len(search_result.files), "file")
    total, what = search_result.matches, f"{_format_count(search_result.matches, 'match', 'es')} in {files}"
    if params.mode == "files":
        total, what = len(search_result.files), files
    order, narrow = (", newest files first", ", path or include") if len(search_result.files) > 1 else ("", "")
    are_shared = params.mode == "content" and len(search_result.files) > 1
    some = f"{count} shown, of each file some" if are_shared else f"the first {count}"
    notes = [f"{some}{order}; narrow the pattern{narrow}"] if count < total else []
    notes += [search_result.stopped] if search_result.stopped else []
    if max(params.context, params.before, params.after) > _MOST_CONTEXT:
        notes.append(f"with {_MOST_CONTEXT} lines around a match, which is the most")
    head = what + (f" ({'; '.join(notes)})" if notes else "")
    separator = "\n\n" if params.mode == "content" else "\n"
    return ToolResult(
        title=params.pattern,
        output=f"{head}\n{separator.join(blocks)}",
        metadata={"matches": total, "files": len(search_result.files), "truncated": bool(notes)}
        | ({"display": display} if display else {}),
    )


def _format_count(number: int, word: str, plural: str = "s") -> str:
    return f"{number} {word}{'' if number == 1 else plural}"


def _format_files(files: list[FileMatches], params: GrepParams, ctx: ToolContext) -> tuple[list[str], int, list[JSON]]:
    """Return the text of each file, how many matches (or files, by mode) they show, and the lines as data for clients.

    A file's data: `path`, and `lines` of number, whether it matches, and text; number 0 stands between groups.
    """
    most = SEARCH_RESULTS.value
    names = [printable(ctx.workspace.shorten(hits.path)) for hits in files[:most]]
    match params.mode:
        case "files":
            return names, len(names), []
        case "count":
            pairs = list(zip(names, files, strict=False))
            return [f"{name}: {hits.matches}" for name, hits in pairs], sum(hits.matches for _, hits in pairs), []
        case "content":
            blocks: list[str] = []
            display: list[JSON] = []
            total = 0
            for name, hits, lines in zip(names, files, share_lines(files[:most]), strict=False):
                count = sum(line.is_match for line in lines)
                total += count
                rows = [*_group_lines(lines, grouped=_has_context(params))]
                rest = [f"({hits.matches - count} more)"] if count < hits.matches and len(files) > 1 else []
                blocks.append("\n".join([name, *_format_lines(rows, few_numbers=params.block), *rest]))
                display.append({"path": name, "lines": [[row.number, row.is_match, row.text] for row in rows]})
            return blocks, total, display


def _has_context(params: GrepParams) -> bool:
    return params.block or max(params.context, params.before, params.after) > 0


def _group_lines(lines: list[MatchLine], *, grouped: bool) -> Iterator[MatchLine]:
    """Yield lines with a `--` line between groups that do not touch, as ripgrep prints them."""
    last = 0
    for line in lines:
        if grouped and last and line.number > last + 1:
            yield MatchLine(0, "--", is_match=False)
        last = line.number  # 0: the line stands for others, which were read
        yield line


def _format_lines(lines: list[MatchLine], *, few_numbers: bool) -> Iterator[str]:
    """Yield lines with their numbers. With `few_numbers` only matches and the first line of a group have one.

    In whole functions the numbers of the other lines cost a tenth of the output, and are in the way of an edit.
    """
    last = -1
    for line in lines:
        is_plain = not line.number or (few_numbers and not line.is_match and line.number == last + 1)
        last = line.number
        yield line.text if is_plain else f"{line.number}{':' if line.is_match else '-'} {line.text}"
