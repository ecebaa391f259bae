"""Draws diffs: the lines of a file below each other, or if there is room,
the old and the new ones side by side.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from itertools import zip_longest

from rich.segment import Segment
from rich.style import Style

from codeloop.kit.text.patterns import compile_once
from codeloop.tui.render.canvas import GUTTER, Canvas, Row
from codeloop.tui.render.cells import cut_path, fold_line, pad_row
from codeloop.tui.render.code_highlighter import CodeHighlighter, find_language
from codeloop.tui.render.diff.patch import DiffLine, DiffSign, PatchedFile

LinePair = tuple[DiffLine | None, DiffLine | None]
"""An old and a new line that are shown next to each other; None: there is no line on that side."""
WordSpans = list[tuple[int, int]]
"""Ranges of a line, in characters: start and end."""
SPLIT_MIN_WIDTH = 110
"""Cells from which both sides fit next to each other."""
_NUMBERS_MIN_WIDTH = 20
"""Cells below which lines have no numbers."""
_MAX_COMPARED_LINES = 100
"""Consecutive lines whose words are compared."""
_COLOURS_BY_SIGN: dict[DiffSign, str] = {"+": "added", "-": "removed", " ": "context"}
"""The word for each sign in the names of the theme's colours, such as `diff_added_bg`."""


def draw_diffs(
    patches: Sequence[PatchedFile],
    canvas: Canvas,
    room: int,
    format_path: Callable[[str], str],
    *,
    names_one: bool = False,
) -> Iterator[Row]:
    """Yield the rows of the diffs of files, `room` cells wide;
    if there are several, each below its path and counts.

    `format_path` returns a path as it is shown, without control characters.
    `names_one`: a single file has a path, too.
    """
    for patch in patches:
        if names_one or len(patches) > 1:
            counts = patch.counts
            note = Segment(
                f"  +{counts.additions} -{counts.deletions}", canvas.styles.of("text_muted")
            )
            path = cut_path(format_path(patch.path), room - note.cell_length)
            yield [Segment(path, canvas.styles.of("text", "bold")), note]
        yield from DiffRenderer(patch, canvas, room).draw()


