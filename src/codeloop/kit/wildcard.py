"""Wildcards of permission rules and file filters: `*` stands for any run of characters (slashes too), `?` for one.

A text may itself be only partly known: `ANY` in it stands for any run of characters, `WORDS` for nothing or a blank and
any run. For such texts there are two questions: `overlaps` (could it match?) and `covers` (must it match?).
Every function is linear in the text, and never takes more than text times pattern.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

ANY = "\ue000"
WORDS = "\ue001"
MARKS = frozenset((ANY, WORDS))

_MOST_ALTERNATIVES = 64


class _Piece:
    """A part between two stars: it has a fixed length, so looking for it never backtracks."""

    def __init__(self, part: str) -> None:
        self.part = part
        self.size = len(part)
        body = "".join("." if char == "?" else re.escape(char) for char in part)
        self.regex = re.compile(body, re.DOTALL) if "?" in part else None

    def is_at(self, text: str, at: int) -> bool:
        """Return whether the text has it at a place."""
        return text.startswith(self.part, at) if self.regex is None else self.regex.match(text, at) is not None

    def find(self, text: str, at: int) -> int:
        """Return where the text first has it from a place on, -1: nowhere."""
        if self.regex is None:
            return text.find(self.part, at)
        match = self.regex.search(text, at)
        return -1 if match is None else match.start()


@lru_cache(maxsize=1024)
def _pieces(pattern: str) -> tuple[_Piece, ...]:
    return tuple(_Piece(part) for part in pattern.split("*"))


def matches(text: str, pattern: str) -> bool:
    """Return whether the whole text matches. A pattern that ends in ` *` also matches without anything after it.

    >>> matches("git status", "git status *")
    True
    """
    if pattern == "*":
        return True
    return _matches_whole(text, pattern) or (pattern.endswith(" *") and _matches_whole(text, pattern[:-2]))


def escape_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names as wildcards that match nothing else; none at all where one has a star or a question mark in it."""
    return () if any(char in name for name in names for char in "*?") else tuple(names)


def _matches_whole(text: str, pattern: str) -> bool:
    first, *rest = _pieces(pattern)
    if not first.is_at(text, 0):
        return False
    if not rest:
        return len(text) == first.size
    position = first.size
    *middle, last = rest
    for piece in middle:
        index = piece.find(text, position)
        if index < 0:
            return False
        position = index + piece.size
    end = len(text) - last.size
    return end >= position and last.is_at(text, end)


def expand_home(pattern: str) -> str:
    """Return the pattern with a leading `~` or `$HOME` replaced by the home directory."""
    for start in ("~", "$HOME"):
        if pattern == start or pattern.startswith(start + "/"):
            return str(Path.home()) + pattern[len(start) :]
    return pattern


class _Automaton:
    """A pattern as a set of positions, one bit each: bit i means that the first i characters of it are used up."""

    def __init__(self, pattern: str) -> None:
        self.stars = self.singles = 0
        self.letters: dict[str, int] = {}
        for index, char in enumerate(pattern):
            bit = 1 << index
            if char == "*":
                self.stars |= bit
            elif char == "?":
                self.singles |= bit
            else:
                self.letters[char] = self.letters.get(char, 0) | bit
        size = len(pattern)
        self.every = (1 << (size + 1)) - 1
        self.ends = 1 << size
        if pattern.endswith(" *"):
            self.ends |= 1 << (size - 2)
        self.start = self.close(1)

    def close(self, state: int) -> int:
        """Add the positions behind stars, which may stand for nothing."""
        while (wider := state | ((state & self.stars) << 1)) != state:
            state = wider
        return state

    def step(self, state: int, char: str) -> int:
        """Read one known character."""
        return self.close(((state & (self.letters.get(char, 0) | self.singles)) << 1) | (state & self.stars))

    def reach(self, state: int) -> int:
        """Read any run: every position from the first one on can be reached by some run."""
        return self.every & ~((state & -state) - 1) if state else 0

    def add_star(self, state: int) -> int:
        """Read any run: only a star is certain to swallow it."""
        return self.close(state & self.stars)


@lru_cache(maxsize=512)
def _automaton(pattern: str) -> _Automaton:
    return _Automaton(pattern)


def overlaps(text: str, pattern: str) -> bool:
    """Return whether some text that the partly known `text` stands for matches the pattern. Exact."""
    automaton = _automaton(pattern)
    state = automaton.start
    for char in text:
        if char == ANY:
            state = automaton.reach(state)
        elif char == WORDS:
            state |= automaton.reach(automaton.step(state, " "))
        else:
            state = automaton.step(state, char)
        if not state:
            return False
    return bool(state & automaton.ends)


def covers(text: str, pattern: str) -> bool:
    """Return whether every text that the partly known `text` stands for matches. May say no where it is yes."""
    if pattern == "*":
        return True
    automaton = _automaton(pattern)
    states = {automaton.start}
    for char in text:
        if char == ANY:
            states = {automaton.add_star(state) for state in states}
        elif char == WORDS:
            states |= {automaton.add_star(automaton.step(state, " ")) for state in states}
        else:
            states = {automaton.step(state, char) for state in states}
        if 0 in states or len(states) > _MOST_ALTERNATIVES:
            return False
    return all(state & automaton.ends for state in states)


def is_within(pattern: str, patterns: Sequence[str]) -> bool:
    """Return whether a pattern allows nothing that none of the offered ones does. May say no where it is yes.

    >>> is_within("npm run test", ["npm run *"]), is_within("npm *", ["npm run *"])
    (True, False)
    """
    start, words = (pattern[:-2], WORDS) if pattern.endswith(" *") else (pattern, "")
    text = start.replace("*", ANY).replace("?", ANY) + words
    return pattern in patterns or any(covers(text, each) for each in patterns)


def smart_pattern(query: str, between: str = r"\s+") -> re.Pattern[str]:
    """Compile a search pattern for typed words: case counts if there is a capital letter.

    `between`: what may stand where the text has blanks.
    """
    words = between.join(map(re.escape, query.split()))
    return re.compile(words, 0 if any(map(str.isupper, query)) else re.IGNORECASE)
