"""The tool `grep`: finds text in files by a regular expression."""

import asyncio
import os
import re
from pathlib import Path
from typing import Annotated, NamedTuple

from msgspec import Meta

from codeloop.kit.glob import has_wildcard, split_root
from codeloop.kit.text.terminal_text import one_line
from codeloop.kit.text.undecodable import escape_path, replace_undecodable
from codeloop.schema.limits import SEARCH_RESULTS
from codeloop.schema.permission import Need
from codeloop.schema.wire import JSON, Wire, replace
from codeloop.tool.builtin.search.grep_lines import (
    KnownLine,
    format_lines,
    group_lines,
    share_lines,
    shorten_known_lines,
    show_blocks,
)
from codeloop.tool.files.file_access import (
    REPEATED_FOLDER,
    check_unmoved,
    filter_free_to_read,
    filter_names,
    make_read_need,
    resolve_path,
    resolve_search_target,
    strip_search_folder,
)
from codeloop.tool.files.shown_files import find_lines_read
from codeloop.tool.json_schema import UNSENT
from codeloop.tool.tool import CONCURRENT_TRAITS, ToolContext, ToolFailure, ToolResult, tool
from codeloop.workspace.search.grep_query import (
    FileMatches,
    GrepMode,
    GrepQuery,
    GrepResult,
    MatchLine,
    SearchFailed,
)
from codeloop.workspace.search.links import find_links, list_links_to_follow, note_links_outside
from codeloop.workspace.workspace import ResolvedPath

# Before, and after, each match.
_MAX_CONTEXT_LINES = 100
_LOCK_FILES = frozenset({
    "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "deno.lock", "poetry.lock",
    "pdm.lock", "uv.lock", "Pipfile.lock", "Cargo.lock", "composer.lock", "Gemfile.lock", "go.sum", "flake.lock",
    "mix.lock",
})  # fmt: skip
# Matches `\|` whose backslash is not escaped itself.
_ESCAPED_BAR = r"(?<!\\)\\\|"
# Matches a backslash before a letter, as in `C:\new`.
_ESCAPED_LETTER = r"(?<!\\)\\[A-Za-z]"
# A lock file with more matches is left out if other files match,
# too: its text is generated and long.
_MAX_LOCK_FILE_MATCHES = 3
_SHOWN_BY_OTHER_NOTE = "as shown by the search for {} of this step"
# A search is named by so much of its pattern in the results of other calls.
_MAX_PATTERN_CHARS = 60


class GrepParams(Wire):
    """Arguments of the tool `grep`. `context`, `before` and `after` in lines;
    `block`: show whole functions.
    """

    pattern: Annotated[str, Meta(min_length=1)]
    path: str | None = None
    include: Annotated[str, Meta(description="like *.{ts,tsx}, !*.test.ts")] | None = None
    context: int = 0
    before: Annotated[int, Meta(extra_json_schema=UNSENT)] = 0
    after: Annotated[int, Meta(extra_json_schema=UNSENT)] = 0
    mode: GrepMode = "content"
    ignore_case: bool = False
    multiline: Annotated[bool, Meta(extra_json_schema=UNSENT)] = False
    block: bool = False


@tool("grep", params=GrepParams, traits=CONCURRENT_TRAITS)
async def grep(params: GrepParams, ctx: ToolContext) -> ToolResult:
    """Search for lines that match, in the most recently changed files first."""
    params, target, note = await _find_target(params, ctx)
    is_file = not target.path.is_dir()
    check_unmoved(ctx, target)
    links = [] if is_file else await find_links(ctx.workspace, target.path)
    include = params.include
    if include and include.endswith("/"):
        include = f"{include}**"
    query = GrepQuery(
        pattern=params.pattern,
        include=include,
        mode=params.mode,
        lines_before=_limit_context(params.before or params.context),
        lines_after=_limit_context(params.after or params.context),
        ignore_case=params.ignore_case,
        multiline=params.multiline,
        max_shown_matches=SEARCH_RESULTS.value,
        links=tuple(list_links_to_follow(target.path, links, include)),
    )
    search_result, pattern_note = await _search(target.path, query, ctx)
    note = " ".join(filter(None, (note, _put_in_brackets(note_links_outside(links)))))
    # A file that the call names is shown in any case: permission to read it was asked for.
    if not is_file:
        search_result = _drop_lock_files(await _drop_unreadable(search_result, ctx), params, ctx)
    if params.block and params.mode == "content":
        names = {hits.path: replace_undecodable(str(hits.path)) for hits in search_result.files}
        lines_read = find_lines_read(ctx.session.list_results_in_next_request(), *names.values())
        search_result = await asyncio.to_thread(
            show_blocks, search_result, {path: lines_read[name] for path, name in names.items()}
        )
    result = _format_result(params, search_result, ctx)
    return replace(
        result, output="\n\n".join(text for text in (result.output, note, pattern_note) if text)
    )


