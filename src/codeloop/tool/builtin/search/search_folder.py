"""Handles a search folder that is given twice: as the path and within the pattern."""

from codeloop.tool.file_access import format_path
from codeloop.tool.tool import ToolContext
from codeloop.workspace.workspace import ResolvedPath

TWICE = "`path` and {} both name the folder; looked for {} in it"


def strip_search_folder(ctx: ToolContext, target: ResolvedPath, pattern: str) -> str | None:
    """Return a pattern without the search folder at its start; None: it does not start with it."""
    where = format_path(ctx.workspace, target.path)
    rest = pattern.removeprefix("/").removeprefix("./").removeprefix(f"{where}/")
    is_twice = len(rest) + len(where) < len(pattern) and not (target.path / where.partition("/")[0]).exists()
    return rest if is_twice and not where.startswith("/") else None
