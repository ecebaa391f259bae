"""Fuzzy matching of names. Pure."""

from collections.abc import Iterable


def fit(query: str, name: str) -> float | None:
    """Return a name's score, higher is better; None: it does not contain the query's letters in order."""
    query_text, text = query.lower(), name.lower()
    if not query_text:
        return 0.0
    short = 1.0 / (1 + len(text))
    if text.startswith(query_text):
        return 4.0 + short
    start = text.find(query_text)
    if start >= 0:
        return (3.0 if not text[start - 1].isalnum() else 2.0) + short
    at = -1
    gaps = 0
    for letter in query_text:
        index = text.find(letter, at + 1)
        if index < 0:
            return None
        gaps += index - at - 1
        at = index
    return 1.0 / (1 + gaps) + short


def rank(query: str, names: Iterable[str]) -> list[str]:
    """Return the matching names, best first; ties keep their order."""
    fitting = [(score, name) for name in names if (score := fit(query, name)) is not None]
    return [name for _, name in sorted(fitting, key=lambda pair: -pair[0])]
