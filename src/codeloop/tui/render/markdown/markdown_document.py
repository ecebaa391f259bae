"""`MarkdownDocument` renders a growing Markdown text: finished rows are kept,
and only the end is rendered again.
"""

from collections.abc import Iterable
from itertools import zip_longest

from rich.segment import Segment

from codeloop.kit.text.patterns import compile_once
from codeloop.kit.text.terminal_text import escape_answer_controls
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import (
    cut_line,
    expand_tabs,
    fold_line,
    measure_row,
    pad_row,
    wrap_line,
)
from codeloop.tui.render.code_highlighter import CodeHighlighter
from codeloop.tui.render.markdown.block_reader import MAX_OPEN_LENGTH, BlockReader
from codeloop.tui.render.markdown.blocks import Frame, Leaf
from codeloop.tui.render.markdown.inline_parser import parse_pieces, split_lines
from codeloop.tui.render.markdown.prose_styles import ProseStyles
from codeloop.tui.render.markdown.table_layout import TableLayout

CODE_BACKGROUND = "background_panel"
"""The theme's colour behind code."""
# A line that is too short to decide which block it begins is not drawn yet, such as `##`, `- [` or
# `1.`: its rows might jump with the next letter.
_UNDECIDED_LINE = (
    r"[ >]*(?:#{1,6} *|[-*+] ?(?:\[[ xX]?\]? ?)?|\d{1,9}[.)]? ?|[`~]{1,2}|(?:`{3,}"
    r"|~{3,})\S*|[-*_ =]+|\*{1,3})?"
)
# The beginning of a table's second line: `|--`.
_DELIMITER_START = r"\|[-:| ]*"


