"""Makes one edit of a text: finds the old text, replaces it by the new one,
and changes no other byte.

The tools `edit` and `multiedit` use it; patches use its parts (`patch_apply.py`).
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct

from codeloop.workspace.edit.edit_errors import (
    PARAMETER_NAMES,
    EditRefused,
    TextNames,
    get_count_limit,
    make_ambiguity_error,
    quote_nearest,
)
from codeloop.workspace.edit.escapes import unescape_alike, unescape_backslashes
from codeloop.workspace.edit.matchers import (
    APPROXIMATE_MATCHERS,
    EDIT_MATCHERS,
    MATCH_NOTES,
    UNESCAPERS,
    ComparisonBudget,
    Matcher,
    Span,
    TooManyCandidates,
    fold_typography,
    match_loose_whitespace,
    match_unescaped,
)
from codeloop.workspace.edit.normalized_text import NormalizedText
from codeloop.workspace.edit.splice import find_replaced_lines, splice
from codeloop.workspace.files.encoding import check_surrogates

# The most effort of all edits of one call together,
# by `estimate_effort`: a unit takes about a nanosecond.
MAX_EFFORT = 1_000_000_000
# An inexact match takes this many times the effort of an exact one.
_INEXACT_EFFORT = 30
# The most similar places that `replaceAll` edits. Exact occurrences are replaced all at once,
# without this limit.
_MAX_REPLACED_PLACES = 100_000
# A text of this many characters is not in a file by accident.
_MIN_DISTINCTIVE_CHARS = 20
# How similar the lines that an approximate match removes must be to those that the model remembers,
# 0 to 1.
_MIN_REMOVED_SIMILARITY = 0.6


class Edit(Struct, frozen=True):
    """The replacement of `old` by `new`: of its only occurrence,
    or with `replaces_all` of each one.
    """

    old: str
    new: str
    replaces_all: bool = False


class EditResult(Struct, frozen=True):
    """The edited text. `match_note`: a clause on how the old text was matched,
    "" when it was found exactly.
    """

    content: str
    match_note: str = ""


def apply_edit(content: str, edit: Edit, suffix: str = "") -> EditResult:
    """Make an edit. Raises EditRefused with advice for the model, NotText for half characters.

    `suffix`: the end of the file's name, such as `.py`, by which an error names functions.
    """
    check_surrogates(edit.new)
    old, new = edit.old.replace("\r\n", "\n"), edit.new.replace("\r\n", "\n")
    if old == new:
        raise EditRefused("The new text is equal to the old one; there is nothing to change.")
    if not old:
        raise EditRefused(
            "The text to replace is empty.", "Give it as oldString, with enough lines to be unique."
        )
    source = NormalizedText(content)
    if edit.replaces_all:
        replaced = _replace_all(source, old, new)
        if replaced is not None:
            return EditResult(replaced)
    matcher, spans = find_spans(source.text, old, EDIT_MATCHERS, every=edit.replaces_all)
    if not spans or matcher is None:
        # A model that repeats an edit gets this far.
        line = _find_existing_line(source.text, new)
        note = f"newString is already there, at line {line}. " if line else ""
        raise EditRefused(
            "The text to replace was not found.", f"{note}{quote_nearest(source.text, old, suffix)}"
        )
    if len(spans) > 1 and (not edit.replaces_all or matcher in APPROXIMATE_MATCHERS):
        raise make_ambiguity_error(source.text, spans, MATCH_NOTES.get(matcher, ""), suffix=suffix)
    return replace_spans(source, spans, matcher, Edit(old, new))


def _find_existing_line(text: str, new: str) -> int:
    """Return the line (from 1) at which the file already has the new text;
    0: nowhere, or it is too short.
    """
    lines = new.strip("\n")
    if len(lines.strip()) < _MIN_DISTINCTIVE_CHARS:
        return 0
    index = f"\n{text}\n".find(f"\n{lines}\n")
    return text.count("\n", 0, index) + 1 if index >= 0 else 0


def estimate_effort(content: str, match_note: str) -> int:
    """Estimate the effort of an edit in characters compared: many more when the old
    text was not found exactly.

    `match_note`: that of the edit's result.
    """
    return len(content) * (_INEXACT_EFFORT if match_note else 1)


def _replace_all(source: NormalizedText, old: str, new: str) -> str | None:
    """Replace every exact occurrence of a text at once;
    None when there is none, or when line ends are mixed.
    """
    if old not in source.text:
        return None
    if source.text == source.original:
        return source.original.replace(old, new)
    if source.original.count("\r\n") != source.text.count("\n"):
        return None
    return source.text.replace(old, new).replace("\n", "\r\n")


def find_spans(
    text: str, old: str, cascade: Sequence[Matcher], *, every: bool = False
) -> tuple[Matcher | None, list[Span]]:
    """Return the first matcher of a cascade that finds anything, and its spans;
    (None, []) when none does.

    `every`: return all spans that do not overlap. Otherwise overlapping ones count too, and only as
    many are returned as `get_count_limit` allows. Raises EditRefused when that would take too long.
    """
    for matcher in cascade:
        found_spans = matcher(text, old)
        try:
            spans = _drop_overlaps(found_spans) if every else _take_limited(found_spans)
        except TooManyCandidates as error:
            raise EditRefused(
                f"The text to replace was not found as it is, and {error}.",
                "Give the exact text, with lines that only it has.",
            ) from error
        if spans:
            return matcher, spans
    return None, []


def _take_limited(spans: Iterator[Span]) -> list[Span]:
    first = next(spans, None)
    if first is None:
        return []
    return [first, *islice(spans, get_count_limit(first) - 1)]


def _drop_overlaps(spans: Iterator[Span]) -> list[Span]:
    separate_spans: list[Span] = []
    last_end = 0
    for number, (start, end) in enumerate(spans):
        if number > _MAX_REPLACED_PLACES:
            raise TooManyCandidates(
                f"the file has more than {_MAX_REPLACED_PLACES:,} places like it"
            )
        if start >= last_end:
            separate_spans.append((start, end))
            last_end = end
    return separate_spans


def replace_spans(
    source: NormalizedText,
    spans: Sequence[Span],
    matcher: Matcher,
    edit: Edit,
    names: TextNames = PARAMETER_NAMES,
) -> EditResult:
    """Replace the spans that a matcher found.

    Raises EditRefused when an approximate match would remove different words,
    or nothing would change.
    """
    pieces: list[str] = []
    # The end of the last span that was replaced.
    last_end = 0
    for start, end in spans:
        if start < last_end:
            continue
        segment = source.text[start:end]
        old, new = _adapt_to_match(segment, matcher, edit)
        if matcher in APPROXIMATE_MATCHERS:
            _check_removed_lines(source.text, start, segment, Edit(old, new), names)
        pieces.extend(
            (source.slice_original(last_end, start), splice(source, (start, end), old, new))
        )
        last_end = end
    pieces.append(source.original[source.to_original(last_end) :])
    content = "".join(pieces)
    if content == source.original:
        raise EditRefused(f"the file already has {names.new} there; nothing would change")
    return EditResult(content, MATCH_NOTES.get(matcher, ""))


def _adapt_to_match(segment: str, matcher: Matcher, edit: Edit) -> tuple[str, str]:
    """Return the old and new text as the file spells them: without escapes, with plain quotes,
    without outer blanks.

    Blanks and blank lines at the ends that the match left out are also removed from the new text.
    `segment`: the text that was matched. Raises EditRefused.
    """
    if matcher is match_unescaped:
        for unescape in UNESCAPERS:
            plain = unescape(edit.old)
            if plain.split() == segment.split():
                new = (
                    unescape_alike(edit.old, edit.new)
                    if unescape is unescape_backslashes
                    else unescape(edit.new)
                )
                if new is None:
                    raise EditRefused(
                        "oldString was found without its escapes, and it is not clear which of newString are meant.",
                        "Send both with real line breaks, tabs and quotes; a backslash then stays as it is.",
                    )
                return plain, new
    old, new = edit.old, edit.new
    if matcher is match_loose_whitespace and segment.isascii() and not old.isascii():
        old, new = fold_typography(old), fold_typography(new)
    # Blank lines before the text, which the match left out.
    lead = re.match(r"(?:[ \t]*\n)*", old)
    if lead and lead.end() and segment[:1] != "\n" and segment.count("\n") < old.count("\n"):
        new = new.removeprefix(lead.group())
        old = old[lead.end() :]
    # The line end of the last line, and blank lines after it.
    blank_end = old[len(old.rstrip(" \t\n")) :]
    tail = blank_end[blank_end.find("\n") :] if "\n" in blank_end else ""
    if tail and not segment.endswith("\n") and segment.count("\n") < old.count("\n"):
        new = new.removesuffix(tail)
        old = old.removesuffix(tail)
    # Blanks around a text within one line.
    if "\n" not in old and not segment.endswith((" ", "\t")) and old != segment:
        new = new.rstrip(" \t") if old.endswith((" ", "\t")) else new
        old = old.rstrip(" \t")
        if not segment[:1].isspace():
            new = new.lstrip(" \t") if old[:1].isspace() else new
            old = old.lstrip(" \t")
    return old, new


def _check_removed_lines(text: str, start: int, segment: str, edit: Edit, names: TextNames) -> None:
    """Raise EditRefused when the edit would remove lines that differ much from those
    that the model remembers.
    """
    from rapidfuzz.distance import Levenshtein

    budget = ComparisonBudget()
    for change in find_replaced_lines(segment, edit.old, edit.new):
        remembered = "\n".join(line.strip() for line in change.remembered)
        actual = "\n".join(line.strip() for line in change.actual)
        try:
            budget.spend_for_comparison(remembered, actual)
        except TooManyCandidates as error:
            raise EditRefused(
                f"{names.old} only resembles the file, and {error}.", "Give the exact text."
            ) from error
        if Levenshtein.normalized_similarity(remembered, actual) < _MIN_REMOVED_SIMILARITY:
            line = text.count("\n", 0, start) + 1
            raise EditRefused(
                f"{names.old} only resembles the block at line {line}, and the part to change differs there.",
                quote_nearest(text, edit.old, name=names.old),
            )
