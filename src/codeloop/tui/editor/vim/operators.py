"""Vi's operators and motions, applied to a buffer. The modes are in `vim.py`."""

from collections.abc import Callable

from codeloop.tui.editor.buffer import Buffer
from codeloop.tui.editor.vim.changes import operate, put
from codeloop.tui.editor.vim.motions import MotionEnd, find_target, line_start, move_vertically
from codeloop.tui.editor.vim.registers import CLIPBOARD, Registers
from codeloop.tui.editor.vim.search import LastSearch, VimMemory
from codeloop.tui.editor.vim.spans import OperatorSpan, span_of_cw, span_of_motion
from codeloop.tui.editor.vim.text_objects import find_text_object

_BACKWARD_MOTIONS = {"b", "B", "ge", "gE", "("}
"""Motions that do nothing at the start of the text, where an operator must not apply to a character."""


class VimOperators:
    """Finds the ends of motions, and applies operators. `run` runs an action of the prompt by its id."""

    def __init__(self, buffer: Buffer, run: Callable[[str], bool]) -> None:
        self.buffer = buffer
        self.run = run
        self.registers = Registers()
        self.memory = VimMemory(LastSearch())
        self.column: int | None = None
        """The column (characters) that the cursor keeps when it moves up and down."""

    def insert(self, times: int = 1) -> None:
        """Start insert mode, as after `c`; implemented by the subclass."""
        raise NotImplementedError

    def target(self, keys: str, count: int | None) -> MotionEnd | None:
        """Return the end of a motion; None: it is impossible."""
        text, at = self.buffer.text, self.buffer.cursor
        if keys in {"j", "k"}:
            index = self.move_vertically(keys, count)
            return None if index is None else MotionEnd(index, "lines")
        if keys[0] in "fFtT;,":
            return self.memory.search.find_character(text, at, keys, count or 1)
        if keys[0] in "/?nN*#":
            return self.memory.search.find_text(text, at, keys, count or 1)
        return find_target(text, at, keys, count)

    def move_vertically(self, keys: str, count: int | None) -> int | None:
        """Return the offset `count` lines below or above, or as many as there are; None: there is none."""
        text, at = self.buffer.text, self.buffer.cursor
        if self.column is None:
            self.column = at - line_start(text, at)
        step = 1 if keys == "j" else -1
        targets = (move_vertically(text, at, lines * step, self.column) for lines in range(count or 1, 0, -1))
        return next((index for index in targets if index is not None), None)

    def operate(self, operator: str, keys: str | None, twice: str | None, count: int | None, register: str) -> None:
        """Apply an operator, up to the end of a motion, to a text object, or to whole lines.

        `keys`: the motion or text object; None: the operator was typed `twice`, which means whole lines.
        """
        text, at = self.buffer.text, self.buffer.cursor
        span: OperatorSpan | None = None
        if keys is None:
            if twice in {operator, operator[-1]}:  # `dd`, and `gugu` or `guu`
                below = self.move_vertically("j", count - 1) if count is not None and count > 1 else at
                span = OperatorSpan(at, at if below is None else below, is_lines=True)
                self.column = None
        elif keys[0] in "ia" and len(keys) == 2:
            bounds = find_text_object(text, at, keys[1], around=keys[0] == "a")
            if bounds is not None and keys[1] == "p":
                span = OperatorSpan(*bounds, is_lines=True)
            elif bounds is not None:
                span = OperatorSpan(*bounds)
        elif operator == "c" and keys in {"w", "W"} and at < len(text) and not text[at].isspace():
            span = span_of_cw(text, at, count or 1, big=keys == "W")
        else:
            target = self.target(keys, count)
            if target is not None and not (keys in _BACKWARD_MOTIONS and target.at == at):
                span = span_of_motion(text, at, target, keys, operator)
        if span is not None:
            self.apply(operator, span, register)

    def apply(self, operator: str, span: OperatorSpan, register: str, times: int = 1) -> None:
        """Apply an operator to a span."""
        if operator == "c":
            self.insert()
        operate(self.buffer, self.registers, operator, span, register, times)

    def put(self, name: str, times: int, *, after: bool) -> None:
        """Insert the content of a register, behind the cursor (`after`) or before it."""
        if name in CLIPBOARD:
            if after:
                self.buffer.move(min(self.buffer.next_offset(), self.buffer.line_end()))
            self.run("input_paste")
        else:
            put(self.buffer, self.registers.of(name), times, after=after)