async def _find_target(
    params: GrepParams, ctx: ToolContext
) -> tuple[GrepParams, ResolvedPath, str]:
    """Return the arguments, the file or folder to search in,
    and a note if the arguments were changed ("" if not).

    A `path` that is a glob pattern becomes `include`; a folder that `include` repeats from
    `path` is removed from it.
    """
    path = params.path

    def list_needs(target: ResolvedPath) -> list[Need]:
        arguments: JSON = {"pattern": params.pattern}
        arguments |= {"path": path} if path else {}
        arguments |= {"include": params.include} if params.include else {}
        need = Need(
            permission="grep", patterns=(params.pattern,), always=("*",), metadata=arguments
        )
        return [need] if target.path.is_dir() else [need, make_read_need(ctx.workspace, target)]

    if (
        path
        and not params.include
        and has_wildcard(path)
        and not os.path.lexists(resolve_path(ctx, path).path)
    ):
        folder, pattern = split_root(path)
        target = await resolve_search_target(ctx, folder, list_needs, only_folder=True)
        return (
            replace(params, path=folder, include=f"/{pattern}"),
            target,
            "(`path` was taken for a pattern of files.)",
        )
    target = await resolve_search_target(ctx, path, list_needs)
    stripped = (
        strip_search_folder(ctx.workspace, target, params.include) if params.include else None
    )
    if stripped is None:
        return params, target, ""
    return (
        replace(params, include=f"/{stripped}"),
        target,
        f"({REPEATED_FOLDER.format('`include`', stripped)}.)",
    )


async def _search(path: Path, query: GrepQuery, ctx: ToolContext) -> tuple[GrepResult, str]:
    r"""Search for the pattern; return the result, and a note if the pattern was not used
    as written ("" if it was).

    Models write `a\|b` as for the program grep, where it means "a or b"; in ripgrep `\|` matches a
    bar. They write `C:\new` for that text, and in ripgrep `\n` is a line break. So a pattern with
    such a backslash that finds nothing is tried in these ways, too.
    """
    try:
        result, note = await _run_search(path, query, ctx)
        if result.matches or note:
            return result, note
        with_bars = re.sub(_ESCAPED_BAR, "|", query.pattern)
        if with_bars != query.pattern:
            second, note = await _run_search(path, replace(query, pattern=with_bars), ctx)
            if second.matches and not note:
                return second, "(`\\|` is a plain bar and matched nothing; searched with `|`.)"
        if re.search(_ESCAPED_LETTER, query.pattern):
            second, _ = await _run_search(path, replace(query, is_plain_text=True), ctx)
            if second.matches:
                return (
                    second,
                    "(As a regular expression it matched nothing; searched for as plain text.)",
                )
    except SearchFailed as error:
        raise ToolFailure(f"The search failed: {error}") from error
    return result, ""


async def _run_search(path: Path, query: GrepQuery, ctx: ToolContext) -> tuple[GrepResult, str]:
    """Search; if the pattern is not a valid regular expression,
    search for it as plain text and return a note.
    """
    search = ctx.workspace.ripgrep.grep
    try:
        return await search(path, query, ctx.workspace.environment), ""
    except SearchFailed as error:
        if "regex parse error" not in str(error):
            raise
        reason = str(error).rpartition("error: ")[2].strip()
        note = f"(Searched for as plain text, as it is not a valid regular expression: {reason}.)"
        return await search(
            path, replace(query, is_plain_text=True), ctx.workspace.environment
        ), note


def _put_in_brackets(note: str) -> str:
    return f"({note[0].upper()}{note[1:]}.)" if note else ""


def _limit_context(count: int) -> int:
    return min(max(count, 0), _MAX_CONTEXT_LINES)


async def _drop_unreadable(result: GrepResult, ctx: ToolContext) -> GrepResult:
    """Remove the files that may not be read without a question from a result,
    and note how many they are.
    """
    named_paths, _ = await filter_names(ctx, "grep", [hits.path for hits in result.files])
    readable_paths = {*await filter_free_to_read(ctx, named_paths)}
    files = [hits for hits in result.files if hits.path in readable_paths]
    left_out = len(result.files) - len(files)
    if not left_out:
        return result
    what = "files that match are" if left_out > 1 else "file that matches is"
    note = f"{left_out} {what} left out, not free to read; with one as path, its reading is asked about"
    stopped = f"{result.stop_reason}; {note}" if result.stop_reason else note
    return GrepResult(files, sum(hits.matches for hits in files), stopped)


def _drop_lock_files(result: GrepResult, params: GrepParams, ctx: ToolContext) -> GrepResult:
    """Remove lock files with many matches from a result if other files match, too,
    and note their names.
    """
    locks = [
        hits
        for hits in result.files
        if hits.path.name in _LOCK_FILES and hits.matches > _MAX_LOCK_FILE_MATCHES
    ]
    if params.mode != "content" or not locks or len(locks) == len(result.files):
        return result
    names = ", ".join(escape_path(ctx.workspace.format_for_model(hits.path)) for hits in locks)
    left_out = sum(hits.matches for hits in locks)
    note = f"{left_out} more in {names} left out; with it as path they are shown"
    stopped = f"{result.stop_reason}; {note}" if result.stop_reason else note
    return GrepResult(
        [hits for hits in result.files if hits not in locks], result.matches - left_out, stopped
    )


