"""Corrects calls of glob and grep that name the search folder twice: as `path`, and at the start of the pattern."""

from codeloop.tool.files.file_access import format_path
from codeloop.tool.tool import ToolContext
from codeloop.workspace.workspace import ResolvedPath

REPEATED_FOLDER = "`path` and {} both name the folder; looked for {} in it"


def strip_search_folder(ctx: ToolContext, target: ResolvedPath, pattern: str) -> str | None:
    """Return a pattern without the search folder at its start; None when the pattern does not start with it.

    A pattern that starts with a folder of the same name inside the search folder means that one, and stays.
    """
    where = format_path(ctx.workspace, target.path)
    rest = pattern.removeprefix("/").removeprefix("./").removeprefix(f"{where}/")
    is_repeated = len(rest) + len(where) < len(pattern) and not (target.path / where.partition("/")[0]).exists()
    return rest if is_repeated and not where.startswith("/") else None