class DiffRenderer:
    """Draws the diff of one file in a width of `room` cells."""

    def __init__(self, patch: PatchedFile, canvas: Canvas, room: int) -> None:
        self._patch = patch
        self._canvas = canvas
        self._room = room
        self._has_backgrounds = bool(
            canvas.styles.theme.diff_added_bg and canvas.styles.theme.diff_removed_bg
        )
        # Where added and removed lines have no background, their text has the colour of the side,
        # not of the syntax.
        language = find_language(patch.path) if self._has_backgrounds else ""
        self._highlighters = {
            sign: CodeHighlighter(language, canvas.styles, base="text") for sign in ("-", "+")
        }
        largest_number = max(
            (max(line.old, line.new) for hunk in patch.hunks for line in hunk), default=1
        )
        self._digits = len(str(largest_number)) if room >= _NUMBERS_MIN_WIDTH else 0
        """Cells of a line number; 0: lines have none."""

    @cached_property
    def is_split(self) -> bool:
        """Whether both sides are shown next to each other."""
        diff = self._canvas.diff
        # Where lines are only added or only removed, one side would show nothing new.
        return diff == "split" or (
            diff == "auto" and self._room >= SPLIT_MIN_WIDTH and all(self._patch.counts)
        )

    def draw(self) -> Iterator[Row]:
        """Yield the rows lazily, so that hidden ones are not drawn."""
        for number, hunk in enumerate(self._patch.hunks):
            if number:
                gap = "⋯".rjust(self._digits)
                yield [Segment(gap, self._canvas.styles.of("diff_hunk_header") + GUTTER)]
            yield from self._draw_split(hunk) if self.is_split else self._draw_unified(hunk)

    def _draw_unified(self, hunk: tuple[DiffLine, ...]) -> Iterator[Row]:
        for old_lines, new_lines in _group_runs(hunk):
            words = _compare_lines(old_lines, new_lines)
            for line in (*old_lines, *new_lines):
                yield from self._draw_line(line, words.get(id(line), []), self._room)

    def _draw_split(self, hunk: tuple[DiffLine, ...]) -> Iterator[Row]:
        half = (self._room - 1) // 2
        for old_lines, new_lines in _group_runs(hunk):
            words = _compare_lines(old_lines, new_lines)
            for old, new in _pair_lines(old_lines, new_lines):
                rows = self._draw_half(old, words, half, is_new=False)
                if new is old:
                    right = list(self._copy_to_right(rows, old))
                else:
                    right = self._draw_half(new, words, half, is_new=True)
                blank = [Segment(" " * half, self._canvas.styles.of("text"))]
                for number in range(max(len(rows), len(right))):
                    yield [
                        *(rows[number] if number < len(rows) else blank),
                        Segment(" "),
                        *(right[number] if number < len(right) else []),
                    ]

    def _draw_half(
        self, line: DiffLine | None, words: dict[int, WordSpans], room: int, *, is_new: bool
    ) -> list[Row]:
        if line is None:
            return []
        number = line.new if is_new else line.old
        return list(self._draw_line(line, words.get(id(line), []), room, number))

    def _copy_to_right(self, rows: Iterable[Row], line: DiffLine | None) -> Iterator[Row]:
        """Yield the rows of an unchanged line's left side for the right side,
        where it may have another number.
        """
        for index, row in enumerate(rows):
            number = line.new if line is not None and index == 0 else 0
            yield [Segment(self._format_number(number), row[0].style), *row[1:]]

    def _format_number(self, number: int) -> str:
        """Return a line number right-aligned; for 0 blanks."""
        return str(number or "").rjust(self._digits) if self._digits else ""

    def _draw_line(
        self, line: DiffLine, spans: WordSpans, room: int, number: int = 0
    ) -> Iterator[Row]:
        """Yield the rows of a line; `number`: the one shown;
        0: that in the new file, of a removed line the old.
        """
        styles, side = self._canvas.styles, _COLOURS_BY_SIGN[line.sign]
        background = f"diff_{side}_bg"
        number_background = background if side == "context" else f"diff_{side}_line_number_bg"
        plain = styles.of(
            "text" if self._has_backgrounds and line.sign != " " else f"diff_{side}", "", background
        )
        number_style = styles.of("diff_line_number", "", number_background) + GUTTER
        mark = Segment(f" {line.sign} ", styles.of(f"diff_{side}", "", background) + GUTTER)
        prefix = [Segment(self._format_number(number or line.new or line.old), number_style), mark]
        blank_prefix = [Segment(" " * self._digits, number_style), Segment("   ", plain + GUTTER)]
        code = self._highlight(line.sign, line.text, plain)
        if spans:
            code = _overlay_style(code, spans, self._choose_emphasis(line.sign))
        for row in fold_line(code, max(room - self._digits - 3, 4)):
            yield pad_row([*prefix, *row], room, plain)
            prefix = blank_prefix

    def _highlight(self, sign: DiffSign, text: str, plain: Style) -> Row:
        if not self._has_backgrounds:
            return [Segment(text, plain)]
        code = self._highlighters["-" if sign == "-" else "+"].highlight(text)
        # An unchanged line is drawn plain, but lexed for both sides,
        # so that a string or a comment continues on both.
        if sign == " ":
            self._highlighters["-"].highlight(text)
            return [Segment(text, plain)]
        background = Style(bgcolor=plain.bgcolor)
        return [Segment(piece, (style or plain) + background) for piece, style, _ in code]

    def _choose_emphasis(self, sign: DiffSign) -> Style:
        """Return the style added to changed words."""
        theme = self._canvas.styles.theme
        colour = theme.diff_highlight_added if sign == "+" else theme.diff_highlight_removed
        if self._has_backgrounds and colour:
            return Style(bgcolor=colour.removeprefix("ansi_"))
        return Style(reverse=True)


def _group_runs(hunk: Iterable[DiffLine]) -> Iterator[tuple[list[DiffLine], list[DiffLine]]]:
    """Yield runs of lines: removed lines, with the added lines that follow them.

    An unchanged line is a run of its own, among the old lines.
    """
    old_lines: list[DiffLine] = []
    new_lines: list[DiffLine] = []
    for line in hunk:
        if line.sign == "+":
            new_lines.append(line)
            continue
        if new_lines or line.sign == " ":
            if old_lines or new_lines:
                yield old_lines, new_lines
            old_lines, new_lines = [], []
        if line.sign == " ":
            yield [line], []
        else:
            old_lines.append(line)
    if old_lines or new_lines:
        yield old_lines, new_lines


