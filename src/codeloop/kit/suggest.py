"""Suggests known names with a similar spelling."""

from collections.abc import Iterable

MOST = 3
LONGEST = 1_000
"""Characters; longer names are no misspellings, and comparing them takes long."""
SHORTEST_PART = 4
"""Characters; a shorter name is part of too many others by chance."""


def near(name: str, known: Iterable[str], *, parts: bool = False, most_edits: int | None = None) -> list[str]:
    """Return at most three known names that `name` may be a misspelling of, the nearest first; case does not count.

    One edit (a swap counts as one) for every three characters is near, or `most_edits` in all, but no more than twice
    the edits of the nearest.
    `parts`: names that hold `name` are near too.
    """
    from rapidfuzz.distance import OSA

    wanted = name.lower()
    found: list[tuple[int, int, int, str]] = []
    for place, each in enumerate(dict.fromkeys(known)):
        most = max(1, min(len(wanted), len(each)) // 3) if most_edits is None else most_edits
        is_near = abs(len(wanted) - len(each)) <= most and max(len(wanted), len(each)) <= LONGEST
        edits = OSA.distance(wanted, each.lower(), score_cutoff=most) if is_near else most + 1
        if edits <= most:
            found.append((edits, abs(len(wanted) - len(each)), place, each))
        elif parts and len(wanted) >= SHORTEST_PART and wanted in each.lower():
            found.append((edits + len(wanted), 0, place, each))
    nearest = min(found, default=(0,))[0]
    return [each for edits, *_, each in sorted(found)[:MOST] if edits <= 2 * nearest or edits >= len(wanted)]


def suggest_names(names: Iterable[str]) -> str:
    """Return ` Did you mean ...?` for the names, the empty text when there is no name."""
    shown = " or ".join(f"`{name}`" for name in names)
    return f" Did you mean {shown}?" if shown else ""
