"""Tells an empty search from one whose files were left out because an ignore file names them."""

from pathlib import Path

from codeloop.tool.tool import ToolContext
from codeloop.workspace.search.ripgrep import SearchFailed


async def note_ignored(ctx: ToolContext, folder: Path, pattern: str | None) -> list[str]:
    """Return a note if ignored files below a folder match (None: there are any),
    where no others do; else nothing.
    """
    try:
        count = await ctx.workspace.ripgrep.count_ignored(
            folder, pattern, ctx.workspace.environment
        )
    except SearchFailed:
        return []
    if not count:
        return []
    files = "1 file is" if count == 1 else f"{count} files are"
    return [
        f"{files} there, but left out by .gitignore or another ignore file; `ls -A` shows ignored files"
    ]
