"""Suggests existing paths for one that does not exist."""

from pathlib import Path

from codeloop.kit.suggest import find_similar
from codeloop.workspace.search.rg_matches import SearchFailed
from codeloop.workspace.workspace import Workspace

_MOST = 3
_ALIKE = 75  # of 100, as rapidfuzz counts


async def similar_paths(workspace: Workspace, path: Path) -> list[str]:
    """Return at most three paths, formatted for the model: with the same name, or similarly spelled."""
    from rapidfuzz import fuzz, process

    ripgrep, name = workspace.ripgrep, workspace.shorten(path)
    try:
        rows = await workspace.file_index.names(workspace.directory, ripgrep, workspace.environment)
    except SearchFailed:
        rows = []
    paths = [row.path.rstrip("/") for row in rows]
    try:
        beside = {entry.name: workspace.shorten(entry) for entry in path.parent.iterdir()}
    except OSError:
        beside = dict[str, str]()
    same = [each for each in paths if each.lower().rpartition("/")[2] == path.name.lower()]
    close = process.extract(
        name.lower().strip("/"), [each.lower() for each in paths], scorer=fuzz.ratio, limit=_MOST, score_cutoff=_ALIKE
    )
    candidates = [
        *same,
        *(beside[each] for each in find_similar(path.name, beside)),
        *(paths[index] for *_, index in close),
    ]
    alike = [each for each in dict.fromkeys(candidates) if each != name and (workspace.directory / each).exists()]
    return alike[:_MOST]
