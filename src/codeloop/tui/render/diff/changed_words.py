"""Finds the words that differ between the old and the new version of a line."""

import re
from difflib import SequenceMatcher

WordSpans = list[tuple[int, int]]
"""Ranges of a line, in characters: start and end."""
_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)
# Comparing takes the square of the number of words: longer lines would delay the screen.
_MAX_COMPARED_LENGTH = 400
"""Characters of a line that is compared word by word."""
_MAX_COMPARED_WORDS = 120
"""Words of a line that is compared word by word."""
# In lines that differ more, nearly every word would be highlighted, which does not help the reader.
_MIN_SIMILARITY = 0.4
"""The share of two lines' characters that must be equal."""


def compare_words(old: str, new: str) -> tuple[WordSpans, WordSpans]:
    """Return the spans of the words that differ in two lines; none if the lines have too little in common."""
    if len(old) > _MAX_COMPARED_LENGTH or len(new) > _MAX_COMPARED_LENGTH or old == new:
        return [], []
    old_words, new_words = _WORD.findall(old), _WORD.findall(new)
    if len(old_words) > _MAX_COMPARED_WORDS or len(new_words) > _MAX_COMPARED_WORDS:
        return [], []
    blocks = SequenceMatcher(None, old_words, new_words, autojunk=False).get_matching_blocks()
    # Each block is a run of equal words, by their indices.
    old_ranges = [(block.a, block.a + block.size) for block in blocks]
    new_ranges = [(block.b, block.b + block.size) for block in blocks]
    # Blanks do not count: lines that have only those in common are not alike.
    equal_length = sum(len(word.strip()) for start, end in old_ranges for word in old_words[start:end])
    length = max(len("".join(old.split())), len("".join(new.split())), 1)
    if equal_length / length < _MIN_SIMILARITY:
        return [], []
    return _find_spans_outside(old_words, old_ranges), _find_spans_outside(new_words, new_ranges)


def _find_spans_outside(words: list[str], equal_ranges: list[tuple[int, int]]) -> WordSpans:
    """Return the spans of the words outside the ranges; spans with only blanks between them are joined."""
    offsets = [0]
    for word in words:
        offsets.append(offsets[-1] + len(word))
    spans: WordSpans = []
    previous_end = 0
    # `SequenceMatcher` ends its blocks with an empty one at the end, so the words after the last equal ones are seen.
    for range_start, range_end in equal_ranges:
        if range_start > previous_end:
            start, end = offsets[previous_end], offsets[range_start]
            if spans and not "".join(words[offsets.index(spans[-1][1]) : previous_end]).strip():
                start = spans.pop()[0]
            spans.append((start, end))
        previous_end = range_end
    return spans
