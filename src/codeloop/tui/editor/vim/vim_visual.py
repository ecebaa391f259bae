"""Vi's visual mode: what it selects, and the commands on it."""

from collections.abc import Callable

from codeloop.tui.editor.buffer import Buffer
from codeloop.tui.editor.grapheme_bounds import find_next_edge, find_previous_edge
from codeloop.tui.editor.vim.changes import CASE_OPERATORS, join_lines, replace_selection
from codeloop.tui.editor.vim.grammar import VISUAL_OPERATOR_NAMES
from codeloop.tui.editor.vim.motions import find_line_end, find_line_start
from codeloop.tui.editor.vim.operator_span import OperatorSpan
from codeloop.tui.editor.vim.text_objects import find_text_object
from codeloop.tui.editor.vim.vim_memory import LastSelection, VimMode
from codeloop.tui.editor.vim.vim_operators import VimOperators

END_COLUMN = 1 << 30
"""A column behind the end of every line, which the cursor keeps after `$`."""


class VimVisual(VimOperators):
    """Keeps the selection of visual mode, and applies the commands of that mode."""

    def __init__(self, buffer: Buffer, run: Callable[[str], bool]) -> None:
        super().__init__(buffer, run)
        self.mode: VimMode = "insert"
        self.visual_anchor = 0
        """The offset at which the visual selection began."""

    def find_selection(self) -> tuple[int, int]:
        """Return the start and end of the selection; in visual mode it includes the
        character under the cursor.
        """
        if self.mode not in {"visual", "lines"}:
            return self.buffer.selection
        text = self.buffer.text
        low, high = sorted((min(self.visual_anchor, len(text)), self.buffer.cursor))
        if self.mode == "lines":
            return find_line_start(text, low), min(find_line_end(text, high) + 1, len(text))
        # As in vi, `$` selects the line feed too.
        if self.column == END_COLUMN:
            return low, min(find_line_end(text, high) + 1, len(text))
        return low, find_next_edge(text, high)

    def leave_visual(self) -> None:
        """Go back to normal mode."""
        if self.mode != "normal":
            self.memory.last_selection = LastSelection(
                self.mode, self.visual_anchor, self.buffer.cursor
            )
        self.mode = "normal"

    def select_again(self) -> None:
        """Select what was selected last, as `gv` does."""
        if self.memory.last_selection is not None:
            self.mode, self.visual_anchor, cursor = self.memory.last_selection
            self.buffer.move(min(cursor, len(self.buffer.text)))

    def execute_visual(
        self, groups: dict[str, str | None], register: str, count: int | None
    ) -> None:
        """Execute a command of visual mode: select a text object, change the selection,
        or operate on it.
        """
        buffer = self.buffer
        if groups["object"]:
            prefix, kind = groups["object"]
            span = find_text_object(buffer.text, buffer.cursor, kind, around=prefix == "a")
            if span is not None and span[0] < span[1]:
                self.visual_anchor = span[0]
                self.mode = "lines" if kind == "p" else self.mode
                buffer.move(span[1] if kind == "p" else find_previous_edge(buffer.text, span[1]))
            return
        keys = groups["command"] or ""
        if keys in {"o", "v", "V"}:
            mode: VimMode = "visual" if keys == "v" else "lines"
            if keys == "o":
                anchor, self.visual_anchor = self.visual_anchor, buffer.cursor
                buffer.move(anchor)
            elif self.mode == mode:
                self.leave_visual()
            else:
                self.mode = mode
        elif keys == "gv":
            self.select_again()
        else:
            self._operate_visual(keys, register, count or 1)

    def _operate_visual(self, keys: str, register: str, times: int) -> None:
        """Apply a command to the selection, and leave visual mode."""
        buffer = self.buffer
        low, high = self.find_selection()
        is_lines = self.mode == "lines" or keys in {"X", "D", "C", "S", "R", "Y", "<", ">"}
        # The line feed of the last line is selected, but is not part of the lines' text.
        if (
            is_lines
            and buffer.text[high - 1 : high] == "\n"
            and high > low
            and self.mode == "lines"
        ):
            high -= 1
        self.leave_visual()
        selected_text = buffer.text[low:high]
        match keys[0]:
            case "p" | "P":
                before = self.registers.read(register)
                if keys == "p":
                    self.registers.store(buffer, "", low, high, is_lines=is_lines, is_yank=False)
                replace_selection(buffer, before, low, high, is_lines=is_lines)
            case "r":
                buffer.replace(
                    low, high, "".join(char if char == "\n" else keys[1] for char in selected_text)
                )
                buffer.move(low)
            case _ if keys in {"J", "gJ"}:
                buffer.move(low)
                join_lines(buffer, max(selected_text.count("\n"), 1), keeps_blanks=keys == "gJ")
            case _:
                operator = VISUAL_OPERATOR_NAMES.get(keys, keys)
                self.apply_to_span(
                    operator, OperatorSpan(low, high, is_lines=is_lines), register, times
                )
                if operator in CASE_OPERATORS:
                    buffer.move(low)
