"""Suggests known names with a similar spelling."""

from collections.abc import Iterable
from typing import NamedTuple

MAX_SUGGESTIONS = 3
MAX_NAME_LENGTH = 1_000
"""Characters; a longer name is not a misspelling, and comparing it takes long."""
MIN_PART_LENGTH = 4
"""Characters; a shorter name is part of too many others by chance."""


class _SimilarName(NamedTuple):
    """A known name that was found. The fields are in the order that sorts the nearest first."""

    edits: int
    length_difference: int
    position: int
    """The place of the name among all names."""
    name: str


def find_similar(
    name: str, names: Iterable[str], *, parts: bool = False, most_edits: int | None = None
) -> list[str]:
    """Return at most three known names that `name` may be a misspelling of, the nearest first;
    case does not count.

    A name is near if it differs by at most one edit (a swap counts as one) for every three
    characters, or by `most_edits` in all, and by at most twice the edits of the nearest name.
    `parts`: names that contain `name` are near too.
    """
    lower_name = name.lower()
    length = len(lower_name)
    matches: list[_SimilarName] = []
    for index, each in enumerate(dict.fromkeys(names)):
        max_edits = max(1, min(length, len(each)) // 3) if most_edits is None else most_edits
        length_difference = abs(length - len(each))
        # A cheap check before the comparison: each character too many is an edit.
        may_be_near = length_difference <= max_edits and max(length, len(each)) <= MAX_NAME_LENGTH
        edits = _count_edits(lower_name, each.lower(), max_edits) if may_be_near else max_edits + 1
        if edits <= max_edits:
            matches.append(_SimilarName(edits, length_difference, index, each))
        elif parts and length >= MIN_PART_LENGTH and lower_name in each.lower():
            # After all names that are near by their spelling.
            matches.append(_SimilarName(edits + length, 0, index, each))
    matches.sort()
    nearest = matches[0].edits if matches else 0
    # Names that contain `name` were given more edits than it has characters: those stay too.
    return [
        match.name
        for match in matches[:MAX_SUGGESTIONS]
        if match.edits <= 2 * nearest or match.edits >= length
    ]


def format_suggestion(names: Iterable[str]) -> str:
    """Return ` Did you mean ...?` for the names, "" when there is no name."""
    text = " or ".join(f"`{name}`" for name in names)
    return f" Did you mean {text}?" if text else ""


def _count_edits(name: str, other: str, most: int) -> int:
    """Return by how many edits two names differ; more than `most`: by more than that."""
    # Imported late: most names differ too much in length to be compared.
    from rapidfuzz.distance import OSA

    return OSA.distance(name, other, score_cutoff=most)
