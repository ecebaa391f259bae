"""Applies the hunks of a patch to a text, in order. Pure."""

from itertools import islice

from msgspec import Struct

from codeloop.schema.wire import replace
from codeloop.workspace.edit.edit import (
    MAX_EFFORT,
    Edit,
    EditResult,
    estimate_effort,
    find_spans,
    replace_spans,
)
from codeloop.workspace.edit.edit_errors import (
    EditRefused,
    TextNames,
    make_ambiguity_error,
    quote_nearest,
)
from codeloop.workspace.edit.matchers import (
    APPROXIMATE_MATCHERS,
    PATCH_MATCHERS,
    Span,
    match_exact,
    strip_line_numbers,
)
from codeloop.workspace.edit.normalized_text import NormalizedText
from codeloop.workspace.files.encoding import check_surrogates

# Without the approximate matchers: a line like an `@@` line may well be another function's.
_SECTION_MATCHERS = tuple(
    matcher for matcher in PATCH_MATCHERS if matcher not in APPROXIMATE_MATCHERS
)
_MAX_SECTION_PLACES = 1_000
_HUNK_NAMES = TextNames("the hunk", "its new lines")


class Hunk(Struct, frozen=True):
    """A block of lines to find, and the lines that replace them, without line ends.

    `sections`: lines (named by `@@ ...`) that come before it in the file; `line`: the line at which
    it should begin (from 1), 0 if unknown; `is_at_end`: it ends the file;
    `patch_line`: its own line in the patch.
    """

    old: tuple[str, ...]
    new: tuple[str, ...]
    sections: tuple[str, ...] = ()
    line: int = 0
    is_at_end: bool = False
    patch_line: int = 0


def apply_hunks(content: str, hunks: tuple[Hunk, ...]) -> EditResult:
    """Apply hunks in order. Raises EditRefused for the first that can't be applied;
    its message names the hunk.
    """
    for hunk in hunks:
        check_surrogates("\n".join(hunk.new))
    # The end of the last applied hunk, as an offset in the text with `\n` as its line ends.
    last_end = 0
    effort = 0
    match_notes: list[str] = []
    for number, hunk in enumerate(hunks, 1):
        try:
            result, last_end = _apply_hunk(content, hunk, last_end)
        except EditRefused as error:
            where = f"hunk {number} of {len(hunks)} (line {hunk.patch_line} of the patch)"
            raise EditRefused(f"{where}: {error}", error.advice) from error
        effort += estimate_effort(content, result.match_note)
        if effort > MAX_EFFORT and number < len(hunks):
            raise EditRefused(
                f"the file is too large for {len(hunks)} hunks at once.",
                f"Send {number} in one patch.",
            )
        content = result.content
        if result.match_note:
            match_notes.append(f"hunk {number} was matched {result.match_note}")
    return EditResult(content, "; ".join(match_notes))


def _apply_hunk(content: str, hunk: Hunk, last_end: int) -> tuple[EditResult, int]:
    """Apply one hunk after offset `last_end` of the text;
    return the result and the offset after the hunk.
    """
    source = NormalizedText(content)
    text = source.text
    start, section_end = _find_section(text, hunk, last_end)
    if not hunk.old:
        return _insert_lines(source, hunk, section_end)
    if hunk.old == hunk.new:
        raise EditRefused("it changes nothing")
    old, new = "\n".join(hunk.old), "\n".join(hunk.new)
    # Lines are removed with their ends.
    if not hunk.new:
        old += "\n"
    match_note = ""
    matcher, spans = find_spans(text[start:], old, PATCH_MATCHERS)
    if not spans and (plain := strip_line_numbers(old)) != old:
        # Numbers are removed from context and new lines alike, but a new line may have none.
        old, new = plain, "\n".join(strip_line_numbers(line) for line in hunk.new)
        matcher, spans = find_spans(text[start:], old, PATCH_MATCHERS)
        match_note = "without its line numbers"
    spans = [(begin + start, end + start) for begin, end in spans]
    if matcher is None or not spans:
        place = " after the part that the patch changed before it" if start else ""
        raise EditRefused(
            f"its lines were not found{place}.", quote_nearest(text, old, name=_HUNK_NAMES.old)
        )
    span = _choose_span(text, spans, hunk)
    edited = replace_spans(source, [span], matcher, Edit(old, new), _HUNK_NAMES)
    # What follows the hunk is as long as before.
    hunk_end = len(NormalizedText(edited.content).text) - (len(text) - span[1])
    return replace(edited, match_note=edited.match_note or match_note), max(hunk_end, 0)


