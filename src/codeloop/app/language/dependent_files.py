"""Finds the files that may depend on an edited file: language servers then report the errors that it causes there."""

import asyncio
import os
import re
from pathlib import Path

from codeloop.lsp.servers.server_row import ServerRow
from codeloop.schema.bounds.language_tools import LSP_DEPENDENT_FILES, LSP_DEPENDENT_FILES_TIME
from codeloop.workspace.search.grep_query import GrepQuery, SearchFailed
from codeloop.workspace.workspace import Workspace

_NAMED_BY_FOLDER = frozenset(("__init__", "index", "mod"))
"""Names of files that others import by the name of their folder, without endings."""
_USE_PATTERNS = (
    (
        r"\b(import|from|include|require\w*|use|using|mod|alias|open|source|extends|load)\b.*\bNAME\b"
        r"|^\s*NAME(\s+as\s+\w+)?,?\s*\)?$"
    ),
    r"\bNAME\b",
)
"""Patterns for a file that uses the file NAME: an import of it; if no file has one, NAME as a word anywhere."""


async def find_dependents(workspace: Workspace, path: Path, row: ServerRow) -> list[Path] | None:
    """Return files that seem to use a file, since they import something of its name; the last changed ones first.

    None: the search took too long. Servers only report on files that they know, so these are opened as well.
    """
    name = path.parent.name if path.stem in _NAMED_BY_FOLDER else path.stem
    endings = ",".join(sorted(each.removeprefix(".") for each in row.languages if each.startswith(".")))
    files: list[Path] = []
    try:
        async with asyncio.timeout(LSP_DEPENDENT_FILES_TIME.seconds):
            for pattern in _USE_PATTERNS:
                query = GrepQuery(pattern.replace("NAME", re.escape(name)), f"*.{{{endings}}}", "files")
                grep_result = await workspace.ripgrep.grep(workspace.root, query, workspace.environment)
                # One more than wanted, since the file itself may be among them.
                candidates = [
                    Path(os.path.realpath(each.path)) for each in grep_result.files[: LSP_DEPENDENT_FILES.value + 1]
                ]
                files = [each for each in candidates if each != path and workspace.contains(each)]
                if files:
                    break
    except TimeoutError:
        return None
    except SearchFailed:
        return []
    return files[: LSP_DEPENDENT_FILES.value]
