"""`PickList`: the model of a picker: its picks, the matches of the filter, the cursor,
and the rows to draw.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Generic, overload

from rich.cells import cell_len
from rich.segment import Segment

from codeloop.kit.text.terminal_text import escape_answer_controls, one_line
from codeloop.tui.dialogs.parts.pick import Pick, T
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import cut_text, fill_background, justify_row
from codeloop.tui.themes.styles import Styles

_SEPARATORS = str.maketrans(dict.fromkeys("/\\-_.:,()[]\t\n", " "))
# The ranks of a match: at the start of a word, within a word, and of single letters in order; 0: at
# the text's start. They are added up over the words of a query: one found as single letters counts
# as much as two found within words.
_WORD_START_RANK = 1
_WORD_INSIDE_RANK = 2
_LETTERS_RANK = 4
_RANK_WEIGHT = 1_000_000
"""The weight of a rank in a score: more than a position adds, but in very long texts,
so that it decides first.
"""
_POSITION_WEIGHT = 100
"""The weight of each character before a match; a character of the text's length weighs 1."""
_SPREAD_WEIGHT = 1_000
"""The weight of the characters that single letters are spread over."""
_MAX_RANKED_LENGTH = 400
"""Characters. Shorter texts rank higher, up to this length;
all longer texts count as equally long.
"""


