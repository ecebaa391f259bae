"""Word differences between a removed and an added line."""

import re
from difflib import SequenceMatcher

Spans = list[tuple[int, int]]
"""The differing range of a line, in characters."""
_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)
_LONGEST = 400
_MOST = 120
_ALIKE = 0.4
"""The share of two lines that must be equal for word differences to be useful."""


def compare_words(old: str, new: str) -> tuple[Spans, Spans]:
    """Return where two lines differ, word by word; nothing if they have too little in common."""
    if len(old) > _LONGEST or len(new) > _LONGEST or old == new:
        return [], []
    first, second = _WORD.findall(old), _WORD.findall(new)
    if len(first) > _MOST or len(second) > _MOST:
        return [], []
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    blocks = matcher.get_matching_blocks()
    same = sum(len(word.strip()) for at, _, size in blocks for word in first[at : at + size])
    length = max(len("".join(old.split())), len("".join(new.split())), 1)
    if same / length < _ALIKE:
        return [], []
    return _spans_outside(first, [(at, at + size) for at, _, size in blocks]), _spans_outside(
        second, [(at, at + size) for _, at, size in blocks]
    )


def _spans_outside(words: list[str], same: list[tuple[int, int]]) -> Spans:
    """Return the spans of the words outside the ranges; spans separated by spaces only are joined."""
    places = [0]
    for word in words:
        places.append(places[-1] + len(word))
    spans: Spans = []
    last = 0
    for start, end in same:
        if start > last:
            begin, stop = places[last], places[start]
            gap = "".join(words[_index(places, spans[-1][1]) : last]) if spans else "x"
            if not gap.strip():
                begin = spans.pop()[0]
            spans.append((begin, stop))
        last = end
    return spans


def _index(places: list[int], index: int) -> int:
    return places.index(index)
