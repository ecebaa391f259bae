"""The tool `list`: shows the files below a folder as a tree, within a budget of lines."""

from collections import deque
from pathlib import Path

from codeloop.kit.text.undecodable import escape_path
from codeloop.schema.limits import TREE_LIST_LINES
from codeloop.schema.permission import Need
from codeloop.schema.wire import JSON, Wire
from codeloop.tool.files.file_access import check_unmoved, filter_names, resolve_search_target
from codeloop.tool.tool import CONCURRENT_TRAITS, ToolContext, ToolFailure, ToolResult, tool
from codeloop.workspace.search.grep_query import SearchFailed
from codeloop.workspace.search.links import find_links, note_links_outside
from codeloop.workspace.workspace import ResolvedPath


class ListParams(Wire):
    """Arguments of the tool `list`. `ignore`: patterns of files to leave out."""

    path: str | None = None
    ignore: list[str] = []


class FolderTree:
    """A folder of the tree, with its folders and files by name.

    `file_count`: the files in it and below. `is_open`: its first `shown_entries` entries are
    listed; those of a closed folder are only counted.
    """

    __slots__ = ("file_count", "files", "folders", "is_open", "shown_entries")

    def __init__(self) -> None:
        self.folders: dict[str, FolderTree] = {}
        self.files: list[str] = []
        self.file_count = 0
        self.is_open = False
        self.shown_entries = 0

    def add(self, path: str, ending: str = "") -> None:
        """Add a file by its path relative to this folder; `ending` follows its name."""
        folder = self
        folder.file_count += 1
        *steps, name = path.split("/")
        for step in steps:
            folder = folder.folders.setdefault(step, FolderTree())
            folder.file_count += 1
        folder.files.append(name + ending)

    def open(self, budget: int) -> bool:
        """Open as many folders as fit into `budget` lines, those nearest to the top first;
        return whether all fit.
        """
        self.is_open, self.shown_entries = True, min(budget, len(self.folders) + len(self.files))
        budget -= self.shown_entries
        # Breadth first, so that the upper folders of all branches come before deep ones.
        waiting = deque(self.sort_folders())
        is_complete = self.shown_entries == len(self.folders) + len(self.files)
        while waiting:
            folder = waiting.popleft()
            count = len(folder.folders) + len(folder.files)
            if count > budget:
                is_complete = False
                continue
            folder.is_open, folder.shown_entries = True, count
            budget -= count
            waiting.extend(folder.sort_folders())
        return is_complete

    def sort_folders(self) -> list["FolderTree"]:
        """Return the folders in this one, in the order of their names."""
        return [folder for _, folder in sorted(self.folders.items())]

    def format_lines(self, depth: int = 1) -> list[str]:
        """Return the lines of an opened folder: its folders, then its files,
        each in the order of their names.
        """
        indent = "  " * depth
        lines: list[str] = []
        entries = [*sorted(self.folders.items()), *((name, None) for name in sorted(self.files))]
        for name, folder in entries[: self.shown_entries]:
            label = escape_path(name)
            if folder is None:
                lines.append(f"{indent}{label}")
            elif folder.is_open:
                lines += [f"{indent}{label}/", *folder.format_lines(depth + 1)]
            else:
                lines.append(f"{indent}{label}/ ({folder.file_count} files)")
        if len(entries) > self.shown_entries:
            lines.append(f"{indent}... and {len(entries) - self.shown_entries} more")
        return lines


@tool("list", params=ListParams, traits=CONCURRENT_TRAITS)
async def list_(params: ListParams, ctx: ToolContext) -> ToolResult:
    """Show the files below a folder as a tree."""
    arguments: JSON = {"path": params.path} if params.path else {}
    arguments |= {"ignore": params.ignore} if params.ignore else {}

    def list_needs(target: ResolvedPath) -> list[Need]:
        return [
            Need(permission="list", patterns=(str(target.path),), always=("*",), metadata=arguments)
        ]

    try:
        target = await resolve_search_target(ctx, params.path, list_needs, only_folder=True)
    except ToolFailure as error:
        if "*" in (params.path or ""):
            raise ToolFailure(
                f"list takes a folder; glob finds files by the pattern {params.path}."
            ) from error
        raise
    check_unmoved(ctx, target)
    try:
        links = await find_links(ctx.workspace, target.path)
        listing = await ctx.workspace.ripgrep.list_files(
            target.path, None, ctx.workspace.environment, params.ignore
        )
    except SearchFailed as error:
        raise ToolFailure(f"The folder can't be listed: {error}") from error
    found = [*map(Path, listing.paths), *(target.path / link.path for link in links)]
    shown_paths, denial_note = await filter_names(ctx, "list", found)
    shown = {str(path) for path in shown_paths}
    top = FolderTree()
    # For the path `/` there is no second slash.
    start = len(f"{target.path}/".replace("//", "/"))
    for path in listing.paths:
        if path in shown:
            top.add(path[start:])
    for link in links:
        if str(target.path / link.path) in shown:
            top.add(link.path, f" -> {link.target}")
    is_complete = top.open(TREE_LIST_LINES.value)
    notes = (
        [] if is_complete else ["folders with a count are not shown whole; list them by their path"]
    )
    notes += filter(None, (listing.stop_reason, denial_note, note_links_outside(links)))
    lines = top.format_lines() or ["  (no files)"]
    output = "\n".join(
        [
            f"{escape_path(ctx.workspace.format_for_model(target.path))}/",
            *lines,
            *(f"\n({note})" for note in notes),
        ]
    )
    return ToolResult(
        title=ctx.workspace.format_for_user(target.path),
        output=output,
        metadata={"count": sum(path in shown for path in listing.paths), "truncated": bool(notes)},
    )
