"""Lists the entries of a directory for the tool `read`."""

import os
from pathlib import Path

from codeloop.kit.text.undecodable import replace_undecodable
from codeloop.schema.wire import JSON
from codeloop.tool.builtin.files.outline import PREVIEW_LINES
from codeloop.tool.files.file_access import filter_names, format_path
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult
from codeloop.workspace.workspace import ResolvedPath


async def list_directory(
    ctx: ToolContext, target: ResolvedPath, first: int, limit: int
) -> ToolResult:
    """Return `limit` entries of a directory, by name, from the one with the number `first` on."""
    workspace = ctx.workspace
    with os.scandir(target.real) as entries:
        names_by_path = {Path(entry.path): _format_entry(entry) for entry in entries}
    shown_paths, denial_note = await filter_names(ctx, "list", [*names_by_path])
    names = sorted(names_by_path[path] for path in shown_paths)
    if first > 1 and first > len(names):
        raise ToolFailure(
            f"{format_path(workspace, target.path)} has {len(names)} entries; offset {first} is beyond its end"
        )
    page = names[first - 1 : first - 1 + limit]
    is_truncated = first - 1 + len(page) < len(names)
    path = replace_undecodable(str(target.path))
    output = "\n".join(page) or "(The directory is empty)"
    if is_truncated:
        last = first + len(page) - 1
        output += f"\n\n(entries {first}-{last} of {len(names)}; go on with offset={last + 1})"
    output += f"\n\n({denial_note})" if denial_note else ""
    display = {
        "type": "directory",
        "path": path,
        "entries": page,
        "offset": first,
        "totalEntries": len(names),
        "truncated": is_truncated,
    }
    metadata: JSON = {
        "preview": "\n".join(page[:PREVIEW_LINES]),
        "truncated": is_truncated,
        "loaded": [],
        "display": display,
    }
    return ToolResult(replace_undecodable(workspace.format_for_user(target.path)), output, metadata)


def _format_entry(entry: "os.DirEntry[str]") -> str:
    name = replace_undecodable(entry.name).replace("\n", "\\n").replace("\r", "\\r")
    try:
        return f"{name}/" if entry.is_dir() else name
    except OSError:
        return name
