"""`BlockReader` parses Markdown blocks incrementally, line by line.
Blocks that it yields are final.

It parses CommonMark's blocks, tables and task lists, and is more lenient than CommonMark where
models are careless: a list below a numbered item may be indented by two cells only, and the blank
lines between items are kept as written.
"""

from collections.abc import Iterator

import msgspec

from codeloop.kit.text.patterns import compile_once
from codeloop.tui.render.markdown.blocks import (
    BlockKind,
    Container,
    Frame,
    ItemNumber,
    Leaf,
    OpenBlock,
    split_cells,
)

# `---`, `* * *`
_RULE = r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}"
# `## Title`, `## Title ##`
_HEADING = r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*"
# `~~~`, "```python"
_FENCE = r"( {0,3})(`{3,}|~{3,})[ \t]*([^`]*)"
# The line below a heading: `====`, `----`
_SETEXT_UNDERLINE = r" {0,3}(=+|-+)[ \t]*"
_QUOTE = r" {0,3}> ?"
# `- text`, `3. text`, `3) text`
_LIST_ITEM = r"( *)([-*+]|(\d{1,9})([.)]))(?: +|\t|$)"
# `[ ] text`, `[x] text`, behind the marker of an item
_TASK_BOX = r"\[([ xX])\][ \t]+"
# `|---|:--:|`
_TABLE_DELIMITER = r" *\|?(?: *:?-+:? *\|)* *:?-+:? *\|? *"
# A line that begins so can only begin or continue a paragraph, which saves the other patterns.
_TEXT_START = r"[A-Za-z\"'(]"
# Open paragraphs and lines are parsed again with each delta, so long ones are split.
MAX_OPEN_LENGTH = 2_000
"""Characters of an open paragraph or line."""
# Each level takes cells of the width, and time for each line; deeper levels are taken as text.
MAX_NESTING = 16
"""The depth of nested lists and quotations."""
# The rows before could not be drawn before the last one is known,
# so later rows keep the widths of the columns.
MEASURED_TABLE_ROWS = 60
"""Lines of a table, with its header and delimiter,
after which the widths of its columns are decided.
"""


