"""Errors of a failed edit: where its text is more than once, or what resembles it. Pure.

A model often remembers a function and finds its name in a comment or a docstring first: lines of code count more.
"""

import re
from collections.abc import Iterator, Sequence

from codeloop.schema.errors import CodeloopError
from codeloop.workspace.edit.matchers import Span
from codeloop.workspace.search.blocks import CodeBlock, list_blocks

_MOST_COUNTED = 1_000  # occurrences that are counted of a text that should be unique
_OVERLAPPING = 5_000_000  # characters of those occurrences together; they may overlap
_CHUNK = 40_000_000  # cells of Levenshtein tables that are computed at once; _CELLS: in all
_CELLS = 3_000_000_000
_LINES_NAMED = 10  # occurrences whose lines are listed
_PLACES_QUOTED = 3  # occurrences that are quoted
_AROUND = 2  # lines before and after them
_WIDTH = 200  # characters of each
_NEAR = 0.55  # how alike the nearest line must be to be shown, 0 to 1
_LOCATING = 6  # characters of a line long enough to locate the intended place
_PROBES = 3  # lines of the old text that are searched for, the longest of its code first
_CANDIDATES = 8  # lines like one of them
_SAME = 20  # places of one line of the old text
_COMPARED = 60  # lines of the old text that are compared with each candidate
_LONGEST = 500  # characters of each
_CODE = 4  # how much more a character of code counts than one of a comment
_MOVED = 0.95  # how much a line counts that is found one line above or below its place
_CLOSE = 0.1  # how much less alike another place may be than the nearest, to be named
_OTHERS = 5  # such places that are named
_COMMENT = re.compile(r"(?:#(?!\s*(?:include|define|if|ifdef|ifndef|endif|else)\b)|//|/\*|\*(?:[\s/]|$)|--\s|<!--)")
_QUOTES = re.compile(r"\"\"\"|'''")


class EditRefused(CodeloopError):
    """The old text is not there, is there more than once, or changes nothing; `advice` is for the model alone."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


def count_limit(span: Span) -> int:
    """Return how many places like this one are counted."""
    return max(2, min(_MOST_COUNTED, _OVERLAPPING // (span[1] - span[0] + 1)))


def make_ambiguity_error(
    text: str, spans: Sequence[Span], *, exactly: bool, or_else: str = "", suffix: str = ""
) -> EditRefused:
    """Return the error that says where the text was found more than once, each place with its function.

    `or_else`: what else the model may do; empty: change every place. `suffix`: the end of the file's name.
    """
    lines = [text.count("\n", 0, start) + 1 for start, _ in spans[:_LINES_NAMED]]
    more = f" and {len(spans) - _LINES_NAMED} more" if len(spans) > _LINES_NAMED else ""
    least = "at least " if len(spans) == count_limit(spans[0]) > 2 else ""
    how = "" if exactly else " (ignoring whitespace)"
    return EditRefused(
        f"The text to replace was found {least}{len(spans)} times{how}, "
        f"at lines {_name_places(text, lines, suffix)}{more}.",
        f"Add surrounding lines{or_else or ' to make it unique, or set replaceAll to change every place'}.\n"
        f"{_quote_spans(text, _choose_quoted(text, spans))}",
    )


def _name_places(text: str, lines: Sequence[int], suffix: str) -> str:
    """Return line numbers, each with the function that holds the line: `12 (Rule.compile), 40`."""
    blocks = list_blocks(text, suffix) if suffix else []
    return ", ".join(f"{line}{_name_function(blocks, line)}" for line in lines)


def _name_function(blocks: Sequence[CodeBlock], line: int) -> str:
    around = [each for each in blocks if each.first <= line <= each.last]
    return f" ({max(around, key=lambda each: each.depth).name})" if around else ""


def _choose_quoted(text: str, spans: Sequence[Span]) -> list[Span]:
    """Return the places that are quoted, in their order: those in code, then those in comments and docstrings."""
    if len(spans) <= _PLACES_QUOTED:
        return list(spans)
    prose = find_prose(text.split("\n"))
    chosen = sorted(spans[:_MOST_COUNTED], key=lambda span: prose[text.count("\n", 0, span[0])])[:_PLACES_QUOTED]
    return sorted(chosen)


def find_prose(lines: Sequence[str]) -> list[bool]:
    """Return for each line whether it is a comment, or of a text between three quotes such as a docstring."""
    prose: list[bool] = []
    closing = ""
    for line in lines:
        text = line.strip()
        is_inside = bool(closing)
        for quotes in _QUOTES.findall(text) if "'''" in text or '"""' in text else ():
            closing = "" if closing == quotes else closing or quotes
        prose.append(is_inside or text.lstrip("rRuU")[:3] in {'"""', "'''"} or _COMMENT.match(text) is not None)
    return prose


def _quote_spans(text: str, spans: Sequence[Span]) -> str:
    """Quote the first and last lines of spans with the lines around them, numbered as in search results."""
    lines = text.split("\n")
    quotes: dict[int, str] = {}
    for start, end in spans:
        first, last = text.count("\n", 0, start), text.count("\n", 0, max(start, end - 1))
        around = (*range(first - _AROUND, first), *range(last + 1, last + 1 + _AROUND))
        quotes = dict.fromkeys(around, "-") | quotes | {first: ":", last: ":"}
    listing: list[str] = []
    before = -1
    for number in sorted(number for number in quotes if 0 <= number < len(lines)):
        listing += ["--"] if listing and number > before + 1 else []
        listing.append(f"{number + 1}{quotes[number]} {lines[number][:_WIDTH]}")
        before = number
    return "\n".join(listing)


