"""Makes the errors of failed edits: they say where the text occurs more than once,
or what is similar to it. Pure.

A model often remembers a function and finds its name in a comment or a docstring first:
lines of code count more.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from codeloop.schema.errors import CodeloopError
from codeloop.workspace.edit.matchers import Span
from codeloop.workspace.search.code_blocks import CodeBlock, list_blocks

# The most occurrences that are counted of a text that should be unique, and the most characters of
# them together, since they may overlap.
_MAX_COUNTED = 1_000
_MAX_COUNTED_CHARS = 5_000_000
# Cells of Levenshtein tables that are computed at once, and in all.
_CELLS_AT_ONCE = 40_000_000
_MAX_CELLS = 3_000_000_000
# The occurrences of an ambiguous text whose line numbers are listed, and those that are quoted.
_MAX_LISTED_LINES = 10
_MAX_QUOTED_PLACES = 3
# Lines before and after a quoted occurrence, and characters of each line.
_CONTEXT_LINES = 2
_MAX_QUOTED_CHARS = 200
# How similar the nearest line must be to be shown, 0 to 1.
_MIN_LINE_SIMILARITY = 0.55
# A line of this many characters is long enough to locate the intended place.
_MIN_LOCATING_CHARS = 6
# Lines of the old text that are searched for, the longest of its code first; lines similar to one
# of them; and places of one line of the old text.
_MAX_PROBES = 3
_MAX_SIMILAR_LINES = 8
_MAX_EQUAL_LINES = 20
# Lines of the old text that are compared with each candidate, and characters of each.
_MAX_COMPARED_LINES = 60
_MAX_COMPARED_CHARS = 500
# A character of code counts this many times as much as one of a comment.
_CODE_WEIGHT = 4
# A line that is found one line above or below its place counts a little less.
_MOVED_LINE_WEIGHT = 0.95
# Other places are named if their score is at most this much below that of the nearest one,
# up to this number of places.
_MAX_SCORE_DISTANCE = 0.1
_MAX_OTHER_PLACES = 5
# A longer line is cut before it is compared with one line of the old text.
_MAX_PROBE_CHARS = 2000
# The lines of the nearest place that are quoted, and the characters of each.
_MAX_NEAREST_LINES = 12
_MAX_NEAREST_CHARS = 300
# The start of a comment in the usual languages: `#`, `//`, `/*`, ` * text`, `-- `, `<!--`;
# not `#include` and the like.
_COMMENT_START = (
    r"(?:#(?!\s*(?:include|define|if|ifdef|ifndef|endif|else)\b)|//|/\*|\*(?:[\s/]|$)|--\s|<!--)"
)
_TRIPLE_QUOTES = r"\"\"\"|'''"


class TextNames(NamedTuple):
    """What errors call the old and the new text of an edit."""

    old: str
    new: str


PARAMETER_NAMES = TextNames("oldString", "newString")
"""As the tools `edit` and `multiedit` call them."""


class EditRefused(CodeloopError):
    """The old text is missing, occurs more than once, or changes nothing;
    `advice` is for the model alone.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


