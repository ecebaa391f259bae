"""Finds the bounds of graphemes, the characters that a user perceives,
around an offset of an edited text.
"""

from codeloop.tui.render.graphemes import split_graphemes

# Only so much of a text is examined on either side of an offset,
# so that a key takes no longer in a long text.
_MAX_GRAPHEME_LENGTH = 96
"""Code points; no typed grapheme is longer."""


def find_grapheme_bounds(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each grapheme of a text."""
    if text.isascii():
        return [(offset, offset + 1) for offset in range(len(text))]
    return [
        piece
        for start, end, _ in split_graphemes(text)
        for piece in _split_blanks(text, start, end)
    ]


def _split_blanks(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Split line feeds and tabs off a grapheme,
    to which they were joined because they have no width.
    """
    pieces: list[tuple[int, int]] = []
    for offset in range(start, end):
        if text[offset] in "\n\t" or (pieces and text[offset - 1] in "\n\t"):
            pieces.append((offset, offset + 1))
        elif pieces:
            pieces[-1] = (pieces[-1][0], offset + 1)
        else:
            pieces.append((start, offset + 1))
    return pieces


def find_next_edge(text: str, offset: int) -> int:
    """Return the end of the grapheme that begins at an offset."""
    if offset >= len(text):
        return len(text)
    # A character is never joined to an ASCII character behind it.
    if offset + 1 >= len(text) or text[offset + 1].isascii():
        return offset + 1
    return offset + find_grapheme_bounds(text[offset : offset + _MAX_GRAPHEME_LENGTH])[0][1]


def find_previous_edge(text: str, offset: int) -> int:
    """Return the start of the grapheme that ends at an offset."""
    if offset <= 1:
        return 0
    if text[offset - 1].isascii():
        return offset - 1
    start = offset - 1
    while start > 0 and offset - start < _MAX_GRAPHEME_LENGTH and not text[start].isascii():
        start -= 1
    return start + find_grapheme_bounds(text[start:offset])[-1][0]


def snap_to_edge(text: str, offset: int) -> int:
    """Return the start of the grapheme around an offset."""
    if offset <= 0 or offset >= len(text) or text[offset].isascii():
        return min(max(offset, 0), len(text))
    start = offset - 1
    while start > 0 and offset - start < _MAX_GRAPHEME_LENGTH and not text[start].isascii():
        start -= 1
    for first, end in find_grapheme_bounds(text[start : offset + _MAX_GRAPHEME_LENGTH]):
        if start + end > offset:
            return start + first
    return offset
