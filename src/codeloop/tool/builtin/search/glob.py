"""The tool `glob`: finds files by a pattern of their names."""

import asyncio
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from codeloop.kit.glob import split_root
from codeloop.kit.text.undecodable import escape_path
from codeloop.schema.limits import SEARCH_RESULTS
from codeloop.schema.permission import Need
from codeloop.schema.wire import Wire, replace
from codeloop.tool.builtin.search.ignored_files import note_ignored
from codeloop.tool.files.file_access import (
    REPEATED_FOLDER,
    check_unmoved,
    describe_missing_file,
    filter_names,
    resolve_search_target,
    strip_search_folder,
)
from codeloop.tool.tool import CONCURRENT_TRAITS, ToolContext, ToolFailure, ToolResult, tool
from codeloop.workspace.search.file_filter import FileFilter
from codeloop.workspace.search.grep_query import FileList, SearchFailed
from codeloop.workspace.search.links import (
    FoundLink,
    find_links,
    list_links_to_follow,
    note_links_outside,
)
from codeloop.workspace.search.newest_files import keep_newest
from codeloop.workspace.workspace import ResolvedPath


class GlobParams(Wire):
    """Arguments of the tool `glob`."""

    pattern: Annotated[str, Meta(min_length=1)]
    path: str | None = None


@tool("glob", params=GlobParams, traits=CONCURRENT_TRAITS)
async def glob(params: GlobParams, ctx: ToolContext) -> ToolResult:
    """Find the files whose paths match, the most recently changed first."""
    folder, pattern = params.path, params.pattern
    # Patterns are relative to the search folder, so the folders at the start of another
    # path become that folder.
    if pattern.startswith(("/", "~", "../")):
        start, pattern = split_root(pattern)
        pattern = f"/{pattern}"
        folder = f"{folder}/{start}" if folder and start.startswith("..") else start
    # So do those that are links, which ripgrep does not enter otherwise.
    elif (start := split_root(pattern)[0]) and _has_link(
        ctx.workspace.resolve(folder or ".").path, start
    ):
        folder = f"{folder}/{start}" if folder else start
        pattern = f"/{split_root(pattern)[1]}"
    arguments = {"pattern": params.pattern} | ({"path": params.path} if params.path else {})
    need = Need(permission="glob", patterns=(params.pattern,), always=("*",), metadata=arguments)
    target = await resolve_search_target(ctx, folder, lambda _: [need], only_folder=True)
    # A pattern that is the name of a folder means the files in it.
    if not set(pattern) & set("*?[{") and (target.path / pattern.lstrip("/")).is_dir():
        pattern = f"{pattern.rstrip('/')}/**"
    stripped = strip_search_folder(ctx.workspace, target, pattern)
    pattern = stripped or pattern
    check_unmoved(ctx, target)
    notes = [REPEATED_FOLDER.format("the pattern", stripped)] if stripped else []
    try:
        links = await find_links(ctx.workspace, target.path)
        search = partial(_list_files, ctx, target.path, links)
        listing = await search(pattern)
        # A bare name that no file has may be a part of one.
        if not listing.paths and not set(pattern) & set("*?[{/"):
            pattern = f"*{pattern}*"
            listing = await search(pattern)
            notes += [f"no file has this name; these match {pattern}"] if listing.paths else []
    except SearchFailed as error:
        raise ToolFailure(f"The search failed: {error}") from error
    if not listing.paths:
        await _check_folder(ctx, target, pattern)
        notes += await note_ignored(ctx, target.path, pattern)
    shown_paths, denial_note = await filter_names(ctx, "glob", list(map(Path, listing.paths)))
    listing = replace(listing, paths=list(map(str, shown_paths)))
    notes += [denial_note] if denial_note else []
    # In a thread: it reads the modification time of each file.
    newest_paths = await asyncio.to_thread(keep_newest, listing.paths, SEARCH_RESULTS.value)
    targets = {f"{target.path}/{link.path}": f" -> {escape_path(link.target)}" for link in links}
    paths = [
        escape_path(ctx.workspace.format_for_model(Path(path))) + targets.get(path, "")
        for path in newest_paths
    ]
    if len(paths) < len(listing.paths):
        notes.append(
            f"the newest {len(paths)} of {len(listing.paths)} files; narrow the pattern or the path for others"
        )
    notes += filter(None, (listing.stop_reason, note_links_outside(links)))
    output = "\n".join(paths) or "No files found"
    return ToolResult(
        title=ctx.workspace.format_for_user(target.path),
        output=output + (f"\n\n({'; '.join(notes)})" if notes else ""),
        metadata={
            "count": len(paths),
            "truncated": len(paths) < len(listing.paths) or bool(listing.stop_reason),
        },
    )


def _has_link(folder: Path, start: str) -> bool:
    """Return whether the relative path `start` leads from a folder to another by way of a link."""
    real = os.path.realpath(folder / start)
    return real != os.path.normpath(Path(os.path.realpath(folder)) / start) and Path(real).is_dir()


async def _list_files(
    ctx: ToolContext,
    folder: Path,
    links: Sequence[FoundLink],
    pattern: str,
) -> FileList:
    """List the files that match, links among them."""
    followed = set(list_links_to_follow(folder, links, pattern))
    folders = [link.path for link in links if link.path in followed and link.is_folder]
    listing = await ctx.workspace.ripgrep.list_files(
        folder, pattern, ctx.workspace.environment, links=folders
    )
    file_filter = FileFilter.parse(pattern)
    matching = [
        f"{folder}/{link.path}" for link in links if file_filter.accepts_unfiltered(link.path)
    ]
    return replace(listing, paths=[*listing.paths, *matching])


async def _check_folder(ctx: ToolContext, target: ResolvedPath, pattern: str) -> None:
    """Raise ToolFailure if the pattern begins with a folder that does not exist;
    the message has similar paths.
    """
    first, slash, _ = pattern.strip("/").partition("/")
    if slash and not set(first) & set("*?[{\\") and not (target.path / first).exists():
        folder = ctx.workspace.resolve(str(target.path / first))
        raise ToolFailure(
            await describe_missing_file(ctx, folder, "No files found: there is no folder {}")
        )