def _format_result(params: GrepParams, search_result: GrepResult, ctx: ToolContext) -> ToolResult:
    if not search_result.matches:
        note = f" ({search_result.stop_reason})" if search_result.stop_reason else ""
        return ToolResult(
            params.pattern, f"No matches found{note}", {"matches": 0, "truncated": bool(note)}
        )
    formatted = _format_files(search_result.files, params, ctx)
    files = _format_count(len(search_result.files), "file")
    if params.mode == "files":
        total, heading = len(search_result.files), files
    else:
        total = search_result.matches
        heading = f"{_format_count(total, 'match', 'es')} in {files}"
    notes = _make_notes(params, search_result, formatted.shown_matches, total)
    heading += f" ({'; '.join(notes)})" if notes else ""
    separator = "\n\n" if params.mode == "content" else "\n"
    return ToolResult(
        title=params.pattern,
        output=f"{heading}\n{separator.join(formatted.blocks)}",
        metadata={"matches": total, "files": len(search_result.files), "truncated": bool(notes)}
        | ({"display": formatted.display} if formatted.display else {}),
    )


def _make_notes(params: GrepParams, search_result: GrepResult, shown: int, total: int) -> list[str]:
    """Return the notes of the heading: on what is not shown, and why.
    `shown`, `total`: numbers of matches.
    """
    has_several_files = len(search_result.files) > 1
    notes: list[str] = []
    if shown < total:
        is_shared = params.mode == "content" and has_several_files
        selection = f"{shown} shown, of each file some" if is_shared else f"the first {shown}"
        order = ", newest files first" if has_several_files else ""
        notes.append(
            f"{selection}{order}; narrow the pattern{', path or include' if has_several_files else ''}"
        )
    if search_result.stop_reason:
        notes.append(search_result.stop_reason)
    if max(params.context, params.before, params.after) > _MAX_CONTEXT_LINES:
        notes.append(f"with {_MAX_CONTEXT_LINES} lines around a match, which is the most")
    return notes


def _format_count(number: int, word: str, plural: str = "s") -> str:
    """Return a number with its word: `1 match`, `2 matches`. `plural`: the ending of the plural."""
    return f"{number} {word}{'' if number == 1 else plural}"


class _FormattedFiles(NamedTuple):
    """The text of each file, and the number of matches in them;
    in the mode `files`, each file counts as one match.

    `display`: for user interfaces; the `path` of each file and its `lines`, each as `[number,
    is_match, text]`,
    as in `MatchLine`.
    """

    blocks: list[str]
    shown_matches: int
    display: list[JSON]


def _format_files(
    files: list[FileMatches], params: GrepParams, ctx: ToolContext
) -> _FormattedFiles:
    shown_files = files[: SEARCH_RESULTS.value]
    names = [escape_path(ctx.workspace.format_for_model(hits.path)) for hits in shown_files]
    if params.mode == "files":
        return _FormattedFiles(names, len(names), [])
    if params.mode == "count":
        counts = [f"{name}: {hits.matches}" for name, hits in zip(names, shown_files, strict=True)]
        return _FormattedFiles(counts, sum(hits.matches for hits in shown_files), [])
    blocks: list[str] = []
    display: list[JSON] = []
    total, max_bytes = 0, ctx.workspace.bounds.search_bytes
    for name, hits, lines in zip(
        names, shown_files, share_lines(shown_files, max_bytes), strict=True
    ):
        count = sum(line.is_match for line in lines)
        total += count
        new_lines = (
            _refer_to_other_searches(hits.path, lines, params, ctx) if params.block else lines
        )
        rows = [*group_lines(new_lines, grouped=_has_context(params))]
        rest = [f"({hits.matches - count} more)"] if count < hits.matches and len(files) > 1 else []
        blocks.append("\n".join([name, *format_lines(rows, few_numbers=params.block), *rest]))
        display.append(
            {"path": name, "lines": [[row.number, row.is_match, row.text] for row in rows]}
        )
    return _FormattedFiles(blocks, total, display)


def _refer_to_other_searches(
    path: Path, lines: list[MatchLine], params: GrepParams, ctx: ToolContext
) -> list[MatchLine]:
    """Return the lines of a file, with those that other searches of this step show
    replaced by references to them.

    The lines that remain are recorded as shown by this search.
    """
    real = Path(os.path.realpath(path))
    step = (ctx.session_id, ctx.message_id)
    shown_lines = ctx.services.shown_lines
    known = {
        number: KnownLine(line.text, _SHOWN_BY_OTHER_NOTE.format(line.search))
        for number, line in shown_lines.list_lines_of_step(*step, real).items()
    }
    new_lines = [*shorten_known_lines(lines, known)]
    search = f"`{replace_undecodable(one_line(params.pattern, _MAX_PATTERN_CHARS))}`"
    shown_lines.record(
        *step, real, {line.number: line.text for line in new_lines if line.number}, search
    )
    return new_lines


def _has_context(params: GrepParams) -> bool:
    return params.block or max(params.context, params.before, params.after) > 0