def _choose_span(text: str, spans: list[Span], hunk: Hunk) -> Span:
    """Choose among spans: the one at the end of the file,
    or else the nearest to the line that the hunk names.
    """
    if hunk.is_at_end:
        spans = [span for span in spans if not text[span[1] :].strip("\n")] or spans
    if len(spans) == 1:
        return spans[0]
    if hunk.sections and not hunk.line:
        return spans[0]
    if not hunk.line:
        raise make_ambiguity_error(text, spans, or_else=" to make it unique or an @@ line")
    distances = [abs(text.count("\n", 0, start) + 1 - hunk.line) for start, _ in spans]
    nearest = min(distances)
    if distances.count(nearest) > 1:
        raise make_ambiguity_error(text, spans, or_else=" to make it unique")
    return spans[distances.index(nearest)]


def _find_section(text: str, hunk: Hunk, start: int) -> Span:
    """Return the span of the last `@@` line of a hunk, from offset `start` on;
    an empty span there if it has none.

    The first of them must be unique; each further one is the first occurrence after the one before.
    """
    span = (start, start)
    # In a unified diff, which has line numbers, the text after `@@` is only a remark.
    if hunk.line:
        return span
    for index, section in enumerate(hunk.sections):
        begin = span[1]
        matcher, spans = find_spans(text[begin:], section, _SECTION_MATCHERS)
        if matcher is None:
            spans = list(islice(match_exact(text[begin:], section), _MAX_SECTION_PLACES))
        if not spans:
            raise EditRefused(
                f"the line `@@ {section}` was not found.",
                quote_nearest(text, section, name=_HUNK_NAMES.old),
            )
        if len(spans) > 1 and index == 0:
            lines = ", ".join(str(text.count("\n", 0, begin + found) + 1) for found, _ in spans[:5])
            raise EditRefused(
                f"the line `@@ {section}` occurs at several lines: {lines}.",
                "Use a line that is unique.",
            )
        span = (begin + spans[0][0], begin + spans[0][1])
    return span


def _insert_lines(source: NormalizedText, hunk: Hunk, start: int) -> tuple[EditResult, int]:
    """Insert lines after the `@@` line, or after the line with the hunk's number,
    or else at the end of the file.

    `start`: an offset in the `@@` line. Return the result and the offset after the hunk.
    """
    text = source.text
    if hunk.sections and not hunk.line:
        section_line_end = text.find("\n", start)
        offset = section_line_end + 1 if section_line_end >= 0 else len(text)
    elif hunk.line and text.count("\n") >= hunk.line:
        offset = 0
        for _ in range(hunk.line):
            offset = text.index("\n", offset) + 1
    else:
        offset = len(text)
    line_end = source.find_line_end(max(offset - 1, 0), offset)
    block = "".join(line + line_end for line in hunk.new)
    # The last line of the file has no line end: it gets one,
    # and the inserted lines have none at their end instead.
    if offset and text[offset - 1] != "\n":
        block = line_end + block.removesuffix(line_end)
    original_offset = source.to_original(offset)
    edited = source.original[:original_offset] + block + source.original[original_offset:]
    return EditResult(edited), offset + len(block.replace("\r\n", "\n"))
