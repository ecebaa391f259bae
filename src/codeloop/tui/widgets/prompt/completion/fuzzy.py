"""Fuzzy matching of names. Pure."""

from collections.abc import Iterable


def fit(query: str, name: str) -> float | None:
    """Return a name's score, higher is better; None: it does not contain the query's letters in order."""
    typed, text = query.lower(), name.lower()
    if not typed:
        return 0.0
    short = 1.0 / (1 + len(text))
    if text.startswith(typed):
        return 4.0 + short
    found = text.find(typed)
    if found >= 0:
        return (3.0 if not text[found - 1].isalnum() else 2.0) + short
    at = -1
    gaps = 0
    for letter in typed:
        place = text.find(letter, at + 1)
        if place < 0:
            return None
        gaps += place - at - 1
        at = place
    return 1.0 / (1 + gaps) + short


def rank(query: str, names: Iterable[str]) -> list[str]:
    """Return the matching names, best first; ties keep their order."""
    fitting = [(score, name) for name in names if (score := fit(query, name)) is not None]
    return [name for _, name in sorted(fitting, key=lambda pair: -pair[0])]
