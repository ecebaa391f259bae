"""One edit of a text: find the old text, put the new one there, change no other byte."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct

from codeloop.schema.errors import CodeloopError
from codeloop.workspace.edit.matchers import (
    APPROXIMATE,
    CASCADE,
    HOW,
    VARIANTS,
    Comparisons,
    Matcher,
    Span,
    TooAlike,
    fold,
    match_exact,
    match_loose_whitespace,
    match_unescaped,
)
from codeloop.workspace.edit.splice import find_replaced_lines, splice
from codeloop.workspace.files.encoding import NormalizedText, check_new

MOST_EFFORT = 1_000_000_000
"""The most `estimate_effort` the edits of one call together: a unit takes about a nanosecond."""
_MOST_COUNTED = 1_000  # occurrences that are counted of a text that should be unique
_OVERLAPPING = 5_000_000  # characters of those occurrences together; they may overlap
_PLACES = 100_000  # occurrences that `replaceAll` edits one by one
_CHUNK = 40_000_000  # cells of Levenshtein tables that are computed at once; _CELLS: in all
_CELLS = 3_000_000_000
_LINES_NAMED = 5  # occurrences whose lines are listed
_PLACES_QUOTED = 3  # occurrences that are quoted
_AROUND = 2  # lines before and after them
_WIDTH = 200  # characters of each
_NEAR = 55  # how alike the nearest line must be to be shown, 0 to 100
_LOCATING = 6  # characters of a line long enough to locate the intended place
_TELLING = 20  # characters of a text too long to match by accident
_LEAST_ALIKE = 0.6  # how alike lines that an approximate match removes must be to what the model remembers, 0 to 1


class EditRefused(CodeloopError):
    """The old text is not there, is there more than once, or changes nothing; `advice` is for the model alone."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


class Edit(Struct, frozen=True):
    """Replace `old` by `new`: its only occurrence, or with `every` each one."""

    old: str
    new: str
    every: bool = False


class EditResult(Struct, frozen=True):
    """The edited text, and how the old text was matched when it was not found exactly ("" when it was)."""

    content: str
    how: str = ""


def apply(content: str, edit: Edit) -> EditResult:
    """Make an edit. Raises EditRefused with what to do next, NotText for half characters."""
    check_new(edit.new)
    old, new = edit.old.replace("\r\n", "\n"), edit.new.replace("\r\n", "\n")
    if old == new:
        raise EditRefused("The new text is equal to the old one; there is nothing to change.")
    if not old:
        raise EditRefused("The text to replace is empty.", "Give it as oldString, with enough lines to be unique.")
    source = NormalizedText(content)
    if edit.every and (replaced := _replace_all(source, old, new)) is not None:
        return EditResult(replaced)
    matcher, spans = find(source.text, old, CASCADE, every=edit.every)
    if not spans or matcher is None:
        line = _find_lines(source.text, new)
        note = f"newString is already there, at line {line}. " if line else ""
        raise EditRefused("The text to replace was not found.", f"{note}{quote_nearest(source.text, old)}")
    if len(spans) > 1 and (not edit.every or matcher in APPROXIMATE):
        raise make_ambiguity_error(source.text, spans, exactly=matcher is match_exact)
    return replace_spans(source, spans, matcher, Edit(old, new))


def _find_lines(text: str, new: str) -> int:
    """Return the line (from 1) at which the file already has the new text; 0: nowhere, or it is too short."""
    remembered = new.strip("\n")
    if len(remembered.strip()) < _TELLING:
        return 0
    at = f"\n{text}\n".find(f"\n{remembered}\n")
    return text.count("\n", 0, at) + 1 if at >= 0 else 0


def estimate_effort(content: str, how: str) -> int:
    """Estimate the effort of an edit in characters looked at: many more when the old text was not found exactly."""
    return len(content) * (30 if how else 1)


def _replace_all(source: NormalizedText, old: str, new: str) -> str | None:
    """Replace every exact occurrence of a text; None when there is none, or when line ends are mixed."""
    if old not in source.text:
        return None
    if source.text == source.original:
        return source.original.replace(old, new)
    if source.original.count("\r\n") != source.text.count("\n"):
        return None
    return source.text.replace(old, new).replace("\n", "\r\n")


