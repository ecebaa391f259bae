"""One edit of a text: find the old text, put the new one there, change no other byte."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct

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
from codeloop.workspace.edit.refusals import EditRefused, count_limit, make_ambiguity_error, quote_nearest
from codeloop.workspace.edit.splice import find_replaced_lines, splice
from codeloop.workspace.files.encoding import NormalizedText, check_new

MOST_EFFORT = 1_000_000_000
"""The most `estimate_effort` the edits of one call together: a unit takes about a nanosecond."""
_PLACES = 100_000  # occurrences that `replaceAll` edits one by one
_TELLING = 20  # characters of a text too long to match by accident
_LEAST_ALIKE = 0.6  # how alike lines that an approximate match removes must be to what the model remembers, 0 to 1


class Edit(Struct, frozen=True):
    """Replace `old` by `new`: its only occurrence, or with `every` each one."""

    old: str
    new: str
    every: bool = False


class EditResult(Struct, frozen=True):
    """The edited text, and how the old text was matched when it was not found exactly ("" when it was)."""

    content: str
    how: str = ""


def apply(content: str, edit: Edit, suffix: str = "") -> EditResult:
    """Make an edit. Raises EditRefused with what to do next, NotText for half characters.

    `suffix`: the end of the file's name, such as `.py`, by which an error names functions.
    """
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
        raise EditRefused("The text to replace was not found.", f"{note}{quote_nearest(source.text, old, suffix)}")
    if len(spans) > 1 and (not edit.every or matcher in APPROXIMATE):
        raise make_ambiguity_error(source.text, spans, exactly=matcher is match_exact, suffix=suffix)
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
    return [each for first in islice(spans, 1) for each in (first, *islice(spans, count_limit(first) - 1))]


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
