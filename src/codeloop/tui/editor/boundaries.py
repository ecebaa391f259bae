"""Finds where the graphemes of an edited text begin and end: the characters that a user perceives."""

from codeloop.tui.render.clusters import split_clusters

_WINDOW = 96
"""Code points on either side of an offset that are examined: no typed grapheme is longer."""


def split_graphemes(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each grapheme of a text."""
    if text.isascii():
        return [(at, at + 1) for at in range(len(text))]
    return [piece for start, end, _ in split_clusters(text) for piece in _split_blanks(text, start, end)]


def _split_blanks(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Split line feeds and tabs off a grapheme: having no cells, they are joined to the character before them."""
    pieces: list[tuple[int, int]] = []
    for at in range(start, end):
        if text[at] in "\n\t" or (pieces and text[at - 1] in "\n\t"):
            pieces.append((at, at + 1))
        elif pieces:
            pieces[-1] = (pieces[-1][0], at + 1)
        else:
            pieces.append((start, at + 1))
    return pieces


def find_next_edge(text: str, at: int) -> int:
    """Return the end of the grapheme that begins at an offset."""
    if at >= len(text):
        return len(text)
    if at + 1 >= len(text) or text[at + 1].isascii():
        return at + 1
    return at + split_graphemes(text[at : at + _WINDOW])[0][1]


def find_previous_edge(text: str, at: int) -> int:
    """Return the start of the grapheme that ends at an offset."""
    if at <= 1:
        return 0
    if text[at - 1].isascii():
        return at - 1
    start = at - 1
    while start > 0 and at - start < _WINDOW and not text[start].isascii():
        start -= 1
    return start + split_graphemes(text[start:at])[-1][0]


def snap_to_edge(text: str, at: int) -> int:
    """Return the start of the grapheme around an offset."""
    if at <= 0 or at >= len(text) or text[at].isascii():
        return min(max(at, 0), len(text))
    start = at - 1
    while start > 0 and at - start < _WINDOW and not text[start].isascii():
        start -= 1
    return next((start + first for first, end in split_graphemes(text[start : at + _WINDOW]) if start + end > at), at)
