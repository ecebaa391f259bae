"""Wildcards of permission rules and file filters: `*` stands for any run of characters
(slashes too), `?` for one.

A text may itself be only partly known: `ANY_TEXT` in it stands for any run of characters,
`ANY_WORDS` for nothing or a blank and any run. For such texts there are two questions: `overlaps`
(could it match?) and `covers` (must it match?). Both, like `matches`, are linear in the text:
`matches` and `overlaps` take at most text times pattern, `covers` that for each of up to 64 states.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path


class NameSet:
    """The names that match one of some wildcards, in any case; only `*` is special in them.

    >>> ".ENV.local" in NameSet([".env", ".env.*", "*.pem"])
    True
    """

    def __init__(self, wildcards: Iterable[str]) -> None:
        exact: set[str] = set()
        starts: list[str] = []
        ends: list[str] = []
        others: list[tuple[str, str, str]] = []
        for wildcard in map(str.casefold, wildcards):
            start, *rest = wildcard.split("*")
            if not rest:
                exact.add(wildcard)
            elif rest == [""]:
                starts.append(start)
            elif not start and len(rest) == 1:
                ends.append(rest[0])
            else:
                others.append((start, rest[-1], wildcard))
        self._exact, self._starts, self._ends, self._others = (
            frozenset(exact),
            tuple(starts),
            tuple(ends),
            others,
        )

    def __contains__(self, name: str) -> bool:
        """Return whether a name matches one of the wildcards."""
        name = name.casefold()
        return (
            name in self._exact
            or name.startswith(self._starts)
            or name.endswith(self._ends)
            or any(
                name.startswith(start) and name.endswith(end) and matches(name, wildcard)
                for start, end, wildcard in self._others
            )
        )


# Private-use characters of Unicode. A shell line that holds one itself is never
# proved to match a rule.
ANY_TEXT = "\ue000"
ANY_WORDS = "\ue001"
MARKS = frozenset((ANY_TEXT, ANY_WORDS))

_MAX_STATES = 64
"""Alternatives that `covers` follows: each ANY_WORDS may double their number."""


class _Piece:
    """A part of a pattern between two stars. Its length is fixed,
    so searching for it never backtracks.
    """

    def __init__(self, part: str) -> None:
        self.part = part
        self.length = len(part)
        body = "".join("." if char == "?" else re.escape(char) for char in part)
        self.regex = re.compile(body, re.DOTALL) if "?" in part else None

    def is_at(self, text: str, index: int) -> bool:
        """Return whether the text has this part at an index."""
        return (
            text.startswith(self.part, index)
            if self.regex is None
            else self.regex.match(text, index) is not None
        )

    def find(self, text: str, index: int) -> int:
        """Return the first index of this part in the text from another index on; -1: none."""
        if self.regex is None:
            return text.find(self.part, index)
        match = self.regex.search(text, index)
        return -1 if match is None else match.start()


@lru_cache(maxsize=1024)
def _split_pieces(pattern: str) -> tuple[_Piece, ...]:
    return tuple(_Piece(part) for part in pattern.split("*"))


def matches(text: str, pattern: str) -> bool:
    """Return whether the whole text matches. A pattern that ends in ` *` also matches
    without anything after it.

    >>> matches("git status", "git status *")
    True
    """
    if pattern == "*":
        return True
    return _matches_exactly(text, pattern) or (
        pattern.endswith(" *") and _matches_exactly(text, pattern[:-2])
    )


def make_exact_wildcards(names: Sequence[str]) -> tuple[str, ...]:
    """Return names as wildcards that match nothing else;
    () if one has a star or question mark: none can be escaped.
    """
    return () if any(char in name for name in names for char in "*?") else tuple(names)


def _matches_exactly(text: str, pattern: str) -> bool:
    """Return whether the whole text matches, without the rule of `matches` for a final ` *`."""
    first, *others = _split_pieces(pattern)
    if not first.is_at(text, 0):
        return False
    if not others:
        return len(text) == first.length
    position = first.length
    *middle, last = others
    for piece in middle:
        index = piece.find(text, position)
        if index < 0:
            return False
        # The first occurrence is enough: it leaves most of the text to the rest.
        position = index + piece.length
    end = len(text) - last.length
    return end >= position and last.is_at(text, end)


def expand_home(pattern: str) -> str:
    """Return the pattern with a leading `~` or `$HOME` replaced by the home directory."""
    for start in ("~", "$HOME"):
        if pattern == start or pattern.startswith(start + "/"):
            return str(Path.home()) + pattern[len(start) :]
    return pattern


class _Automaton:
    """A pattern as a set of positions, one bit each: bit i means that the first i
    characters of it are used up.
    """

    def __init__(self, pattern: str) -> None:
        self.stars = self.question_marks = 0
        self.characters: dict[str, int] = {}
        for index, char in enumerate(pattern):
            bit = 1 << index
            if char == "*":
                self.stars |= bit
            elif char == "?":
                self.question_marks |= bit
            else:
                self.characters[char] = self.characters.get(char, 0) | bit
        size = len(pattern)
        self.all_positions = (1 << (size + 1)) - 1
        self.end_positions = 1 << size
        if pattern.endswith(" *"):
            # As in `matches`: the blank and the star may be missing.
            self.end_positions |= 1 << (size - 2)
        self.start = self.add_after_stars(1)

    def add_after_stars(self, state: int) -> int:
        """Add the positions after stars, since a star may match nothing."""
        while (wider := state | ((state & self.stars) << 1)) != state:
            state = wider
        return state

    def read_char(self, state: int, char: str) -> int:
        """Return the positions after reading one known character."""
        return self.add_after_stars(
            ((state & (self.characters.get(char, 0) | self.question_marks)) << 1)
            | (state & self.stars)
        )

    def read_any_run(self, state: int) -> int:
        """Read some run of characters: every position from the first one on
        can be reached by one.
        """
        # `state & -state` is the lowest bit, so this keeps that bit and all above it.
        return self.all_positions & ~((state & -state) - 1) if state else 0

    def read_every_run(self, state: int) -> int:
        """Read a run of unknown characters: only a star matches it, whatever it is."""
        return self.add_after_stars(state & self.stars)


@lru_cache(maxsize=512)
def _get_automaton(pattern: str) -> _Automaton:
    return _Automaton(pattern)


def overlaps(text: str, pattern: str) -> bool:
    """Return whether some text that the partly known `text` stands for matches the pattern.
    Exact.
    """
    automaton = _get_automaton(pattern)
    state = automaton.start
    for char in text:
        if char == ANY_TEXT:
            state = automaton.read_any_run(state)
        elif char == ANY_WORDS:
            state |= automaton.read_any_run(automaton.read_char(state, " "))
        else:
            state = automaton.read_char(state, char)
        if not state:
            return False
    return bool(state & automaton.end_positions)


def covers(text: str, pattern: str) -> bool:
    """Return whether every text that the partly known `text` stands for matches.
    May say no where it is yes.
    """
    if pattern == "*":
        return True
    automaton = _get_automaton(pattern)
    states = {automaton.start}
    for char in text:
        if char == ANY_TEXT:
            states = {automaton.read_every_run(state) for state in states}
        elif char == ANY_WORDS:
            states |= {
                automaton.read_every_run(automaton.read_char(state, " ")) for state in states
            }
        else:
            states = {automaton.read_char(state, char) for state in states}
        if 0 in states or len(states) > _MAX_STATES:
            return False
    return all(state & automaton.end_positions for state in states)


def is_within(pattern: str, patterns: Sequence[str]) -> bool:
    """Return whether a pattern allows nothing that none of the offered ones does.
    May say no where it is yes.

    >>> is_within("npm run test", ["npm run *"]), is_within("npm *", ["npm run *"])
    (True, False)
    """
    start, words = (pattern[:-2], ANY_WORDS) if pattern.endswith(" *") else (pattern, "")
    text = start.replace("*", ANY_TEXT).replace("?", ANY_TEXT) + words
    return pattern in patterns or any(covers(text, each) for each in patterns)