class BlockReader:
    """Reads lines, which must not contain tabs, and yields blocks."""

    def __init__(self) -> None:
        self._containers: list[Container] = []
        """The quotations and list items around the next line, outermost first."""
        self._open_block: OpenBlock | None = None
        self._is_after_blank = False
        """Whether the last line was blank."""
        self._has_yielded = False
        """Whether a block was yielded: no blank row precedes the first block."""
        self._last_items: dict[int, ItemNumber] = {}
        """The number of the last list item, by its depth."""

    def copy(self) -> "BlockReader":
        """Return an independent copy of the reader."""
        reader = BlockReader()
        reader._containers = [msgspec.structs.replace(each) for each in self._containers]
        if self._open_block is not None:
            reader._open_block = msgspec.structs.replace(
                self._open_block, lines=list(self._open_block.lines)
            )
        reader._is_after_blank, reader._has_yielded = self._is_after_blank, self._has_yielded
        reader._last_items = dict(self._last_items)
        return reader

    @property
    def open_fence(self) -> str:
        """The fence of the open code block; "": none is open, or an indented one."""
        return self._open_block.fence if self._open_block is not None else ""

    def read_further_piece(self, piece: str) -> Iterator[Leaf]:
        """Parse a further piece of a long line, and yield the blocks that it finishes."""
        if self._open_block is not None and self._open_block.kind in {"fence", "indented"}:
            yield self._make_leaf("line", piece)
        else:
            yield from self._add_paragraph_line(piece)

    def finish(self) -> Iterator[Leaf]:
        """Yield the block that is still open, at the end of the text."""
        yield from self._close_block()

    def read(self, line: str) -> Iterator[Leaf]:
        """Parse a line, without its line feed, or the first piece of a long line;
        yield the blocks that it finishes.
        """
        matched_count, content = self._match_containers(line)
        continues_all = matched_count == len(self._containers)
        block = self._open_block
        if block is not None and block.kind == "fence" and not self._has_quote(matched_count):
            # Also if the line is not indented as the list item requires: models
            # forget that within code.
            yield from self._parse_code_line(block, content)
            return
        if not content.strip():
            yield from self._parse_blank_line(matched_count)
            return
        if (
            block is not None
            and block.kind == "indented"
            and continues_all
            and content.startswith("    ")
        ):
            for _ in range(block.blanks):
                yield self._make_leaf("line", "")
            block.blanks = 0
            yield self._make_leaf("line", content[4:])
            return
        if (
            block is not None
            and block.kind == "paragraph"
            and continues_all
            and not self._is_after_blank
            and compile_once(_TEXT_START).match(content)
        ):
            # A shortcut for the most frequent kind of line.
            yield from self._add_paragraph_line(content)
            return
        yield from self._parse_beginning(matched_count, content)

    def _match_containers(self, line: str) -> tuple[int, str]:
        """Return how many of the open containers a line continues, and its content within them."""
        for number, container in enumerate(self._containers):
            if not container.marker:
                match = compile_once(_QUOTE).match(line)
                if match is None:
                    return number, line
                line = line[match.end() :]
                continue
            if not line.strip():
                return len(self._containers) if not self._has_quote(number) else number, ""
            indent = len(line) - len(line.lstrip(" "))
            if indent >= container.indent:
                line = line[container.indent :]
            # More lenient than CommonMark, which wants a list below `10.` indented by four cells.
            elif indent >= 2 and compile_once(_LIST_ITEM).match(line):
                line = line[indent:]
            else:
                return number, line
        return len(self._containers), line

    def _has_quote(self, start: int) -> bool:
        """Return whether one of the open containers from index `start` on is a quotation."""
        return any(not container.marker for container in self._containers[start:])

    def _parse_blank_line(self, matched_count: int) -> Iterator[Leaf]:
        """Parse a blank line, which ends paragraphs, tables,
        and the quotations that it does not continue.
        """
        block = self._open_block
        if block is not None and block.kind == "indented":
            block.blanks += 1
        elif block is not None:
            yield from self._close_block()
        if self._has_quote(matched_count):
            yield from self._close_block()
            del self._containers[matched_count:]
        self._is_after_blank = True

    def _parse_beginning(self, depth: int, content: str) -> Iterator[Leaf]:
        """Parse a line that may begin containers or a block.
        `depth`: how many of the open containers it continues.
        """
        # CommonMark's lazy continuation: a paragraph goes on in a line without the
        # marks of its containers.
        is_lazy = (
            self._open_block is not None
            and self._open_block.kind == "paragraph"
            and not self._is_after_blank
        )
        while depth < MAX_NESTING:
            if (match := compile_once(_QUOTE).match(content)) is not None:
                yield from self._close_containers(depth)
                self._containers.append(Container())
                content, depth, is_lazy = content[match.end() :], depth + 1, False
            elif (
                item := self._parse_item(
                    content, depth, interrupts_paragraph=is_lazy and depth == len(self._containers)
                )
            ) is not None:
                yield from self._close_containers(depth)
                container, content = item
                self._containers.append(container)
                depth, is_lazy = depth + 1, False
                if not content.strip():
                    return
            else:
                break
        if is_lazy and not self._ends_paragraph(content):
            yield from self._add_paragraph_line(content)
            return
        if depth < len(self._containers):
            yield from self._close_containers(depth)
            self._forget_items(depth)
        elif not is_lazy:
            self._last_items.pop(depth, None)
        yield from self._parse_block(content)

    def _close_containers(self, depth: int) -> Iterator[Leaf]:
        """Close the open block, and the containers from `depth` on."""
        yield from self._close_block()
        del self._containers[depth:]

    def _forget_items(self, depth: int) -> None:
        """Forget the numbers of the list items from a depth on."""
        self._last_items = {
            level: item for level, item in self._last_items.items() if level < depth
        }

    def _parse_item(
        self, content: str, depth: int, *, interrupts_paragraph: bool
    ) -> tuple[Container, str] | None:
        """Return the list item that a line begins, and its content; None: it begins none.

        `interrupts_paragraph`: the item would interrupt a paragraph, which only some items may.
        """
        match = compile_once(_LIST_ITEM).match(content)
        # Outside of lists and quotations, four blanks begin an indented code block.
        if (
            match is None
            or compile_once(_RULE).fullmatch(content)
            or (len(match[1]) > 3 and depth == 0)
        ):
            return None
        text, number = content[match.end() :], match[3]
        if interrupts_paragraph and (not text.strip() or (number and number not in {"0", "1"})):
            return None
        width = match.end() - len(match[1]) - len(match[2])
        # More than four blanks belong to an indented code block in the item.
        if width > 4:
            text, width = " " * (width - 1) + text, 1
        kind = match[4] or match[2]
        last_item = self._last_items.get(depth)
        item_number = int(number or 0)
        # Models often number all items 1, or begin again at 1 after a paragraph between two items.
        if number and last_item is not None and last_item.kind == kind and item_number <= 1:
            item_number = last_item.number + 1
        self._forget_items(depth)
        self._last_items[depth] = ItemNumber(kind, item_number)
        marker = f"{item_number}{kind}" if number else "•"
        if (task := compile_once(_TASK_BOX).match(text)) is not None:
            marker, text = f"[{task[1].lower()}]", text[task.end() :]
        indent = len(match[1]) + len(match[2]) + max(width, 1)
        return Container(indent=indent, marker=marker), text

    def _ends_paragraph(self, content: str) -> bool:
        """Return whether a line ends the paragraph before it."""
        return any(
            pattern.fullmatch(content)
            for pattern in (
                compile_once(_RULE),
                compile_once(_SETEXT_UNDERLINE),
                compile_once(_HEADING),
                compile_once(_FENCE),
            )
        ) or (
            content.count("|") > 0 and compile_once(_TABLE_DELIMITER).fullmatch(content) is not None
        )

    def _parse_block(self, content: str) -> Iterator[Leaf]:
        """Parse a line, without its containers, that may begin a block."""
        block = self._open_block
        if block is not None and block.kind == "paragraph" and block.lines:
            if (
                match := compile_once(_SETEXT_UNDERLINE).fullmatch(content)
            ) and not block.is_partly_yielded:
                self._open_block = None
                text = "\n".join(block.lines)
                yield self._make_leaf(
                    "heading",
                    text,
                    level=1 if match[1][0] == "=" else 2,
                    has_blank_before=block.has_blank_before,
                )
                return
            if (
                compile_once(_TABLE_DELIMITER).fullmatch(content)
                and len(split_cells(block.lines[-1])) == len(split_cells(content))
                and "|" in content
            ):
                header = block.lines.pop()
                yield from self._close_block()
                self._open_block = OpenBlock(
                    "table",
                    [header, content],
                    has_blank_before=block.has_blank_before and not block.lines,
                )
                return
        if block is not None and block.kind == "table" and "|" in content:
            yield from self._add_row(block, content)
            return
        if (match := compile_once(_FENCE).fullmatch(content)) is not None:
            yield from self._close_block()
            info = match[3].strip().partition(" ")[0]
            yield self._make_leaf("code", "", info=info)
            self._open_block = OpenBlock("fence", [], fence=match[2], indent=len(match[1]))
        elif (match := compile_once(_HEADING).fullmatch(content)) is not None:
            yield from self._close_block()
            yield self._make_leaf("heading", match[2] or "", level=len(match[1]))
        elif compile_once(_RULE).fullmatch(content) is not None:
            yield from self._close_block()
            yield self._make_leaf("rule", "")
        elif content.startswith("    ") and block is None:
            yield self._make_leaf("code", "")
            self._open_block = OpenBlock("indented", [])
            yield self._make_leaf("line", content[4:])
        else:
            yield from self._close_block()
            self._open_block = OpenBlock("paragraph", [], has_blank_before=self._is_after_blank)
            yield from self._add_paragraph_line(content)

    def _parse_code_line(self, block: OpenBlock, content: str) -> Iterator[Leaf]:
        """Parse a line of a fenced code block, or its end."""
        mark = content.strip()
        if (
            mark.startswith(block.fence)
            and not mark.strip(block.fence[0])
            and len(content) - len(content.lstrip()) < 4
        ):
            self._open_block = None
            return
        indent = min(len(content) - len(content.lstrip(" ")), block.indent)
        yield self._make_leaf("line", content[indent:])

    def _add_paragraph_line(self, line: str) -> Iterator[Leaf]:
        """Add a line to the open paragraph, or begin one;
        a paragraph that gets too long is yielded and continued.
        """
        block = self._open_block
        if block is None or block.kind != "paragraph":
            yield from self._close_block()
            block = self._open_block = OpenBlock(
                "paragraph", [], has_blank_before=self._is_after_blank
            )
        if block.size + len(line) > MAX_OPEN_LENGTH and block.lines:
            yield self._make_leaf(
                "paragraph", "\n".join(block.lines), has_blank_before=block.has_blank_before
            )
            block.lines, block.size, block.has_blank_before, block.is_partly_yielded = (
                [],
                0,
                False,
                True,
            )
        block.lines.append(line.lstrip(" "))
        block.size += len(line) + 1
        self._is_after_blank = False

    def _add_row(self, block: OpenBlock, row: str) -> Iterator[Leaf]:
        """Add a row to a table. Once there are enough rows, the table is yielded,
        and each later row on its own.
        """
        if block.is_partly_yielded:
            yield self._make_leaf("rows", row)
            return
        block.lines.append(row)
        if len(block.lines) > MEASURED_TABLE_ROWS:
            yield self._make_leaf(
                "table", "\n".join(block.lines), has_blank_before=block.has_blank_before
            )
            block.lines, block.is_partly_yielded = [], True

    def _close_block(self) -> Iterator[Leaf]:
        """Yield what is left of the open block, and close it."""
        block, self._open_block = self._open_block, None
        if block is not None and block.lines:
            kind: BlockKind = "table" if block.kind == "table" else "paragraph"
            text = "\n".join(block.lines).rstrip(" ")
            yield self._make_leaf(kind, text, has_blank_before=block.has_blank_before)

    def _make_leaf(
        self,
        kind: BlockKind,
        text: str,
        *,
        has_blank_before: bool = False,
        level: int = 0,
        info: str = "",
    ) -> Leaf:
        """Return a leaf in the open containers, and note that these are not empty any more."""
        # A list is faster here than a generator, in a function that is called
        # for every line of code.
        frames = tuple(
            [Frame(each.marker, bool(each.marker) and each.is_empty) for each in self._containers]
        )
        # The leaf `code` has no rows of its own, so that the marker is drawn with the first line.
        if kind != "code":
            for container in self._containers:
                container.is_empty = False
        is_continuation = kind in {"rows", "line"}
        is_apart = has_blank_before or self._is_after_blank or kind in {"heading", "rule"}
        has_blank_row = is_apart and self._has_yielded and not is_continuation
        self._has_yielded, self._is_after_blank = True, False
        return Leaf(kind, text, frames, has_blank_before=has_blank_row, level=level, info=info)
