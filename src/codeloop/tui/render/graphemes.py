"""Splits text into graphemes, the characters that a user perceives: letters with marks,
composed emoji, flags.
"""

from rich.cells import split_graphemes as split_rich_graphemes

Grapheme = tuple[int, int, int]
"""A grapheme's start, end, and width in cells."""


def split_graphemes(text: str) -> list[Grapheme]:
    """Return the graphemes of a text.

    Rich's function splits an emoji from its skin tone, and the two letters of a flag;
    here they are one grapheme.
    """
    graphemes: list[Grapheme] = []
    for start, end, cells in split_rich_graphemes(text)[0]:
        char = text[start]
        if graphemes and _continues_grapheme(text, graphemes[-1], char):
            grapheme_start, _, grapheme_cells = graphemes[-1]
            graphemes[-1] = (grapheme_start, end, grapheme_cells + cells)
        else:
            graphemes.append((start, end, cells))
    return graphemes


def _continues_grapheme(text: str, grapheme: Grapheme, char: str) -> bool:
    """Return whether a character belongs to the grapheme before it: a skin tone,
    or the second letter of a flag.
    """
    start, end, _ = grapheme
    # A skin tone behind a letter or digit is shown on its own: no emoji has such a low code point.
    if "\U0001f3fb" <= char <= "\U0001f3ff":
        return ord(text[start]) > 0x2000
    return (
        "\U0001f1e6" <= char <= "\U0001f1ff"
        and end - start == 1
        and "\U0001f1e6" <= text[start] <= "\U0001f1ff"
    )