def find(text: str, old: str, cascade: Sequence[Matcher], *, every: bool = False) -> tuple[Matcher | None, list[Span]]:
    """Return the first matcher that finds anything, and its spans: with `every` all that do not overlap.

    Otherwise overlapping spans count too, and at most _COUNTED are returned.
    Raises EditRefused when that would take too long.
    """
    for matcher in cascade:
        try:
            spans = (_drop_overlaps if every else _take_counted)(matcher(text, old))
        except TooAlike as error:
            raise EditRefused(
                f"The text to replace was not found as it is, and {error}.",
                "Give the exact text, with lines that only it has.",
            ) from error
        if spans:
            return matcher, spans
    return None, []


def _take_counted(spans: Iterator[Span]) -> list[Span]:
    return [each for first in islice(spans, 1) for each in (first, *islice(spans, _count_limit(first) - 1))]


def _count_limit(span: Span) -> int:
    """Return how many places like this one are counted."""
    return max(2, min(_MOST_COUNTED, _OVERLAPPING // (span[1] - span[0] + 1)))


def _drop_overlaps(spans: Iterator[Span]) -> list[Span]:
    apart: list[Span] = []
    for number, span in enumerate(spans):
        if number > _PLACES:
            raise TooAlike(f"the file has more than {_PLACES:,} places like it")
        if not apart or span[0] >= apart[-1][1]:
            apart.append(span)
    return apart


def replace_spans(source: NormalizedText, spans: Sequence[Span], matcher: Matcher, edit: Edit) -> EditResult:
    """Replace the spans that a matcher found.

    Raises EditRefused when an approximate match would remove different words.
    """
    pieces: list[str] = []
    done = 0
    for start, end in spans:
        if start < done:
            continue
        segment = source.text[start:end]
        old, new = _spell_as_file(segment, matcher, edit)
        if matcher in APPROXIMATE:
            _check_removed_lines(source.text, start, segment, Edit(old, new))
        pieces.extend((source.slice(done, start), splice(source, (start, end), old, new)))
        done = end
    pieces.append(source.original[source.to_original(done) :])
    content = "".join(pieces)
    if content == source.original:
        raise EditRefused("the file already has newString there; nothing would change")
    return EditResult(content, HOW.get(matcher, ""))


def _spell_as_file(segment: str, matcher: Matcher, edit: Edit) -> tuple[str, str]:
    """Return the old and new text as the file spells them: without escapes, or with plain quotes."""
    if matcher is match_unescaped:
        for undo in VARIANTS:
            plain = undo(edit.old)
            if plain.split() == segment.split():
                return plain, undo(edit.new)
    old, new = edit.old, edit.new
    if matcher is match_loose_whitespace and segment.isascii() and not old.isascii():
        old, new = fold(old), fold(new)
    lead = re.match(r"(?:[ \t]*\n)*", old)
    if lead and lead.end() and segment[:1] != "\n" and segment.count("\n") < old.count("\n"):
        new = new[lead.end() :] if new.startswith(lead.group()) else new
        old = old[lead.end() :]
    blank = old[len(old.rstrip(" \t\n")) :]
    tail = blank[blank.find("\n") :] if "\n" in blank else ""
    if tail and not segment.endswith("\n") and segment.count("\n") < old.count("\n"):
        new = new[: len(new) - len(tail)] if new.endswith(tail) else new
        old = old[: len(old) - len(tail)]
    if "\n" not in old and not segment.endswith((" ", "\t")) and old != segment:
        new = new.rstrip(" \t") if old != old.rstrip(" \t") else new
        old = old.rstrip(" \t")
        if not segment[:1].isspace():
            new = new.lstrip(" \t") if old[:1].isspace() else new
            old = old.lstrip(" \t")
    return old, new


def _check_removed_lines(text: str, start: int, segment: str, edit: Edit) -> None:
    from rapidfuzz.distance import Levenshtein

    budget = Comparisons()
    for change in find_replaced_lines(segment, edit.old, edit.new):
        remembered = "\n".join(line.strip() for line in change.remembered)
        there = "\n".join(line.strip() for line in change.there)
        try:
            budget.compare(remembered, there)
        except TooAlike as error:
            raise EditRefused(f"oldString only resembles the file, and {error}.", "Give the exact text.") from error
        if Levenshtein.normalized_similarity(remembered, there) < _LEAST_ALIKE:
            line = text.count("\n", 0, start) + 1
            raise EditRefused(
                f"oldString only resembles the block at line {line}, and the part to change differs there.",
                quote_nearest(text, edit.old),
            )


def make_ambiguity_error(text: str, spans: Sequence[Span], *, exactly: bool, or_else: str = "") -> EditRefused:
    """Return the error that says where the text was found more than once, and what to do.

    `or_else`: what else the model may do; empty: change every place.
    """
    lines = [str(text.count("\n", 0, start) + 1) for start, _ in spans[:_LINES_NAMED]]
    more = f" and {len(spans) - _LINES_NAMED} more" if len(spans) > _LINES_NAMED else ""
    least = "at least " if len(spans) == _count_limit(spans[0]) > 2 else ""
    how = "" if exactly else " (ignoring whitespace)"
    return EditRefused(
        f"The text to replace was found {least}{len(spans)} times{how}, at lines {', '.join(lines)}{more}.",
        f"Add surrounding lines{or_else or ' to make it unique, or set replaceAll to change every place'}.\n"
        f"{_quote_spans(text, spans[:_PLACES_QUOTED])}",
    )


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


def quote_nearest(text: str, old: str) -> str:
    """Quote the lines most similar to the old text, with line numbers, and the first line that differs."""
    old_lines = old.removeprefix("\n").removesuffix("\n").split("\n")
    probe = max(range(len(old_lines)), key=lambda index: len(old_lines[index].strip()))
    key = old_lines[probe].strip()
    if not key:
        return "It is only whitespace; give the text around it."
    lines = text.split("\n")
    stripped = [line.strip()[:2000] for line in lines]
    best = _find_most_alike(key[:2000], stripped)
    at = best - probe if best is not None else _guess_line(old_lines, stripped)
    if at is None:
        return "Nothing in the file resembles it; read the file again."
    begin = max(0, at)
    excerpt = lines[begin : begin + min(len(old_lines), 12)]
    listing = "\n".join(f"{begin + index + 1}: {line[:300]}" for index, line in enumerate(excerpt))
    difference = _describe_difference(old_lines, lines[begin : begin + len(old_lines)], begin)
    return f"The closest match is:\n{listing}\n{difference}"


def _find_most_alike(key: str, lines: Sequence[str]) -> int | None:
    """Return the index of the line most similar to the key, or None; of very many lines only the first are compared."""
    from rapidfuzz import process
    from rapidfuzz.distance import Levenshtein

    found, score = None, _NEAR / 100
    begin = cells = done = 0
    for end, line in enumerate(lines, 1):
        cells += len(key) * (len(line) + 1)
        if cells < _CHUNK and end < len(lines):
            continue
        best = process.extractOne(key, lines[begin:end], scorer=Levenshtein.normalized_similarity, score_cutoff=score)
        if best is not None and (found is None or best[1] > score):
            found, score = begin + best[2], best[1]
        done += cells
        if done > _CELLS or score == 1:
            break
        begin, cells = end, 0
    return found


def _guess_line(old_lines: Sequence[str], stripped: Sequence[str]) -> int | None:
    """Return the line where the old text would begin, judged by its longest line found; short lines don't count."""
    first = {line: number for number, line in reversed(list(enumerate(stripped)))}
    numbered = ((index, line.strip()) for index, line in enumerate(old_lines) if line.strip() in first)
    matches = [(len(line), first[line] - index) for index, line in numbered]
    length, at = max(matches, default=(0, 0))
    return at if length >= _LOCATING else None


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