class FuzzyIndex:
    """Searches texts. A query that extends the previous query searches the
    previous results only.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [_normalise(text) for text in texts]
        self._query = ""
        self._indices: Sequence[int] = range(len(self._texts))

    def search(self, query: str) -> list[int]:
        """Return the indices of the texts that match all words of the query, best first.
        An empty query matches all.
        """
        # What does not match a query does not match a longer one either.
        narrows_last = bool(self._query) and query.startswith(self._query)
        candidates = self._indices if narrows_last else range(len(self._texts))
        words = query.split()
        scores = (
            _score_texts(self._texts, candidates, words)
            if words
            else [(0, index) for index in candidates]
        )
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


def _score_texts(
    texts: Sequence[str], candidates: Sequence[int], words: Sequence[str]
) -> list[tuple[int, int]]:
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
                total += (
                    _LETTERS_RANK * _RANK_WEIGHT
                    + (match.end() - match.start()) * _SPREAD_WEIGHT
                    + match.start()
                )
            else:
                break
        else:
            scores.append((total, index))
    return scores


def _normalise(text: str) -> str:
    """Return a text in lower case, of the same length, with separators as blanks."""
    lower = text.lower()
    # Some letters get longer in lower case ("İ"); indices of matches must be
    # those of the original text.
    return (
        lower if len(lower) == len(text) else "".join(char.lower()[:1] for char in text)
    ).translate(_SEPARATORS)


# The rows of a screen are highlighted by the same few words at each key.
@lru_cache(maxsize=64)
def _compile_letters(word: str) -> re.Pattern[str]:
    """Compile a pattern for the letters of a word in their order."""
    # Each step excludes the next letter, so that the pattern never backtracks:
    # long texts stay fast.
    first, *letters = word or " "
    return re.compile(
        re.escape(first)
        + "".join(f"[^{re.escape(letter)}]*{re.escape(letter)}" for letter in letters)
    )


AnyPick = Pick[Any]
_MAX_TEXT = 400
"""Characters of a title, a detail or a heading that are drawn."""
_NARROW_WIDTH = 50
"""Cells below which a list is narrow."""
_MAX_NARROW_HINT = 14
"""Cells of the hints that a narrow list shows, such as keys; longer ones are left out."""
_MIN_DETAIL_WIDTH = 8
"""Cells from which a shortened detail is shown: a shorter piece of it would only be noise."""
_MAX_MEASURED_TITLES = 500
"""Titles that are measured to position the column of details;
measuring thousands would delay a key.
"""


class PickRows(Sequence[Row]):
    """The rows of a list: picks below the headings of their groups.
    A row is drawn when it becomes visible.

    `indices`: the picks that are shown, as indices of `picks`. With a query there are no headings:
    instead each row names its group, if `shows_groups`.
    """

    def __init__(
        self,
        picks: Sequence[AnyPick],
        indices: Sequence[int],
        query: str,
        *,
        shows_groups: bool = True,
    ) -> None:
        self._picks = picks
        self._indices = indices
        self._query = query
        self._shows_groups = shows_groups and bool(query.strip())
        # Matches are sorted by rank, which mixes the groups.
        self._headings = {} if query.strip() else _find_headings(picks, indices)
        self._lines: Sequence[int | str] = _list_lines(indices, self._headings)
        lines = self._lines if self._headings else ()
        self._rows_by_position = {
            line: row for row, line in enumerate(lines) if isinstance(line, int)
        }
        self._title_width = max(
            (cell_len(picks[at].title[:_MAX_TEXT]) for at in indices[:_MAX_MEASURED_TITLES]),
            default=0,
        )
        self.width = 0
        self.cursor = 0
        """The position in `indices` of the pick under the cursor."""
        self.styles: Styles | None = None

    def find_position(self, row: int) -> int | None:
        """Return the position in `indices` of the pick that a row shows; None for a heading."""
        line = self._lines[row]
        return line if isinstance(line, int) else None

    def find_row(self, position: int) -> int:
        """Return the row of a shown pick, by its position in `indices`."""
        # Without headings, each pick is in the row of its position.
        return self._rows_by_position.get(position, position)

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self._lines)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        """Draw a row: a heading, or a pick."""
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        line, styles = self._lines[index], self.styles
        if styles is None:
            return []
        if isinstance(line, str):
            return (
                [Segment(cut_text(line, self.width), styles.of("text_muted", "bold"))]
                if line
                else []
            )
        return self._draw_pick(
            self._picks[self._indices[line]], styles, is_current=line == self.cursor
        )

    def _draw_pick(self, pick: AnyPick, styles: Styles, *, is_current: bool) -> Row:
        width, muted_style = self.width, styles.of("text_muted")
        title_colour = "text_muted" if pick.problem else "text"
        title = one_line(pick.title, _MAX_TEXT, escape_answer_controls)
        if pick.keeps_blanks:
            title = escape_answer_controls(pick.title[:_MAX_TEXT].expandtabs(4))
        if pick.problem:
            hint = cut_text(one_line(pick.problem, 60).split(":")[0], width * 2 // 5)
        else:
            hint = one_line(pick.hint, 60)
        if width < _NARROW_WIDTH and cell_len(hint) > _MAX_NARROW_HINT:
            hint = ""
        room = width - 4 - (cell_len(hint) + 2 if hint else 0)
        visible_title = cut_text(title, room)
        matching = find_match(visible_title, self._query) if self._query.strip() else set[int]()
        row: Row = [
            Segment("▸ " if is_current else "  ", styles.of("primary", "bold")),
            Segment(f"{one_line(pick.mark, 1) or ' '} ", styles.of("primary")),
            *_highlight(
                visible_title, matching, styles, title_colour, "bold" if is_current else ""
            ),
        ]
        # Long titles must not push the details out of the list.
        column = min(self._title_width, max(width * 2 // 5, 24))
        group = pick.group if self._shows_groups else ""
        detail = " · ".join(one_line(text, _MAX_TEXT) for text in (pick.detail, group) if text)
        gap = max(column - cell_len(visible_title), 0) + 2
        remaining = room - cell_len(visible_title) - gap
        if detail and remaining >= _MIN_DETAIL_WIDTH:
            row += [
                Segment(" " * gap),
                Segment(cut_text(detail, remaining), styles.of(pick.detail_colour)),
            ]
        if hint:
            row = justify_row(
                row, [Segment(hint, styles.of("warning") if pick.problem else muted_style)], width
            )
        return (
            fill_background(row, styles.of("", on="background_element"), width)
            if is_current
            else row
        )


def _highlight(text: str, matching: set[int], styles: Styles, colour: str, weight: str) -> Row:
    """Return a text with the matching characters highlighted."""
    row: Row = []
    plain, style = styles.of(colour, weight), styles.of("primary", "bold")
    start = 0
    for at in range(1, len(text) + 1):
        if at == len(text) or (at in matching) != (start in matching):
            row.append(Segment(text[start:at], style if start in matching else plain))
            start = at
    return row


def _find_headings(picks: Sequence[AnyPick], indices: Sequence[int]) -> dict[int, str]:
    """Return the headings by the position in `indices` at which their group begins."""
    headings: dict[int, str] = {}
    last = ""
    for position, index in enumerate(indices):
        if picks[index].group != last:
            last = picks[index].group
            headings[position] = one_line(last, _MAX_TEXT)
    return headings


def _list_lines(indices: Sequence[int], headings: dict[int, str]) -> Sequence[int | str]:
    """Return the content of each row: the position of a pick in `indices`, a heading,
    or "" for an empty row.
    """
    if not headings:
        return range(len(indices))
    lines: list[int | str] = []
    for position in range(len(indices)):
        if position in headings:
            lines += ["", headings[position]] if lines else [headings[position]]
        lines.append(position)
    return lines


class PickList(Generic[T]):
    """The picks of a list. `matches`: the indices of those that match the filter;
    `rows` draws them.

    `finds_groups`: the filter also searches the names of groups.
    """

    def __init__(self, *, finds_groups: bool) -> None:
        self.picks: list[Pick[T]] = []
        self.matches: list[int] = []
        self.rows = PickRows((), (), "")
        self._finds_groups = finds_groups
        self._result_count = 0
        """How many picks at the end are results of the source's search."""
        self._index = FuzzyIndex(())

    @property
    def current(self) -> Pick[T] | None:
        """The pick under the cursor."""
        return self.picks[self.matches[self.rows.cursor]] if self.matches else None

    def set_picks(self, picks: Sequence[Pick[T]], results: Sequence[Pick[T]] = ()) -> None:
        """Set the picks, and after them the results of the source's search,
        which the filter never hides.
        """
        self.picks, self._result_count = [*picks, *results], len(results)
        groups = [pick.group if self._finds_groups else "" for pick in self.picks]
        pairs = zip(self.picks, groups, strict=True)
        self._index = FuzzyIndex(
            [f"{pick.title} {pick.detail} {group} {pick.search_text}" for pick, group in pairs]
        )

    def drop_results(self) -> None:
        """Drop the results of the source's search, since the filter has changed."""
        if self._result_count:
            self.set_picks(self.picks[: len(self.picks) - self._result_count])

    def filter(self, query: str, kept_value: T | None) -> None:
        """Filter by a query; the cursor goes to the row with the value `kept_value`,
        else to the first row.
        """
        self.matches = self._index.search(query)
        if self._result_count:
            # The source matched its results by texts that the filter does not have.
            result_start = len(self.picks) - self._result_count
            matches = [index for index in self.matches if index < result_start]
            self.matches = [*matches, *range(result_start, len(self.picks))]
        self.rows = PickRows(self.picks, self.matches, query, shows_groups=self._finds_groups)
        positions = (
            number
            for number, index in enumerate(self.matches)
            if self.picks[index].value == kept_value
        )
        self.rows.cursor = next(positions, 0) if kept_value is not None else 0

    def move_to(self, position: int) -> None:
        """Move the cursor to a match by its position;
        one out of range means the first or the last match.
        """
        self.rows.cursor = max(0, min(position, len(self.matches) - 1))
