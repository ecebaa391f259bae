"""Suggests known names with a similar spelling."""

from collections.abc import Iterable

MAX_SUGGESTIONS = 3
MAX_NAME_LENGTH = 1_000
"""In characters; a longer name is no misspelling, and comparing it takes long."""
MIN_PART_LENGTH = 4
"""Characters; a shorter name is part of too many others by chance."""


def find_similar(name: str, names: Iterable[str], *, parts: bool = False, most_edits: int | None = None) -> list[str]:
    """Return at most three known names that `name` may be a misspelling of, the nearest first; case does not count.

    A name is near if it differs by at most one edit (a swap counts as one) for every three characters, or by
    `most_edits` in all, and by at most twice the edits of the nearest name.
    `parts`: names that contain `name` are near too.
    """
    from rapidfuzz.distance import OSA

    lower_name = name.lower()
    matches: list[tuple[int, int, int, str]] = []
    for index, each in enumerate(dict.fromkeys(names)):
        most = max(1, min(len(lower_name), len(each)) // 3) if most_edits is None else most_edits
        is_near = abs(len(lower_name) - len(each)) <= most and max(len(lower_name), len(each)) <= MAX_NAME_LENGTH
        edits = OSA.distance(lower_name, each.lower(), score_cutoff=most) if is_near else most + 1
        if edits <= most:
            matches.append((edits, abs(len(lower_name) - len(each)), index, each))
        elif parts and len(lower_name) >= MIN_PART_LENGTH and lower_name in each.lower():
            matches.append((edits + len(lower_name), 0, index, each))
    nearest = min(matches, default=(0,))[0]
    return [
        each
        for edits, *_, each in sorted(matches)[:MAX_SUGGESTIONS]
        if edits <= 2 * nearest or edits >= len(lower_name)
    ]


def format_suggestion(names: Iterable[str]) -> str:
    """Return ` Did you mean ...?` for the names, the empty text when there is no name."""
    text = " or ".join(f"`{name}`" for name in names)
    return f" Did you mean {text}?" if text else ""
