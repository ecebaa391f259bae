"""`FuzzyIndex`: fuzzy search of lines, for the filter of pickers.

A match at the start of a text ranks first, then at the start of a word, within a word, of single letters in order.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

_SEPARATORS = str.maketrans(dict.fromkeys("/\\-_.:,()[]\t\n", " "))
# The ranks of a match: at the start of a word, within a word, and of single letters in order; 0: at the text's start.
# They are added up over the words of a query: one found as single letters counts as much as two found within words.
_WORD_START_RANK = 1
_WORD_INSIDE_RANK = 2
_LETTERS_RANK = 4
_RANK_WEIGHT = 1_000_000
"""The weight of a rank in a score: more than a position adds, but in very long texts, so that it decides first."""
_POSITION_WEIGHT = 100
"""The weight of each character before a match; a character of the text's length weighs 1."""
_SPREAD_WEIGHT = 1_000
"""The weight of the characters that single letters are spread over."""
_MAX_RANKED_LENGTH = 400
"""Characters. Shorter texts rank higher, up to this length; all longer texts count as equally long."""


class FuzzyIndex:
    """Searches texts. A query that extends the previous query searches the previous results only."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [_normalise(text) for text in texts]
        self._query = ""
        self._indices: Sequence[int] = range(len(self._texts))

    def search(self, query: str) -> list[int]:
        """Return the indices of the texts that match all words of the query, best first. An empty query matches all."""
        # What does not match a query does not match a longer one either.
        narrows_last = bool(self._query) and query.startswith(self._query)
        candidates = self._indices if narrows_last else range(len(self._texts))
        words = query.split()
        scores = _score_texts(self._texts, candidates, words) if words else [(0, index) for index in candidates]
        scores.sort()
        self._query, self._indices = query, [index for _, index in scores]
        return list(self._indices)


def find_match(text: str, query: str) -> set[int]:
    """Return the indices of the characters of a text that match a query."""
    normal_text, indices = _normalise(text), set[int]()
    for raw_word in query.split():
        word = _normalise(raw_word)
        # The start of a word first: with a blank before the text, also of its first word.
        start = f" {normal_text}".find(f" {word}")
        start = start if start >= 0 else normal_text.find(word)
        if start >= 0:
            indices |= set(range(start, start + len(word)))
        elif (match := _compile_letters(word).search(normal_text)) is not None:
            start = match.start()
            for letter in word:
                start = normal_text.index(letter, start) + 1
                indices.add(start - 1)
    return indices


def _score_texts(texts: Sequence[str], candidates: Sequence[int], words: Sequence[str]) -> list[tuple[int, int]]:
    """Return score and index of each text that matches every word; lower is better."""
    patterns = [(word, f" {word}", _compile_letters(word)) for word in map(_normalise, words)]
    scores: list[tuple[int, int]] = []
    for index in candidates:
        text = texts[index]
        total = min(_MAX_RANKED_LENGTH, len(text))
        for word, after_blank, letters in patterns:
            start = text.find(word)
            if start == 0:
                continue
            if start > 0:
                word_start = text.find(after_blank)
                if word_start >= 0:
                    total += _WORD_START_RANK * _RANK_WEIGHT + word_start * _POSITION_WEIGHT
                else:
                    total += _WORD_INSIDE_RANK * _RANK_WEIGHT + start * _POSITION_WEIGHT
            elif (match := letters.search(text)) is not None:
                total += _LETTERS_RANK * _RANK_WEIGHT + (match.end() - match.start()) * _SPREAD_WEIGHT + match.start()
            else:
                break
        else:
            scores.append((total, index))
    return scores


def _normalise(text: str) -> str:
    """Return a text in lower case, of the same length, with separators as blanks."""
    lower = text.lower()
    # Some letters get longer in lower case ("İ"); indices of matches must be those of the original text.
    return (lower if len(lower) == len(text) else "".join(char.lower()[:1] for char in text)).translate(_SEPARATORS)


# The rows of a screen are highlighted by the same few words at each key.
@lru_cache(maxsize=64)
def _compile_letters(word: str) -> re.Pattern[str]:
    """Compile a pattern for the letters of a word in their order."""
    # Each step excludes the next letter, so that the pattern never backtracks: long texts stay fast.
    first, *letters = word or " "
    return re.compile(re.escape(first) + "".join(f"[^{re.escape(letter)}]*{re.escape(letter)}" for letter in letters))
