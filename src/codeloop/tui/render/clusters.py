"""Splits text into graphemes, the characters that a user perceives: letters with marks, composed emoji, flags."""

from rich.cells import split_graphemes

Cluster = tuple[int, int, int]
"""A grapheme's start, end, and width in cells."""


def split_clusters(text: str) -> list[Cluster]:
    """Return the graphemes of a text. Unlike Rich's, an emoji with its skin tone is one, and so is a flag."""
    clusters: list[Cluster] = []
    for start, end, cells in split_graphemes(text)[0]:
        char = text[start]
        if clusters and _joins(text, clusters[-1], char):
            first, _, before = clusters[-1]
            clusters[-1] = (first, end, before + cells)
        else:
            clusters.append((start, end, cells))
    return clusters


def _joins(text: str, last: Cluster, char: str) -> bool:
    if "\U0001f3fb" <= char <= "\U0001f3ff":
        return ord(text[last[0]]) > 0x2000
    return (
        "\U0001f1e6" <= char <= "\U0001f1ff"
        and last[1] - last[0] == 1
        and "\U0001f1e6" <= text[last[0]] <= "\U0001f1ff"
    )