class MarkdownDocument:
    """A growing Markdown text as rows of at most `width` cells, each after a margin."""

    def __init__(self, prose: ProseStyles, width: int, margin: Segment) -> None:
        self._leaf_renderer = _LeafRenderer(prose, width, margin)
        self._reader = BlockReader()
        self._text = ""
        self._line = ""
        """The last line, which is not complete yet."""
        self._is_line_begun = False
        """Whether a first piece of the last line was parsed already, because the line is long."""
        self._rows: list[Row] = []
        self._open_rows: list[Row] = []
        """The rows of the open block that were returned last: an unchanged row is
        the same object next time.
        """

    def is_continued_by(self, text: str) -> bool:
        """Return whether a text begins with the text that was parsed so far."""
        return text.startswith(self._text)

    def render_growing(self, text: str) -> list[Row]:
        """Return the rows of a longer version of the text, which may still grow."""
        self._parse(text)
        pairs = zip_longest(self._draw_open_block(), self._open_rows)
        self._open_rows = [
            before if row == before else row for row, before in pairs if row is not None
        ]
        return [*self._rows, *self._open_rows]

    def render_complete(self, text: str) -> list[Row]:
        """Return the rows of the complete text."""
        self._parse(text)
        self._parse_line(self._line.rstrip())
        self._add_leaves(self._reader.finish())
        return self._rows

    def _parse(self, text: str) -> None:
        """Parse the new part of a text, line by line."""
        new_text = text[len(self._text) :]
        self._text = text
        *complete_lines, last = new_text.split("\n")
        for line in complete_lines:
            self._line += line
            self._parse_long_line()
            self._parse_line(self._line.removesuffix("\r"), is_end=True)
            self._line, self._is_line_begun = "", False
        self._line += last
        self._parse_long_line()

    def _parse_long_line(self) -> None:
        """Parse the first pieces of a long line as final,
        so that they are not parsed again with each delta.
        """
        while len(self._line) > MAX_OPEN_LENGTH:
            end = (
                self._line.rfind(" ", MAX_OPEN_LENGTH // 2, MAX_OPEN_LENGTH) + 1 or MAX_OPEN_LENGTH
            )
            self._parse_line(self._line[:end])
            self._line, self._is_line_begun = self._line[end:], True

    def _parse_line(self, line: str, *, is_end: bool = False) -> None:
        if line or (is_end and not self._is_line_begun):
            self._add_leaves(
                _parse_line_piece(self._reader, line, is_line_begun=self._is_line_begun)
            )

    def _add_leaves(self, leaves: Iterable[Leaf]) -> None:
        for leaf in leaves:
            self._rows += self._leaf_renderer.render(leaf)

    def _draw_open_block(self) -> list[Row]:
        """Return the rows of the open block, without a last line that may still
        become another block.
        """
        # A copy reads the open end, so that the reader is where it was when the text goes on.
        reader = self._reader.copy()
        line = self._line.rstrip("\r")
        fence = reader.open_fence
        # Within code, a line may still become the fence that closes it.
        is_undecided = (
            fence.startswith(line.strip()[:3])
            if fence
            else compile_once(_UNDECIDED_LINE).fullmatch(line)
        )
        leaves: list[Leaf] = []
        if line and (self._is_line_begun or not is_undecided):
            leaves += _parse_line_piece(reader, line, is_line_begun=self._is_line_begun)
        leaves += reader.finish()
        return self._leaf_renderer.render_open(leaves)


def _parse_line_piece(reader: BlockReader, line: str, *, is_line_begun: bool) -> Iterable[Leaf]:
    """Return the blocks that a line finishes;
    `is_line_begun`: its first piece was parsed before.
    """
    text = expand_tabs(escape_answer_controls(line))
    return reader.read_further_piece(text) if is_line_begun else reader.read(text)


class _LeafRenderer:
    """Draws blocks as rows, one after the other."""

    def __init__(self, prose: ProseStyles, width: int, margin: Segment) -> None:
        self._prose = prose
        self._width = width
        self._margin = margin
        self._code = CodeHighlighter("", prose.styles, CODE_BACKGROUND)
        self._table: TableLayout | None = None
        self._last_frames: tuple[Frame, ...] = ()
        """The containers of the last block."""

    def render(self, leaf: Leaf) -> list[Row]:
        """Return the rows of a finished block."""
        return [[self._margin, *row] for row in self._draw_leaf(leaf, is_open=False)]

    def render_open(self, leaves: list[Leaf]) -> list[Row]:
        """Return the rows of blocks that may still change."""
        # Drawing changes the state, which must be that after the last finished block
        # when the text goes on.
        state = self._code, self._table, self._last_frames
        rows: list[Row] = []
        for number, leaf in enumerate(leaves, 1):
            is_last = number == len(leaves)
            # The last line of an open paragraph may be the header of a table.
            for piece in _split_off_table(leaf) if is_last else [leaf]:
                rows += self._draw_leaf(piece, is_open=is_last or leaf.kind == "line")
        self._code, self._table, self._last_frames = state
        return [[self._margin, *row] for row in rows]

    def _draw_leaf(self, leaf: Leaf, *, is_open: bool) -> list[Row]:
        first, others = self._make_prefixes(leaf.frames)
        room = max(self._width - measure_row(first), 2)
        body = self._draw_body(leaf, room, is_open=is_open)
        rows: list[Row] = [self._draw_blank_row(leaf.frames)] if leaf.has_blank_before else []
        self._last_frames = leaf.frames
        if not first:
            return rows + body
        for number, row in enumerate(body):
            rows.append([*(others if number else first), *row])
        return rows

    def _draw_blank_row(self, frames: tuple[Frame, ...]) -> Row:
        """Return the blank row before a block; it has the bar of a quotation
        that both blocks are in.
        """
        common_frames: list[Frame] = []
        for frame, last_frame in zip(frames, self._last_frames, strict=False):
            if frame.marker or last_frame.marker:
                break
            common_frames.append(frame)
        _, prefix = self._make_prefixes(common_frames)
        return prefix

    def _make_prefixes(self, frames: Iterable[Frame]) -> tuple[Row, Row]:
        """Return the segments before a block's first row, and those before its other rows."""
        first: Row = []
        others: Row = []
        for frame in frames:
            if not frame.marker:
                bar = Segment("│ ", self._prose.of("markdown_block_quote"))
                first.append(bar)
                others.append(bar)
                continue
            is_number = frame.marker[0].isdigit()
            style = self._prose.of(
                "markdown_list_enumeration" if is_number else "markdown_list_item"
            )
            space = Segment(" " * (len(frame.marker) + 1))
            first.append(Segment(f"{frame.marker} ", style) if frame.is_first else space)
            others.append(space)
        # Nested too deeply for this width: the outer containers are not shown.
        while measure_row(first) > self._width // 2:
            del first[0], others[0]
        return first, others

    def _draw_body(self, leaf: Leaf, room: int, *, is_open: bool) -> list[Row]:
        match leaf.kind:
            case "paragraph":
                colour = (
                    "markdown_block_quote" if any(not frame.marker for frame in leaf.frames) else ""
                )
                return self._draw_text(leaf.text, room, colour, is_open=is_open)
            case "heading":
                return self._draw_text(leaf.text, room, "markdown_heading", "bold", is_open=is_open)
            case "rule":
                return [[Segment("─" * room, self._prose.of("markdown_horizontal_rule"))]]
            case "table":
                self._table = TableLayout(leaf.text, self._prose, room)
                return self._table.rows
            case "rows":
                return self._table.draw_row(leaf.text) if self._table is not None else []
            case "code":
                self._code = CodeHighlighter(leaf.info, self._prose.styles, CODE_BACKGROUND)
                return []
            case "line":
                return self._draw_code_line(leaf.text, room, is_open=is_open)

    def _draw_text(
        self, text: str, room: int, colour: str, attributes: str = "", *, is_open: bool
    ) -> list[Row]:
        line_pieces = parse_pieces(text, is_open=is_open)
        # Most paragraphs are plain text.
        if len(line_pieces) == 1:
            return wrap_line(self._prose.make_segments(line_pieces, colour, attributes), room)
        return [
            row
            for line in split_lines(line_pieces)
            for row in wrap_line(self._prose.make_segments(line, colour, attributes), room)
        ]

    def _draw_code_line(self, text: str, room: int, *, is_open: bool) -> list[Row]:
        segments = self._code.highlight_open_line(text) if is_open else self._code.highlight(text)
        style = self._prose.styles.of("markdown_code_block", "", CODE_BACKGROUND)
        edge = Segment(" ", style)
        inner = max(room - 2, 1)
        return [
            cut_line(pad_row([edge, *row], room, style), room) for row in fold_line(segments, inner)
        ]


def _split_off_table(leaf: Leaf) -> list[Leaf]:
    """Return an open paragraph as a table if its last line looks like a table's header.

    Otherwise the rows would jump once the next line shows that it is a table.
    """
    if leaf.kind != "paragraph" or "|" not in leaf.text:
        return [leaf]
    *before, last = leaf.text.split("\n")
    header = last
    if before and compile_once(_DELIMITER_START).fullmatch(last):
        header = before.pop()
    if not header.startswith("|"):
        return [leaf]
    columns = max(header.rstrip().removesuffix("|").count("|"), 1)
    table = Leaf(
        "table", f"{header}\n{'|---' * columns}|", leaf.frames, leaf.has_blank_before and not before
    )
    if not before:
        return [table]
    return [Leaf("paragraph", "\n".join(before), leaf.frames, leaf.has_blank_before), table]