def quote_nearest(text: str, old: str, suffix: str = "") -> str:
    """Quote the lines most similar to the old text, with line numbers, and the first line that differs.

    Other places that are nearly as similar are named by their lines. `suffix`: the end of the file's name.
    """
    old_lines = old.removeprefix("\n").removesuffix("\n").split("\n")
    if not old.strip():
        return "It is only whitespace; give the text around it."
    lines = text.split("\n")
    nearest = _list_nearest(old_lines, [line.strip()[:2000] for line in lines])
    if not nearest:
        return "Nothing in the file resembles it; read the file again."
    begin, *others = nearest
    excerpt = lines[begin : begin + min(len(old_lines), 12)]
    listing = "\n".join(f"{begin + index + 1}: {line[:300]}" for index, line in enumerate(excerpt))
    difference = _describe_difference(old_lines, lines[begin : begin + len(old_lines)], begin)
    places = _name_places(text, [other + 1 for other in others], suffix)
    also = f"\nNearly as close: line{'s' if len(others) > 1 else ''} {places}." if others else ""
    return f"The closest match is:\n{listing}\n{difference}{also}"


def _list_nearest(old_lines: Sequence[str], stripped: Sequence[str]) -> list[int]:
    """Return the indexes of the lines where the old text may be meant to begin, the most similar place first."""
    weights = [
        min(len(line.strip()), _LONGEST) * (1 if is_prose else _CODE)
        for line, is_prose in zip(old_lines, find_prose(old_lines), strict=True)
    ]
    begins = dict.fromkeys(max(0, begin) for begin in _list_candidates(old_lines, stripped, weights))
    scores = {begin: _score(old_lines, stripped, weights, begin) for begin in begins}
    nearest: list[int] = []
    for begin in sorted(scores, key=lambda begin: (-scores[begin], begin)):
        is_elsewhere = all(abs(begin - other) >= len(old_lines) for other in nearest)
        if not nearest or (is_elsewhere and scores[begin] >= scores[nearest[0]] - _CLOSE):
            nearest.append(begin)
    return nearest[: 1 + _OTHERS]


def _list_candidates(old_lines: Sequence[str], stripped: Sequence[str], weights: Sequence[int]) -> Iterator[int]:
    """Yield where the old text would begin by its heaviest line that has any like it, and by each line that is there.

    Short lines that are there don't count.
    """
    for probe in sorted(range(len(weights)), key=weights.__getitem__, reverse=True)[:_PROBES]:
        similar = _list_similar(old_lines[probe].strip()[:2000], stripped) if weights[probe] else []
        yield from (at - probe for at in similar)
        if similar:
            break
    places: dict[str, list[int]] = {line.strip(): [] for line in old_lines if len(line.strip()) >= _LOCATING}
    for at, line in enumerate(stripped):
        if line in places and len(places[line]) < _SAME:
            places[line].append(at)
    for index, line in enumerate(old_lines[:_COMPARED]):
        yield from (at - index for at in places.get(line.strip(), ()))


def _list_similar(key: str, lines: Sequence[str]) -> list[int]:
    """Return the indexes of the lines most similar to the key, best first; of very many only the first are compared."""
    from rapidfuzz import process
    from rapidfuzz.distance import Levenshtein

    found: list[tuple[float, int]] = []
    begin = cells = done = 0
    for end, line in enumerate(lines, 1):
        cells += len(key) * (len(line) + 1)
        if cells < _CHUNK and end < len(lines):
            continue
        matches = process.extract(
            key, lines[begin:end], scorer=Levenshtein.normalized_similarity, score_cutoff=_NEAR, limit=_CANDIDATES
        )
        found = sorted([*found, *((-score, begin + index) for _, score, index in matches)])[:_CANDIDATES]
        done += cells
        if done > _CELLS:
            break
        begin, cells = end, 0
    return [index for _, index in found]


def _score(old_lines: Sequence[str], stripped: Sequence[str], weights: Sequence[int], begin: int) -> float:
    """Return how alike the old text and the lines from `begin` on are, 0 to 1; code counts more than comments."""
    from rapidfuzz.distance import Levenshtein

    score = 0.0
    for index, line in enumerate(old_lines[:_COMPARED]):
        if not weights[index]:
            continue
        best = 0.0
        for at, share in ((begin + index, 1.0), (begin + index - 1, _MOVED), (begin + index + 1, _MOVED)):
            if best < share and 0 <= at < len(stripped):
                there = stripped[at][:_LONGEST]
                best = max(best, share * Levenshtein.normalized_similarity(line.strip()[:_LONGEST], there))
        score += best * weights[index]
    return score / max(1, sum(weights[:_COMPARED]))


def _describe_difference(old_lines: Sequence[str], there: Sequence[str], begin: int) -> str:
    blanks = ""
    for index, line in enumerate(old_lines):
        if index >= len(there):
            return f"The file ends there; oldString continues with {line[:300]!r}."
        have = there[index]
        if have == line:
            continue
        text = f"Line {begin + index + 1} is {have[:300]!r}, oldString has {line[:300]!r}"
        if have.split() != line.split():
            return f"{text}."
        blanks = blanks or f"{text}: only whitespace differs."
    return blanks or "The lines are there, but broken differently; read the file again."
