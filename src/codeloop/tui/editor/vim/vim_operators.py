"""Vi's operators and motions, applied to a buffer. The modes are in `vim.py`."""

from collections.abc import Callable

from codeloop.tui.editor.buffer import Buffer
from codeloop.tui.editor.vim.changes import apply_operator, put_register
from codeloop.tui.editor.vim.motions import (
    MotionEnd,
    find_line_start,
    find_motion_end,
    find_vertical_offset,
)
from codeloop.tui.editor.vim.operator_span import (
    OperatorSpan,
    find_change_word_span,
    find_motion_span,
)
from codeloop.tui.editor.vim.registers import CLIPBOARD_NAMES, Registers
from codeloop.tui.editor.vim.text_objects import find_text_object
from codeloop.tui.editor.vim.vim_memory import LastSearch, VimMemory

# At the start of the text they do nothing, and an operator must not apply to the character there.
_BACKWARD_MOTIONS = {"b", "B", "ge", "gE", "("}


class VimOperators:
    """Finds the ends of motions, and applies operators.
    `run` runs an action of the prompt by its id.
    """

    def __init__(self, buffer: Buffer, run: Callable[[str], bool]) -> None:
        self.buffer = buffer
        self.run_action = run
        self.registers = Registers()
        self.memory = VimMemory(LastSearch())
        self.column: int | None = None
        """The column (characters) that the cursor keeps when it moves up and down."""

    def start_insert(self, times: int = 1) -> None:
        """Start insert mode, as after `c`; implemented by the subclass."""
        raise NotImplementedError

    def find_motion_end(self, keys: str, count: int | None) -> MotionEnd | None:
        """Return the end of a motion; None: it is impossible."""
        text, offset = self.buffer.text, self.buffer.cursor
        if keys in {"j", "k"}:
            index = self.find_line_offset(keys, count)
            return None if index is None else MotionEnd(index, "lines")
        if keys[0] in "fFtT;,":
            return self.memory.search.find_character(text, offset, keys, count or 1)
        if keys[0] in "/?nN*#":
            return self.memory.search.find_text(text, offset, keys, count or 1)
        return find_motion_end(text, offset, keys, count)

    def find_line_offset(self, keys: str, count: int | None) -> int | None:
        """Return the offset `count` lines below or above, or as many as there are;
        None: there is none.

        The cursor's column is noted in `column`, unless an earlier one is kept there.
        """
        text, offset = self.buffer.text, self.buffer.cursor
        if self.column is None:
            self.column = offset - find_line_start(text, offset)
        step = 1 if keys == "j" else -1
        targets = (
            find_vertical_offset(text, offset, lines * step, self.column)
            for lines in range(count or 1, 0, -1)
        )
        return next((index for index in targets if index is not None), None)

    def apply_command(
        self,
        operator: str,
        keys: str | None,
        repeated: str | None,
        count: int | None,
        register: str,
    ) -> None:
        """Apply an operator, up to the end of a motion, to a text object, or to whole lines.

        `keys`: the motion or text object; None: the operator was typed twice (`repeated`),
        which means whole lines.
        """
        text, offset = self.buffer.text, self.buffer.cursor
        span: OperatorSpan | None = None
        if keys is None:
            # `dd`, and `gugu` or `guu`.
            if repeated in {operator, operator[-1]}:
                below = (
                    self.find_line_offset("j", count - 1)
                    if count is not None and count > 1
                    else offset
                )
                span = OperatorSpan(offset, offset if below is None else below, is_lines=True)
                self.column = None
        elif keys[0] in "ia" and len(keys) == 2:
            bounds = find_text_object(text, offset, keys[1], around=keys[0] == "a")
            if bounds is not None and keys[1] == "p":
                span = OperatorSpan(*bounds, is_lines=True)
            elif bounds is not None:
                span = OperatorSpan(*bounds)
        # Vi's exception: `cw` on a word changes it like `ce`, without the blank behind it.
        elif (
            operator == "c"
            and keys in {"w", "W"}
            and offset < len(text)
            and not text[offset].isspace()
        ):
            span = find_change_word_span(text, offset, count or 1, big=keys == "W")
        else:
            target = self.find_motion_end(keys, count)
            if target is not None and not (keys in _BACKWARD_MOTIONS and target.offset == offset):
                span = find_motion_span(text, offset, target, keys, operator)
        if span is not None:
            self.apply_to_span(operator, span, register)

    def apply_to_span(
        self, operator: str, span: OperatorSpan, register: str, times: int = 1
    ) -> None:
        """Apply an operator to a span."""
        # Insert mode comes first, so that it undoes the deletion together with the inserted text.
        if operator == "c":
            self.start_insert()
        apply_operator(self.buffer, self.registers, operator, span, register, times)

    def put(self, name: str, times: int, *, after: bool) -> None:
        """Insert the content of a register `times` times,
        behind the cursor (`after`) or before it.
        """
        if name in CLIPBOARD_NAMES:
            if after:
                self.buffer.move(min(self.buffer.find_next_offset(), self.buffer.find_line_end()))
            self.run_action("input_paste")
        else:
            put_register(self.buffer, self.registers.read(name), times, after=after)