def get_count_limit(span: Span) -> int:
    """Return the most occurrences that are counted of a text as long as this one."""
    start, end = span
    return max(2, min(_MAX_COUNTED, _MAX_COUNTED_CHARS // (end - start + 1)))


def make_ambiguity_error(
    text: str, spans: Sequence[Span], match_note: str = "", *, or_else: str = "", suffix: str = ""
) -> EditRefused:
    """Make the error for a text that was found more than once;
    it names each place with its function.

    `match_note`: a clause on how it was found, "" for exactly. `or_else`: what surrounding lines
    would do, or what else the model may do; "": the usual advice.
    `suffix`: the end of the file's name.
    """
    lines = [text.count("\n", 0, start) + 1 for start, _ in spans[:_MAX_LISTED_LINES]]
    rest = f" and {len(spans) - _MAX_LISTED_LINES} more" if len(spans) > _MAX_LISTED_LINES else ""
    count = (
        f"at least {len(spans)}" if len(spans) == get_count_limit(spans[0]) > 2 else f"{len(spans)}"
    )
    how = f" ({match_note})" if match_note else ""
    return EditRefused(
        f"The text to replace was found {count} times{how}, at lines {_name_places(text, lines, suffix)}{rest}.",
        f"Add surrounding lines{or_else or ' to make it unique, or set replaceAll to change every place'}.\n"
        f"{_quote_spans(text, _choose_quoted(text, spans))}",
    )


def _name_places(text: str, lines: Sequence[int], suffix: str) -> str:
    """Return line numbers, each with the function that holds the line: `12 (Rule.compile), 40`."""
    blocks = list_blocks(text, suffix) if suffix else []
    return ", ".join(f"{line}{_name_function(blocks, line)}" for line in lines)


def _name_function(blocks: Sequence[CodeBlock], line: int) -> str:
    enclosing = [each for each in blocks if each.first_line <= line <= each.last_line]
    return f" ({max(enclosing, key=lambda each: each.depth).name})" if enclosing else ""


def _choose_quoted(text: str, spans: Sequence[Span]) -> list[Span]:
    """Return the places that are quoted, in their order: those in code,
    then those in comments and docstrings.
    """
    if len(spans) <= _MAX_QUOTED_PLACES:
        return list(spans)
    prose = _find_prose_lines(text.split("\n"))
    chosen = sorted(spans[:_MAX_COUNTED], key=lambda span: prose[text.count("\n", 0, span[0])])[
        :_MAX_QUOTED_PLACES
    ]
    return sorted(chosen)


def _find_prose_lines(lines: Sequence[str]) -> list[bool]:
    """Return for each line whether it is a comment, or part of a text between three
    quotes such as a docstring.
    """
    prose: list[bool] = []
    # The quotes that end the text that a line is inside of; "": it is inside of none.
    closing_quotes = ""
    for line in lines:
        text = line.strip()
        starts_inside = bool(closing_quotes)
        for quotes in re.findall(_TRIPLE_QUOTES, text):
            if not closing_quotes:
                closing_quotes = quotes
            elif closing_quotes == quotes:
                closing_quotes = ""
        is_text = text.lstrip("rRuU")[:3] in {'"""', "'''"}
        prose.append(starts_inside or is_text or re.match(_COMMENT_START, text) is not None)
    return prose


def _quote_spans(text: str, spans: Sequence[Span]) -> str:
    """Quote the first and last lines of spans with the lines around them,
    numbered as in search results.
    """
    lines = text.split("\n")
    # By the index of a quoted line, the mark after its number: `:` for a line of a span,
    # `-` for one around it.
    marks: dict[int, str] = {}
    for start, end in spans:
        first, last = text.count("\n", 0, start), text.count("\n", 0, max(start, end - 1))
        around = (
            *range(first - _CONTEXT_LINES, first),
            *range(last + 1, last + 1 + _CONTEXT_LINES),
        )
        marks = dict.fromkeys(around, "-") | marks | {first: ":", last: ":"}
    listing: list[str] = []
    previous = -1
    for index in sorted(index for index in marks if 0 <= index < len(lines)):
        if listing and index > previous + 1:
            listing.append("--")
        listing.append(f"{index + 1}{marks[index]} {lines[index][:_MAX_QUOTED_CHARS]}")
        previous = index
    return "\n".join(listing)


def quote_nearest(text: str, old: str, suffix: str = "", *, name: str = PARAMETER_NAMES.old) -> str:
    """Quote the lines most similar to the old text, with line numbers,
    and the first line that differs.

    Other places that are nearly as similar are named by their lines. `suffix`: the end of the
    file's name. `name`: what the old text is called.
    """
    old_lines = old.removeprefix("\n").removesuffix("\n").split("\n")
    if not old.strip():
        return "It is only whitespace; give the text around it."
    lines = text.split("\n")
    nearest = _list_nearest(old_lines, [line.strip()[:_MAX_PROBE_CHARS] for line in lines])
    if not nearest:
        return "Nothing in the file resembles it; read the file again."
    begin, *others = nearest
    excerpt = lines[begin : begin + min(len(old_lines), _MAX_NEAREST_LINES)]
    listing = "\n".join(
        f"{begin + index + 1}: {line[:_MAX_NEAREST_CHARS]}" for index, line in enumerate(excerpt)
    )
    difference = _describe_difference(old_lines, lines[begin : begin + len(old_lines)], begin, name)
    places = _name_places(text, [other + 1 for other in others], suffix)
    other_places = (
        f"\nNearly as close: line{'s' if len(others) > 1 else ''} {places}." if others else ""
    )
    return f"The closest match is:\n{listing}\n{difference}{other_places}"


def _list_nearest(old_lines: Sequence[str], stripped: Sequence[str]) -> list[int]:
    """Return the indexes of the lines at which the old text is likely to begin,
    the most similar place first.
    """
    weights = [
        min(len(line.strip()), _MAX_COMPARED_CHARS) * (1 if is_prose else _CODE_WEIGHT)
        for line, is_prose in zip(old_lines, _find_prose_lines(old_lines), strict=True)
    ]
    begins = dict.fromkeys(
        max(0, begin) for begin in _list_candidates(old_lines, stripped, weights)
    )
    scores = {begin: _rate_place(old_lines, stripped, weights, begin) for begin in begins}
    nearest: list[int] = []
    for begin in sorted(scores, key=lambda begin: (-scores[begin], begin)):
        is_elsewhere = all(abs(begin - other) >= len(old_lines) for other in nearest)
        if not nearest or (
            is_elsewhere and scores[begin] >= scores[nearest[0]] - _MAX_SCORE_DISTANCE
        ):
            nearest.append(begin)
    return nearest[: 1 + _MAX_OTHER_PLACES]


def _list_candidates(
    old_lines: Sequence[str], stripped: Sequence[str], weights: Sequence[int]
) -> Iterator[int]:
    """Yield the indexes at which the old text would begin if one of its lines is at its place.

    Those lines are the heaviest one that has similar lines in the file, and each one of at least
    _MIN_LOCATING_CHARS that has equal lines.
    """
    for probe in sorted(range(len(weights)), key=weights.__getitem__, reverse=True)[:_MAX_PROBES]:
        similar = (
            _list_similar(old_lines[probe].strip()[:_MAX_PROBE_CHARS], stripped)
            if weights[probe]
            else []
        )
        yield from (index - probe for index in similar)
        if similar:
            break
    equal_lines: dict[str, list[int]] = {
        line.strip(): [] for line in old_lines if len(line.strip()) >= _MIN_LOCATING_CHARS
    }
    for index, line in enumerate(stripped):
        if line in equal_lines and len(equal_lines[line]) < _MAX_EQUAL_LINES:
            equal_lines[line].append(index)
    for old_index, line in enumerate(old_lines[:_MAX_COMPARED_LINES]):
        yield from (index - old_index for index in equal_lines.get(line.strip(), ()))


def _list_similar(key: str, lines: Sequence[str]) -> list[int]:
    """Return the indexes of the lines most similar to the key, best first;
    of a very long file, those of a part.
    """
    from rapidfuzz import process
    from rapidfuzz.distance import Levenshtein

    # Of the most similar lines so far: their similarity, negative so that the best sort first,
    # and their index.
    best: list[tuple[float, int]] = []
    begin = cells = total_cells = 0
    for end, line in enumerate(lines, 1):
        cells += len(key) * (len(line) + 1)
        if cells < _CELLS_AT_ONCE and end < len(lines):
            continue
        matches = process.extract(
            key,
            lines[begin:end],
            scorer=Levenshtein.normalized_similarity,
            score_cutoff=_MIN_LINE_SIMILARITY,
            limit=_MAX_SIMILAR_LINES,
        )
        best = sorted([*best, *((-score, begin + index) for _, score, index in matches)])[
            :_MAX_SIMILAR_LINES
        ]
        total_cells += cells
        if total_cells > _MAX_CELLS:
            break
        begin, cells = end, 0
    return [index for _, index in best]


def _rate_place(
    old_lines: Sequence[str], stripped: Sequence[str], weights: Sequence[int], begin: int
) -> float:
    """Return the similarity of the old text and the lines from `begin` on, 0 to 1;
    code counts more than comments.
    """
    from rapidfuzz.distance import Levenshtein

    score = 0.0
    for index, line in enumerate(old_lines[:_MAX_COMPARED_LINES]):
        if not weights[index]:
            continue
        best = 0.0
        for candidate, share in (
            (begin + index, 1.0),
            (begin + index - 1, _MOVED_LINE_WEIGHT),
            (begin + index + 1, _MOVED_LINE_WEIGHT),
        ):
            if best < share and 0 <= candidate < len(stripped):
                actual = stripped[candidate][:_MAX_COMPARED_CHARS]
                best = max(
                    best,
                    share
                    * Levenshtein.normalized_similarity(line.strip()[:_MAX_COMPARED_CHARS], actual),
                )
        score += best * weights[index]
    return score / max(1, sum(weights[:_MAX_COMPARED_LINES]))


def _describe_difference(
    old_lines: Sequence[str], lines: Sequence[str], begin: int, name: str
) -> str:
    """Describe the first line that differs in more than whitespace, or else the first that differs.

    `name`: what the old text is called.
    """
    whitespace_difference = ""
    for index, line in enumerate(old_lines):
        if index >= len(lines):
            return f"The file ends there; {name} continues with {line[:_MAX_NEAREST_CHARS]!r}."
        actual = lines[index]
        if actual == line:
            continue
        text = f"Line {begin + index + 1} is {actual[:_MAX_NEAREST_CHARS]!r}, {name} has {line[:_MAX_NEAREST_CHARS]!r}"
        if actual.split() != line.split():
            return f"{text}."
        whitespace_difference = whitespace_difference or f"{text}: only whitespace differs."
    return (
        whitespace_difference or "The lines are there, but broken differently; read the file again."
    )
