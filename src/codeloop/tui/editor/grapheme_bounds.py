"""Finds the bounds of graphemes, the characters that a user perceives, around an offset of an edited text."""

from codeloop.tui.render.graphemes import split_graphemes

# Only so much of a text is examined on either side of an offset, so that a key takes no longer in a long text.
_MAX_GRAPHEME_LENGTH = 96
"""Code points; no typed grapheme is longer."""


def find_grapheme_bounds(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each grapheme of a text."""
    if text.isascii():
        return [(at, at + 1) for at in range(len(text))]
    return [piece for start, end, _ in split_graphemes(text) for piece in _split_blanks(text, start, end)]


def _split_blanks(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Split line feeds and tabs off a grapheme, to which they were joined because they have no width."""
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
    # A character is never joined to an ASCII character behind it.
    if at + 1 >= len(text) or text[at + 1].isascii():
        return at + 1
    return at + find_grapheme_bounds(text[at : at + _MAX_GRAPHEME_LENGTH])[0][1]


def find_previous_edge(text: str, at: int) -> int:
    """Return the start of the grapheme that ends at an offset."""
    if at <= 1:
        return 0
    if text[at - 1].isascii():
        return at - 1
    start = at - 1
    while start > 0 and at - start < _MAX_GRAPHEME_LENGTH and not text[start].isascii():
        start -= 1
    return start + find_grapheme_bounds(text[start:at])[-1][0]


def snap_to_edge(text: str, at: int) -> int:
    """Return the start of the grapheme around an offset."""
    if at <= 0 or at >= len(text) or text[at].isascii():
        return min(max(at, 0), len(text))
    start = at - 1
    while start > 0 and at - start < _MAX_GRAPHEME_LENGTH and not text[start].isascii():
        start -= 1
    return next(
        (
            start + first
            for first, end in find_grapheme_bounds(text[start : at + _MAX_GRAPHEME_LENGTH])
            if start + end > at
        ),
        at,
    )
