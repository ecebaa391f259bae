"""The hunks of a patch, found in a text and applied in order. Pure."""

from itertools import islice

from msgspec import Struct

from codeloop.schema.wire import replace
from codeloop.workspace.edit.edit import (
    MOST_EFFORT,
    Edit,
    EditResult,
    estimate_effort,
    find,
    replace_spans,
)
from codeloop.workspace.edit.matchers import LINEWISE, Span, match_exact, strip_numbers
from codeloop.workspace.edit.refusals import EditRefused, make_ambiguity_error, quote_nearest
from codeloop.workspace.files.encoding import NormalizedText, check_new


class Hunk(Struct, frozen=True):
    """A block of lines to find and what they become, without line ends.

    `sections`: lines (`@@ ...`) that come before it in the file. `line`: where it should begin (from 1), 0 if unknown.
    `at_end`: it ends the file. `source`: its line in the patch.
    """

    old: tuple[str, ...]
    new: tuple[str, ...]
    sections: tuple[str, ...] = ()
    line: int = 0
    at_end: bool = False
    source: int = 0


def apply_hunks(content: str, hunks: tuple[Hunk, ...]) -> EditResult:
    """Return a text with the hunks applied in order. Raises EditRefused with the hunk that does not fit."""
    for hunk in hunks:
        check_new("\n".join(hunk.new))
    end, effort, how = 0, 0, list[str]()
    for number, hunk in enumerate(hunks, 1):
        try:
            result, end = _apply_hunk(content, hunk, end)
        except EditRefused as error:
            reason = str(error).replace("oldString", "the hunk")
            where = f"hunk {number} of {len(hunks)} (line {hunk.source} of the patch)"
            raise EditRefused(f"{where}: {reason}", error.advice.replace("oldString", "the hunk")) from error
        effort += estimate_effort(content, result.how)
        if effort > MOST_EFFORT and number < len(hunks):
            raise EditRefused(f"the file is too large for {len(hunks)} hunks at once.", f"Send {number} in one patch.")
        content = result.content
        how += [f"hunk {number} was matched {result.how}"] if result.how else []
    return EditResult(content, "; ".join(how))


def _apply_hunk(content: str, hunk: Hunk, done: int) -> tuple[EditResult, int]:
    """Apply one hunk after offset `done` of the text; returns the result and the offset after the hunk."""
    source = NormalizedText(content)
    text = source.text
    start, after = _find_section(text, hunk, done)
    if not hunk.old:
        return _insert_lines(source, hunk, after)
    if hunk.old == hunk.new:
        raise EditRefused("it changes nothing")
    old, new = "\n".join(hunk.old), "\n".join(hunk.new)
    if not hunk.new:
        old += "\n"
    how = ""
    matcher, spans = find(text[start:], old, LINEWISE)
    if not spans and (plain := strip_numbers(old)) != old:
        # The number is taken off context and new lines alike, but a new line may have none.
        old, new = plain, "\n".join(strip_numbers(line) for line in hunk.new)
        matcher, spans = find(text[start:], old, LINEWISE)
        how = "without its line numbers"
    spans = [(begin + start, end + start) for begin, end in spans]
    if matcher is None or not spans:
        before = " after the part that the patch changed before it" if start else ""
        raise EditRefused(f"its lines were not found{before}.", quote_nearest(text, old))
    span = _choose_span(text, spans, hunk)
    edited = replace_spans(source, [span], matcher, Edit(old, new))
    length = len(NormalizedText(edited.content).text) - (len(text) - span[1])
    return replace(edited, how=edited.how or how), max(length, 0)


def _choose_span(text: str, spans: list[Span], hunk: Hunk) -> Span:
    """Choose among spans: the one at the end of the file, else the nearest to the line that the hunk names."""
    if hunk.at_end:
        spans = [span for span in spans if not text[span[1] :].strip("\n")] or spans
    if len(spans) == 1:
        return spans[0]
    if hunk.sections and not hunk.line:
        return spans[0]
    if not hunk.line:
        raise make_ambiguity_error(text, spans, exactly=True, or_else=" to make it unique or an @@ line")
    far = [abs(text.count("\n", 0, start) + 1 - hunk.line) for start, _ in spans]
    best = min(far)
    if far.count(best) > 1:
        raise make_ambiguity_error(text, spans, exactly=True)
    return spans[far.index(best)]


def _find_section(text: str, hunk: Hunk, end: int) -> Span:
    """Return the span of the last `@@` line of a hunk, from `end` on; a unified diff's section is only a remark.

    The first of them must be unique; each further one is the first after the one before.
    """
    span = (end, end)
    if hunk.line:
        return span
    for index, section in enumerate(hunk.sections):
        begin = span[1]
        matcher, spans = find(text[begin:], section, LINEWISE[:3])
        if matcher is None:
            spans = list(islice(match_exact(text[begin:], section), 1_000))
        if not spans:
            raise EditRefused(f"the line `@@ {section}` was not found.", quote_nearest(text, section))
        if len(spans) > 1 and index == 0:
            lines = ", ".join(str(text.count("\n", 0, begin + start) + 1) for start, _ in spans[:5])
            raise EditRefused(
                f"the line `@@ {section}` occurs at several lines: {lines}.", "Use a line that is unique."
            )
        span = (begin + spans[0][0], begin + spans[0][1])
    return span


def _insert_lines(source: NormalizedText, hunk: Hunk, start: int) -> tuple[EditResult, int]:
    """Insert lines: after the `@@` line, before the line that the hunk names, else at the end of the file."""
    text = source.text
    if hunk.sections and not hunk.line:
        end = text.find("\n", start)
        at = end + 1 if end >= 0 else len(text)
    elif hunk.line and text.count("\n") >= hunk.line:
        at = 0
        for _ in range(hunk.line):
            at = text.index("\n", at) + 1
    else:
        at = len(text)
    ending = source.line_end(max(at - 1, 0), at)
    block = "".join(line + ending for line in hunk.new)
    if at and text[at - 1] != "\n":
        block = ending + block.removesuffix(ending)
    to_original = source.to_original(at)
    edited = source.original[:to_original] + block + source.original[to_original:]
    return EditResult(edited), at + len(block.replace("\r\n", "\n"))