def _compare_lines(old_lines: list[DiffLine], new_lines: list[DiffLine]) -> dict[int, WordSpans]:
    """Return the differing words of paired lines, by the line's identity: equal lines
    may occur more than once.
    """
    spans: dict[int, WordSpans] = {}
    for old, new in zip(
        old_lines[:_MAX_COMPARED_LINES], new_lines[:_MAX_COMPARED_LINES], strict=False
    ):
        spans[id(old)], spans[id(new)] = compare_words(old.text, new.text)
    return spans


def _pair_lines(old_lines: list[DiffLine], new_lines: list[DiffLine]) -> Iterator[LinePair]:
    """Yield the pairs of lines that are shown next to each other;
    an unchanged line is on both sides.
    """
    if not new_lines and len(old_lines) == 1 and old_lines[0].sign == " ":
        yield old_lines[0], old_lines[0]
        return
    yield from zip_longest(old_lines, new_lines)


def _overlay_style(row: Row, spans: WordSpans, style: Style) -> Row:
    """Return a row in which the spans have another style on top of their own."""
    overlaid: Row = []
    # Where the segment begins and ends in the row, and up to where it is done, in characters.
    segment_start = 0
    for text, segment_style, _ in row:
        segment_end, done = segment_start + len(text), segment_start
        for span_start, span_end in spans:
            if span_end <= done or span_start >= segment_end:
                continue
            start, end = max(span_start, done), min(span_end, segment_end)
            if start > done:
                overlaid.append(
                    Segment(text[done - segment_start : start - segment_start], segment_style)
                )
            inside = text[start - segment_start : end - segment_start]
            overlaid.append(Segment(inside, (segment_style or Style()) + style))
            done = end
        if done < segment_end:
            overlaid.append(Segment(text[done - segment_start :], segment_style))
        segment_start = segment_end
    return overlaid


_WORD = r"(?s)\w+|\s+|."
# Comparing takes the square of the number of words: longer lines would delay the screen.
_MAX_COMPARED_LENGTH = 400
"""Characters of a line that is compared word by word."""
_MAX_COMPARED_WORDS = 120
"""Words of a line that is compared word by word."""
# In lines that differ more, nearly every word would be highlighted, which does not help the reader.
_MIN_SIMILARITY = 0.4
"""The share of two lines' characters that must be equal."""


def compare_words(old: str, new: str) -> tuple[WordSpans, WordSpans]:
    """Return the spans of the words that differ in two lines;
    none if they are too long or too different.
    """
    if len(old) > _MAX_COMPARED_LENGTH or len(new) > _MAX_COMPARED_LENGTH or old == new:
        return [], []
    old_words, new_words = compile_once(_WORD).findall(old), compile_once(_WORD).findall(new)
    if len(old_words) > _MAX_COMPARED_WORDS or len(new_words) > _MAX_COMPARED_WORDS:
        return [], []
    blocks = SequenceMatcher(None, old_words, new_words, autojunk=False).get_matching_blocks()
    # Each block is a run of equal words, by their indices.
    old_ranges = [(block.a, block.a + block.size) for block in blocks]
    new_ranges = [(block.b, block.b + block.size) for block in blocks]
    # Blanks do not count: lines that have only those in common are not alike.
    equal_length = sum(
        len(word.strip()) for start, end in old_ranges for word in old_words[start:end]
    )
    length = max(len("".join(old.split())), len("".join(new.split())), 1)
    if equal_length / length < _MIN_SIMILARITY:
        return [], []
    return _find_spans_outside(old_words, old_ranges), _find_spans_outside(new_words, new_ranges)


def _find_spans_outside(words: list[str], equal_ranges: list[tuple[int, int]]) -> WordSpans:
    """Return the spans of the words outside the ranges;
    spans with only blanks between them are joined.
    """
    offsets = [0]
    for word in words:
        offsets.append(offsets[-1] + len(word))
    spans: WordSpans = []
    previous_end = 0
    # `SequenceMatcher` ends its blocks with an empty one at the end,
    # so the words after the last equal ones are seen.
    for range_start, range_end in equal_ranges:
        if range_start > previous_end:
            start, end = offsets[previous_end], offsets[range_start]
            if spans and not "".join(words[offsets.index(spans[-1][1]) : previous_end]).strip():
                start = spans.pop()[0]
            spans.append((start, end))
        previous_end = range_end
    return spans
