"""Suggests existing paths for one that does not exist."""

from pathlib import Path

from codeloop.kit.text.suggest import find_similar
from codeloop.workspace.search.grep_query import SearchFailed
from codeloop.workspace.workspace import Workspace

_MAX_PATHS = 3
_MIN_SIMILARITY_PERCENT = 75


async def find_similar_paths(workspace: Workspace, path: Path) -> list[str]:
    """Return at most `_MAX_PATHS` paths, formatted for the model,
    with the same name or a similar spelling.
    """
    # Imported late: it is only needed when a path does not exist.
    from rapidfuzz import fuzz, process

    ripgrep, name = workspace.ripgrep, workspace.format_for_model(path)
    try:
        indexed = await workspace.file_index.list_names(
            workspace.directory, ripgrep, workspace.environment
        )
    except SearchFailed:
        indexed = []
    paths = [row.path.rstrip("/") for row in indexed]
    try:
        siblings = {
            entry.name: workspace.format_for_model(entry) for entry in path.parent.iterdir()
        }
    except OSError:
        siblings = dict[str, str]()
    same_name = [each for each in paths if each.lower().rpartition("/")[2] == path.name.lower()]
    similar = process.extract(
        name.lower().strip("/"),
        [each.lower() for each in paths],
        scorer=fuzz.ratio,
        limit=_MAX_PATHS,
        score_cutoff=_MIN_SIMILARITY_PERCENT,
    )
    candidates = [
        *same_name,
        *(siblings[each] for each in find_similar(path.name, siblings)),
        *(paths[index] for *_, index in similar),
    ]
    existing = [
        each
        for each in dict.fromkeys(candidates)
        if each != name and (workspace.directory / each).exists()
    ]
    return existing[:_MAX_PATHS]
