"""Which names match what is typed in the prompt, and in which order."""

from collections.abc import Iterable


def score_match(query: str, name: str) -> float | None:
    """Return a name's score, higher is better; None: it does not contain the query's letters in order."""
    query_text, text = query.lower(), name.lower()
    if not query_text:
        return 0.0
    # Four kinds of matches: at the start, at the start of a word, anywhere, with gaps. Within one, shorter names win.
    shortness = 1.0 / (1 + len(text))
    if text.startswith(query_text):
        return 4.0 + shortness
    start = text.find(query_text)
    if start >= 0:
        return (3.0 if not text[start - 1].isalnum() else 2.0) + shortness
    last = -1
    gaps = 0
    for letter in query_text:
        index = text.find(letter, last + 1)
        if index < 0:
            return None
        gaps += index - last - 1
        last = index
    return 1.0 / (1 + gaps) + shortness


def rank_names(query: str, names: Iterable[str]) -> list[str]:
    """Return the matching names, best first; ties keep their order."""
    scores = {name: score for name in names if (score := score_match(query, name)) is not None}
    return sorted(scores, key=scores.__getitem__, reverse=True)
