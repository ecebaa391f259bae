"""Splits text into graphemes (user-perceived characters): letters with their marks, composed emoji, flags."""

from rich.cells import split_graphemes

Cluster = tuple[int, int, int]
"""A grapheme's start, end, and width in cells."""


def split_clusters(text: str) -> list[Cluster]:
    """Return the graphemes of a text: with marks, skin tones, and flags as one."""
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
